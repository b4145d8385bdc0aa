"""Bad input: each has a clear error; none changes state or charges."""

import inspect
import math
import re

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent._checks import CONSTRUCTORS, Count, Record
from opendp_concurrent.composition.guards import constructor
from opendp_concurrent.composition.interactive import constant_map
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

from ..build import APPROXIMATE_ZCDP, PURE, RENYI, SPACE, an_odometer, costing, laplace


def test_an_untracked_odometer_says_at_the_query_which_it_cannot_answer():
    root = an_odometer()([1, 2])
    root(costing(lambda d_in: -5.0))
    with pytest.raises(PrivacyMapError, match="at least 0"):
        root.privacy_loss(1)


def test_chains_that_do_not_fit(space):
    inner = an_odometer()
    count = dp.t.make_count(*space)
    with pytest.raises(SpaceMismatchError, match="^input_domain"):
        count >> inner
    metric = dp.t.make_user_transformation(
        *space, space[0], dp.change_one_distance(), lambda rows: rows, lambda d_in: d_in
    )
    with pytest.raises(SpaceMismatchError, match="^input_metric"):
        oc.c.make_chain_ot(inner, metric)
    with pytest.raises(InvalidTypeError, match="^transformation must be"):
        oc.c.make_chain_ot(inner, laplace())
    with pytest.raises(InvalidTypeError, match="^postprocessor must be callable"):
        inner >> 3


def test_renyi_curves(space):
    line = costing(lambda d_in: lambda alpha: alpha * d_in / 2, measure=RENYI)
    bad = costing(lambda d_in: lambda alpha: -alpha, measure=RENYI)
    flat = costing(lambda d_in: lambda alpha: math.nan, measure=RENYI)
    inner = an_odometer(RENYI)
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        oc.make_concurrent_filter(inner, 1, lambda alpha: alpha)
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        oc.make_concurrent_composition(*space, RENYI, 1, [lambda alpha: alpha])
    with pytest.raises(InvalidTypeError, match="^d_out must be a function"):
        oc.make_concurrent_filter(inner, 1, 1.0, orders=[2])
    with pytest.raises(InvalidValueError, match=r"^d_out\(2\)"):
        oc.make_concurrent_filter(inner, 1, lambda alpha: -1.0, orders=[2])
    root = oc.make_concurrent_filter(inner, 1, lambda alpha: 1.2 * alpha, orders=[2, 8])([1, 2])
    root(line)
    for query in (bad, flat):
        with pytest.raises(PrivacyMapError, match="at least 0"):
            root(query)
    broken = costing(lambda d_in: lambda alpha: 1 / 0, measure=RENYI)
    with pytest.raises(PrivacyMapError, match="ZeroDivisionError"):
        root(broken)
    root(line)
    with pytest.raises(BudgetExceededError):
        root(line)
    assert root.privacy_loss()(8) == 8.0
    assert root.privacy_loss()(5) == 8.0  # the next order of the grid
    assert root.privacy_loss()(9) == math.inf
    with pytest.raises(InvalidValueError, match="alpha"):
        root.privacy_loss()(1.0)
    compositor = oc.make_concurrent_composition(
        *space, RENYI, 1, [lambda alpha: alpha / 2] * 2, orders=[2, 8]
    )
    child = compositor([1, 2])
    child(line)
    child(line)
    with pytest.raises(BudgetExceededError):
        child(line)
    assert compositor.map(1)(2) == 2.0


# --- test_constructor ----------------------------------------------------------------------------


MADE = [
    made
    for group in (oc.c, oc.m, oc.t)
    for name in group.__all__
    if hasattr(made := vars(group)[name], "__features__")
]


@pytest.fixture
def make():
    before = dict(CONSTRUCTORS)

    @constructor(features=("honest-but-curious",))
    def make_of_a_test(count: Count) -> dp.Measure:
        return dp.user_divergence(str(count))

    yield make_of_a_test
    CONSTRUCTORS.clear()
    CONSTRUCTORS.update(before)


def test_a_constructor_checks_its_arguments_and_records_them(make):
    made = make(3)
    assert type(made.__opendp_dict__) is Record
    assert made.__opendp_dict__["__kwargs__"] == {"count": 3}
    with pytest.raises(InvalidValueError, match="^count "):
        make(count=0)


def test_a_constructor_needs_its_features(make):
    dp.disable_features("honest-but-curious")
    try:
        with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
            make(3)
    finally:
        dp.enable_features("honest-but-curious")


@pytest.mark.parametrize("make", MADE, ids=lambda one: one.__name__)
def test_the_docs_say_which_features_are_needed(make):
    said = re.search(r"Required features: ([^\n]*(\n    [^\n]+)*)", inspect.getdoc(make) or "")
    if said is not None:
        assert tuple(re.findall(r"`([a-z-]+)`", said[1])) == make.__features__


# --- how a spawn function becomes a measurement: its map, and what a chain to it keeps -----------


def test_a_distance_that_is_no_number_must_be_the_one_that_it_was_built_for():
    metric = dp.frame_distance(dp.symmetric_distance())
    built_for = [dp.polars.Bound(by=[], per_group=2)]
    loss = constant_map(metric, built_for, 0.5)
    assert loss([dp.polars.Bound(by=[], per_group=2)]) == 0.5
    with pytest.raises(InvalidValueError, match="must be at most"):
        loss([dp.polars.Bound(by=[], per_group=1)])


def test_an_error_of_a_map_inside_says_at_which_distance():
    def privacy_map(d_in):
        raise dp.OpenDPException("FailedMap", f"not beyond {d_in}")

    inner = dp.m.make_user_measurement(*SPACE, PURE, len, privacy_map, TO=int)
    with pytest.raises(PrivacyMapError, match="not beyond 3") as raised:  # one frame: it is cut
        oc.c.make_interactive(inner).map(3)
    assert raised.value.d_in == 3


# --- refusals ------------------------------------------------------------------------------------


def of(measure=PURE, loss=0.25):
    return costing(loss, measure=measure)


def indexed(measurements, measure=PURE):
    return oc.c.make_indexed_composition(*SPACE, measure, 1, measurements)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (InvalidTypeError, "delta", lambda: oc.c.cast(of(), oc.tradeoff(), delta=1e-6)),
        (InvalidTypeError, "measurements", lambda: indexed(of())),
        (InvalidTypeError, r"measurements\[1\]", lambda: indexed([of(), len])),
        (InvalidValueError, "measurements", lambda: indexed([])),
        (
            UnsupportedMeasureError,
            "Approximate",
            lambda: indexed([of(APPROXIMATE_ZCDP, (0.1, 1e-9))] * 2, APPROXIMATE_ZCDP),
        ),
        (
            InvalidTypeError,
            "postprocessor",
            lambda: oc.c.make_interactive_postprocessing(of(), 7),
        ),
    ],
)
def test_it_is_refused_by_the_name_of_the_argument(error, words, call):
    with pytest.raises(error, match=f"^{words}"):
        call()
