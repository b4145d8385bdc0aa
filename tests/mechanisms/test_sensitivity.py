"""The sensitivity of a query was 1 if left out, at any d_in: 20 rows cost what 1 row costs."""

import inspect
import math
from functools import partial

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from ..build import PURE, SPACE, opened

OPTIONS = {
    "above_threshold": {"threshold": 10},
    "sparse_vector": {"threshold": 10, "max_hits": 1},
    "guess_and_check": {"tolerance": 10, "max_hits": 1},
}


def made(name, space, d_in, *, then=False, **rest):
    options = {"scale": 20.0, **OPTIONS[name], **rest}
    if then:
        return space >> getattr(oc.m, f"then_{name}")(PURE, d_in, **options)
    return getattr(oc.m, f"make_{name}")(*space, PURE, d_in, **options)


MAKERS = {f"{name} {then}": partial(made, name, then=then) for name in OPTIONS for then in (0, 1)}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@makers
def test_there_is_no_sensitivity_but_at_a_distance_of_1(make):
    for d_in in (0, 2, 20, 2**31 - 1):
        with pytest.raises(InvalidTypeError, match=rf"^sensitivity must be given at d_in .{d_in}"):
            make(SPACE, d_in)
    other = SPACE[0], dp.user_distance("pairs")
    for d_in in ((1, 1), "1", [1]):
        with pytest.raises(InvalidTypeError, match="^sensitivity must .*at distance d_in"):
            make(other, d_in)
        assert make(other, d_in, sensitivity=1).map(d_in) > 0.0
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    assert make(real, 1.0).map(1.0) > 0.0
    for d_in in (0.5, math.nextafter(1.0, 2.0), 3.0):
        for rest in ({}, {"sensitivity": None}):
            with pytest.raises(InvalidTypeError, match="sensitivity must"):
                make(real, d_in, **rest)


@makers
def test_a_sensitivity_that_is_given_is_paid_for(make):
    assert math.isclose(make(SPACE, 20, sensitivity=20).map(20), 20 * make(SPACE, 1).map(1))


@makers
def test_a_promise_at_d_in_says_nothing_about_larger_distances(make):
    mechanism = make(SPACE, 3, sensitivity=3)
    assert mechanism.map(2) <= mechanism.map(3)
    for d_in in (4, 20, 2**31 - 1):
        with pytest.raises(InvalidValueError, match=rf"d_in \({d_in}\) must be at most 3"):
            mechanism.map(d_in)
    with pytest.raises(dp.OpenDPException):
        dp.c.make_approximate(mechanism).map(4)
    with pytest.raises(InvalidValueError, match="must be at most 3"):
        oc.c.cast(mechanism, dp.zero_concentrated_divergence()).map(4)
    root = opened(100.0, d_in=20)
    with pytest.raises(Exception, match="must be at most 3"):
        root(mechanism)
    assert root.privacy_loss() == 0.0


def test_transformations_are_read_at_d_in():
    """A query whose stability at d_in is above the sensitivity is refused, not only at 1."""
    count = SPACE >> dp.t.then_count()
    total = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    replaced = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    replaced.map = lambda d_in: 0  # OpenDP reads its own

    def asked(sensitivity, query):
        promised = {"threshold": 10**6, "sensitivity": sensitivity}
        return made("above_threshold", SPACE, 20, **promised)([1] * 5)(query)

    assert asked(20, count).outcome is oc.handles.Outcome.BELOW
    for query in (total, replaced):
        with pytest.raises(InvalidValueError, match=r"\(200\) must be at most 20 at d_in \(20\)"):
            asked(20, query)
    with pytest.raises(InvalidValueError, match=r"\(20\) must be at most 1 at d_in \(20\)"):
        asked(1, count)


def context(contributions, **more):
    return oc.concurrent_context(
        data=[1] * 100,
        privacy_unit=dp.unit_of(contributions=contributions),
        privacy_loss=dp.loss_of(epsilon=3.0),
        domain=SPACE[0],
        **more,
    )


def test_contexts_ask_for_it_as_well():
    def ask(contributions, **rest):
        queries = context(contributions, split_evenly_over=2).query()
        return [
            getattr(queries, name)(PURE, contributions, **options, **rest)
            for name, options in OPTIONS.items()
        ]

    for query in ask(20, sensitivity=20) + ask(1):
        assert query.resolve(bounds=(1.0, 1e4)).map(query._d_in) <= 1.5
    for query in ask(20):
        with pytest.raises(InvalidTypeError, match=r"sensitivity must .*d_in \(20\)"):
            query.resolve(bounds=(1.0, 1e4))
    twenty = context(20)
    query = twenty.query(epsilon=1.0).above_threshold(PURE, 1, 20.0, threshold=9)
    with pytest.raises(Exception, match="must be at most 1"):
        query.release()
    assert twenty.current_privacy_loss() == 0.0


def test_other_constructors_take_their_stability_at_d_in():
    one, four = (
        oc.m.make_private_multiplicative_weights(
            *SPACE, PURE, d_in=d_in, d_out=1.0, universe=4, queries=5, size=100_000
        )
        for d_in in (1, 4)
    )
    for weights, d_in in ((one, 1), (four, 4)):
        assert weights.map(d_in) <= 1.0
        with pytest.raises(InvalidValueError, match="must be at most"):
            weights.map(d_in + 1)
    assert four.plan.scale > 1.5 * one.plan.scale
    stream = oc.integer_stream(0, 1), oc.event_presence()
    alarm = oc.m.make_alarm(*stream, PURE, scale=20.0, threshold=10)
    assert math.isclose(alarm.map(20), 20 * alarm.map(1))


def test_no_constructor_has_a_sensitivity_by_default():
    constructors = [
        one
        for group in (oc.c, oc.m, oc.t)
        for name, one in vars(group).items()
        if name.startswith(("make_", "then_"))
    ]
    with_one = [one for one in constructors if "sensitivity" in inspect.signature(one).parameters]
    assert len(with_one) >= 6
    for one in with_one:
        assert inspect.signature(one).parameters["sensitivity"].default is None, one


@pytest.mark.parametrize("metric", [dp.symmetric_distance(), dp.insert_delete_distance()])
def test_records_of_a_known_number_only_change_so_nothing_is_monotone(metric):
    """One added means one removed: some counts rise and others fall, as in change-one distance."""
    space = dp.vector_domain(dp.atom_domain(T=int), size=10), metric
    made("above_threshold", space, 2, sensitivity=1)
    with pytest.raises(InvalidValueError, match="monotone must be False"):
        made("above_threshold", space, 2, sensitivity=1, monotone=True)
