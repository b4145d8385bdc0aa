"""0.1.0 hung, filled memory or died on bad arguments, took nonsense, or raised raw errors."""

import math

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent import ledger, plot, verify
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    NativeConstructorError,
    SharesUsedError,
)

dp.enable_features("contrib", "honest-but-curious")

T = oc.TradeoffFunction
PURE = dp.max_divergence()
NUMBER = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
BITS = oc.integer_stream(0, 1), oc.event_presence()


@pytest.fixture
def vector():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def context(**split):
    return oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), **split
    )


class Clock:
    def update(self, item):
        pass

    def update_all(self, items):
        pass

    def ask(self, query):
        return 0


REFUSED = {
    "privacy_map": lambda: oc.m.make_continual(*BITS, PURE, Clock, privacy_map=3),
    "epsilon": lambda: oc.loss_of(epsilon=-1.0),
    "epsilon (nan)": lambda: oc.loss_of(epsilon=math.nan),
    "delta": lambda: oc.c.largest_share(oc.loss_of(mu=1.0), 4, delta="text"),
    "constant_time": lambda: oc.m.make_certified_randomized_response_bool(
        0.75, PURE, constant_time="text"
    ),
    "scale": lambda: oc.m.make_certified_laplace(*NUMBER, True, PURE),
    "k": lambda: oc.m.make_certified_gaussian(*NUMBER, 1.0, oc.tradeoff(), k=2**31),
    "epsilon ": lambda: T.pure(1.0).delta("1.0"),
    "epsilon  ": lambda: T.pure(1.0).delta(np.ma.masked_array([1.0], mask=[True])),
    "part": lambda: T.pure(1.0).root(0.5),
    "others[0]": lambda: T.pure(1.0).compose(None),
    "input_metric": lambda: oc.m.make_continual(BITS[0], None, PURE, Clock, lambda d_in: 0.0),
    "output_measure": lambda: oc.m.make_continual(*BITS, "MaxDivergence", Clock, lambda d_in: 0.0),
    "name": lambda: oc.m.make_continual(*BITS, PURE, Clock, lambda d_in: 0.0, name=3),
    "split_evenly_over": lambda: context(split_evenly_over=10**6),
    "categories": lambda: oc.category_stream(10**12),
    "universe": lambda: oc.m.make_projected_queries(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.symmetric_distance(),
        dp.zero_concentrated_divergence(),
        1,
        [0.5],
        [math.nan],
        size=10,
    ),
    "universe ": lambda: oc.m.make_projected_queries(
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.symmetric_distance(),
        dp.zero_concentrated_divergence(),
        1,
        [0.5],
        range(10**12),
        size=10,
    ),
    "max_hits": lambda: oc.m.make_guess_and_check(
        dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance(), PURE, 1, 1.0, 1.0, 2**31
    ),
    "d_mids": lambda: oc.make_concurrent_composition(
        dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance(), PURE, 1, range(10**12)
    ),
    "bounds": lambda: oc.c.smallest_scale(lambda s: None, 1.0, 1.0, bounds=3),
    "ax": lambda: plot.plot_tradeoff(T.pure(1.0), ax=3),
    "ylabel": lambda: plot.plot_stream([1], {"a": [1.0]}, ylabel=3),
    "points": lambda: plot.plot_tradeoff(T.pure(1.0), points=10**12),
    "path_or_url": lambda: ledger.create_ledger("a\0b", "survey"),
    "path_or_url ": lambda: ledger.open_ledger(None, "survey"),
    "dataset": lambda: ledger.create_ledger("unused.db", "\ud800"),
    "seed": lambda: verify.random_mechanism([[[]]]),
    "gaussian": lambda: verify.clamped_noise(0, 1, gaussian="yes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_by_the_name_of_the_argument(name):
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        REFUSED[name]()
    if name != "go_on":
        assert str(caught.value).startswith(name.strip())


@pytest.mark.parametrize(
    "value",
    [-(10**5000), "a" * 10**6, [[[]]] * 10**5, object()],
    ids=["digits", "text", "list", "object"],
)
def test_a_message_is_short_whatever_the_value(value):
    with pytest.raises((InvalidTypeError, InvalidValueError)) as caught:
        oc.c.make_interactive_postprocessing(
            oc.m.make_counter(*BITS, PURE, 1.0), print, max_asks=value
        )
    assert len(str(caught.value)) < 1000


def test_what_opendp_refuses_is_named_and_is_an_opendp_exception():
    with pytest.raises(NativeConstructorError, match=r"input_domain \(.*String") as caught:
        oc.m.make_certified_laplace(dp.atom_domain(T=str), dp.absolute_distance(T=int), 1.0, PURE)
    assert isinstance(caught.value, OpenDPException)


def test_a_split_context_that_is_used_up():
    one = context(split_evenly_over=1)
    one.query().count().laplace().release()
    with pytest.raises(SharesUsedError, match="all shares of it are used") as caught:
        one.query()
    assert isinstance(caught.value, ValueError)
    assert one.remaining_privacy_loss() == []


def test_a_query_without_a_loss():
    for loss in (dp.loss_of(epsilon=1.0), oc.loss_of(mu=1.0)):
        one = oc.concurrent_context([1, 2, 3], dp.unit_of(contributions=1), loss)
        with pytest.raises(InvalidTypeError, match="neither a privacy loss nor a scale"):
            one.query().count().laplace().release()
        assert one.current_privacy_loss() == 0.0


def test_an_odometer_of_ours_in_a_native_function(vector):
    """OpenDP says it in its own words: the import changes none of its constructors."""
    with pytest.raises(dp.OpenDPException, match="null pointer"):
        dp.c.make_privacy_filter(oc.make_concurrent_odometer(*vector, PURE), 1, 1.0)


class Null(dp.Measurement):
    """Its pointer is null, as of a measurement that was made without its constructor."""

    _type_ = dp.Measurement._type_

    def __del__(self):
        """There is nothing to free."""


def test_null_pointers(vector):
    root = oc.make_concurrent_odometer(*vector, PURE)([1, 2])
    null = Null.__new__(Null)
    for call in (
        lambda: root(null),
        lambda: oc.c.cast(null, PURE),
        lambda: root.loss_after([null], 1),
    ):
        with pytest.raises(InvalidTypeError, match="must be a measurement"):
            call()
    assert root.privacy_loss(1) == 0.0


def test_data_are_not_in_the_message(vector):
    for made in (
        oc.make_concurrent_odometer(*vector, PURE),
        oc.make_concurrent_filter(oc.make_concurrent_odometer(*vector, PURE), 1, 1.0),
    ):
        for data in (["secret"], [1.25], {"secret": 1}, "secret", [10**12], iter([1])):
            with pytest.raises(ConcurrentError, match="^arg must be data") as caught:
                made(data)
            assert not any(word in str(caught.value) for word in ("secret", "1.25", str(10**12)))


def test_a_distance_without_an_end_is_refused(vector):
    root = oc.make_concurrent_odometer(*vector, PURE)([1])
    endless = []
    endless.append(endless)
    for d_in in (endless, np.broadcast_to(0.5, (10**10,)), None, "1", b"1", {}):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="^d_in"):
            root.privacy_loss(d_in)
