"""The sensitivity of a query was 1 if left out, at any d_in: 20 rows cost what 1 row costs."""

import inspect
import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
MAKERS = {
    "above_threshold": lambda space, d_in, **rest: oc.m.make_above_threshold(
        *space, PURE, d_in=d_in, scale=20.0, threshold=10, **rest
    ),
    "sparse_vector": lambda space, d_in, **rest: oc.m.make_sparse_vector(
        *space, PURE, d_in=d_in, scale=20.0, threshold=10, max_hits=1, **rest
    ),
    "guess_and_check": lambda space, d_in, **rest: oc.m.make_guess_and_check(
        *space, PURE, d_in=d_in, scale=20.0, tolerance=10, max_hits=1, **rest
    ),
    "then_above_threshold": lambda space, d_in, **rest: (
        space >> oc.m.then_above_threshold(PURE, d_in, scale=20.0, threshold=10, **rest)
    ),
    "then_sparse_vector": lambda space, d_in, **rest: (
        space >> oc.m.then_sparse_vector(PURE, d_in, scale=20.0, threshold=10, max_hits=1, **rest)
    ),
    "then_guess_and_check": lambda space, d_in, **rest: (
        space >> oc.m.then_guess_and_check(PURE, d_in, scale=20.0, tolerance=10, max_hits=1, **rest)
    ),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@makers
@pytest.mark.parametrize("d_in", [0, 2, 20, 2**31 - 1])
def test_there_is_no_sensitivity_but_at_a_distance_of_1(make, d_in):
    with pytest.raises(InvalidTypeError, match=rf"^sensitivity must be given at d_in \({d_in}\)"):
        make(SPACE, d_in)


@makers
def test_a_distance_that_is_no_number_has_no_sensitivity(make):
    metric = dp.user_distance("pairs")
    space = dp.vector_domain(dp.atom_domain(T=int)), metric
    for d_in in ((1, 1), "1", [1]):
        with pytest.raises(InvalidTypeError, match="^sensitivity must .*at distance d_in"):
            make(space, d_in)
        assert make(space, d_in, sensitivity=1).map(d_in) > 0.0


@makers
def test_real_distances_are_told_apart_as_well(make):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    assert make(space, 1.0).map(1.0) > 0.0
    for d_in in (0.5, math.nextafter(1.0, 2.0), 3.0):
        with pytest.raises(InvalidTypeError, match="sensitivity must"):
            make(space, d_in)
        with pytest.raises(InvalidTypeError, match="sensitivity must"):
            make(space, d_in, sensitivity=None)


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


@makers
def test_a_promise_at_a_distance_of_1_is_not_sold_at_20(make):
    root = oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*SPACE, PURE), d_in=20, d_out=100.0
    )([1] * 100)
    with pytest.raises(Exception, match="must be at most 1"):
        root(make(SPACE, 1))
    assert root.privacy_loss() == 0.0


def test_transformations_are_read_at_d_in():
    """A query whose stability at d_in is above the sensitivity is refused, not only at 1."""
    count = SPACE >> dp.t.then_count()
    total = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    handle = oc.m.make_above_threshold(
        *SPACE, PURE, d_in=20, scale=20.0, threshold=10**6, sensitivity=20
    )([1] * 5)
    assert handle(count).outcome is oc.handles.Outcome.BELOW
    with pytest.raises(InvalidValueError, match=r"\(200\) must be at most 20 at d_in \(20\)"):
        handle(total)
    with pytest.raises(InvalidValueError, match=r"\(20\) must be at most 1 at d_in \(20\)"):
        oc.m.make_above_threshold(
            *SPACE, PURE, d_in=20, scale=20.0, threshold=10**6, sensitivity=1
        )([1] * 5)(count)


def test_a_transformation_whose_map_was_replaced_is_read_by_opendp():
    total = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    total.map = lambda d_in: 0
    handle = oc.m.make_above_threshold(*SPACE, PURE, d_in=1, scale=20.0, threshold=10**6)([1] * 5)
    with pytest.raises(InvalidValueError, match=r"\(10\) must be at most 1"):
        handle(total)


def test_contexts_ask_for_it_as_well():
    def ask(contributions, **rest):
        context = oc.concurrent_context(
            data=[1] * 100,
            privacy_unit=dp.unit_of(contributions=contributions),
            privacy_loss=dp.loss_of(epsilon=3.0),
            split_evenly_over=2,
            domain=SPACE[0],
        )
        queries = context.query()
        return [
            queries.sparse_vector(PURE, contributions, threshold=9, max_hits=1, **rest),
            queries.above_threshold(PURE, contributions, threshold=9, **rest),
            queries.guess_and_check(PURE, contributions, tolerance=9, max_hits=1, **rest),
        ]

    for query in ask(20, sensitivity=20) + ask(1):
        assert query.resolve(bounds=(1.0, 1e4)).map(query._d_in) <= 1.5
    for query in ask(20):
        with pytest.raises(InvalidTypeError, match=r"sensitivity must .*d_in \(20\)"):
            query.resolve(bounds=(1.0, 1e4))
    context = oc.concurrent_context(
        data=[1] * 100,
        privacy_unit=dp.unit_of(contributions=20),
        privacy_loss=dp.loss_of(epsilon=3.0),
        domain=SPACE[0],
    )
    query = context.query(epsilon=1.0).above_threshold(PURE, 1, 20.0, threshold=9)
    with pytest.raises(Exception, match="must be at most 1"):
        query.release()
    assert context.current_privacy_loss() == 0.0


def test_scales_at_20_rows_a_person_are_found_for_20_rows():
    """The least scale grows with the rows of a person: the promise is not one for 1 row."""
    scales = []
    for contributions in (1, 20):
        context = oc.concurrent_context(
            data=[1] * 100,
            privacy_unit=dp.unit_of(contributions=contributions),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            domain=SPACE[0],
        )
        query = context.query().above_threshold(
            PURE, contributions, threshold=9, sensitivity=contributions
        )
        scales.append(query.param(bounds=(1.0, 1e4)))
    assert math.isclose(scales[1], 20 * scales[0], rel_tol=1e-3)


def test_other_constructors_take_their_stability_at_d_in():
    weights = {}
    for d_in in (1, 4):
        weights[d_in] = oc.m.make_private_multiplicative_weights(
            *SPACE, PURE, d_in=d_in, d_out=1.0, universe=4, queries=5, size=100_000
        )
        assert weights[d_in].map(d_in) <= 1.0
        with pytest.raises(InvalidValueError, match="must be at most"):
            weights[d_in].map(d_in + 1)
    assert weights[4].plan.scale > 1.5 * weights[1].plan.scale
    zcdp = dp.zero_concentrated_divergence()
    people = oc.m.make_individual_filter(*SPACE, zcdp, d_out=0.5)
    assert people.map(20) == 400 * people.map(1)
    alarm = oc.m.make_alarm(
        oc.integer_stream(0, 1), oc.event_presence(), PURE, scale=20.0, threshold=10
    )
    assert math.isclose(alarm.map(20), 20 * alarm.map(1))


def test_no_constructor_has_a_sensitivity_by_default():
    made = [
        one
        for group in (oc.c, oc.m, oc.t)
        for name, one in vars(group).items()
        if name.startswith(("make_", "then_"))
    ]
    with_one = [one for one in made if "sensitivity" in inspect.signature(one).parameters]
    assert len(with_one) >= 6
    for one in with_one:
        assert inspect.signature(one).parameters["sensitivity"].default is None, one


@pytest.mark.parametrize("metric", [dp.symmetric_distance(), dp.insert_delete_distance()])
def test_records_of_a_known_number_only_change_so_nothing_is_monotone(metric):
    """One added means one removed: some counts rise and others fall, as in change-one distance."""
    space = dp.vector_domain(dp.atom_domain(T=int), size=10), metric
    with pytest.raises(InvalidValueError, match="monotone must be False"):
        oc.m.make_above_threshold(
            *space, PURE, d_in=2, scale=20.0, threshold=10, sensitivity=1, monotone=True
        )
    oc.m.make_above_threshold(*space, PURE, d_in=2, scale=20.0, threshold=10, sensitivity=1)
