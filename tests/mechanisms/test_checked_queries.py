"""Queries are checked before they see the data."""

import gc
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
)

PURE = dp.max_divergence()
SURE = 1e-3  # a scale whose noise is 0, but for odds of e^-1000
FAR = 10**6


@pytest.fixture
def ask(space):
    """Above threshold, without noise to speak of; more keywords go to the constructor."""

    def make(data=(1, 2, 3), threshold=0, max_hits=FAR, scale=SURE, d_in=1, **more):
        return oc.m.make_sparse_vector(
            *space, PURE, d_in, scale, threshold, max_hits, query_scale=scale, **more
        )(list(data))

    return make


def test_transformations_and_callables_are_answered(ask, space):
    count = space >> dp.t.then_count()
    for query in (count, len, lambda rows: rows.count(2) + 2):
        assert ask(threshold=3)(query).outcome is oc.handles.Outcome.ABOVE
        assert ask(threshold=4)(query).outcome is oc.handles.Outcome.BELOW
    assert ask(threshold=3)((count, 4)).outcome is oc.handles.Outcome.BELOW
    assert ask(threshold=4)((count, 3)).outcome is oc.handles.Outcome.ABOVE


def test_callables_get_what_python_has(ask):
    seen = []
    ask()(lambda rows: seen.append(rows) or 0)
    assert seen == [[1, 2, 3]]
    assert type(seen[0]) is list
    frame = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    one = oc.m.make_above_threshold(*frame, PURE, 1.0, 1.0, 0.0, sensitivity=1.0)
    one(2.5)(lambda x: seen.append(x) or x)
    assert seen[1] == 2.5


@pytest.mark.parametrize("guess", [0, 1, 3, 5, 7])
def test_a_deviation_is_the_distance_from_a_guess(ask, space, guess):
    distance = abs(3 - guess)
    for query in (space >> dp.t.then_count(), len):
        queryable = ask(threshold=distance)
        assert queryable(oc.handles.Deviation(query, guess))
        assert not queryable((oc.handles.Deviation(query, guess), distance + 1))
    fine = ask(sensitivity=1.0, scale=1e-9)
    assert fine((oc.handles.Deviation(len, guess + 0.5), abs(2.5 - guess) - 1e-6))
    assert not fine((oc.handles.Deviation(len, guess + 0.5), abs(2.5 - guess) + 1e-6))


def test_a_deviation_of_a_deviation(ask):
    queryable = ask()
    twice = oc.handles.Deviation(oc.handles.Deviation(len, 5), 1)  # ||3 - 5| - 1|
    assert queryable((twice, 1))
    assert not queryable((twice, 2))


def test_a_deviation_is_refused_where_queries_must_be_monotone(ask):
    """Deviations of one count from 0 and from a large guess move in opposite directions."""
    queryable = ask(monotone=True)
    with pytest.raises(InvalidValueError, match="monotone"):
        queryable(oc.handles.Deviation(len, 1))


def narrow(domain, metric, to_type="i32", output=None, out_metric=None, stability=None):
    return dp.t.make_user_transformation(
        domain,
        metric,
        output or dp.atom_domain(T=to_type),
        out_metric or dp.absolute_distance(T=to_type),
        lambda rows: 5,
        stability or (lambda d_in: d_in),
    )


def wrong_queries(space):
    domain, metric = space
    other = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric
    bounded = dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 5))), metric
    clamped = dp.t.make_clamp(*space, (0, 5))
    yield other >> dp.t.then_count(), SpaceMismatchError, "^input_domain does not match"
    yield (
        narrow(domain, dp.insert_delete_distance()),
        SpaceMismatchError,
        "^input_metric does not match",
    )
    yield bounded >> dp.t.then_sum(), SpaceMismatchError, "^input_domain does not match"
    yield clamped >> dp.t.then_sum(), InvalidValueError, "^the sensitivity of the query .5. must"
    yield clamped, InvalidTypeError, "^the query must have one number as its answer, found Vec"
    yield (
        narrow(*space, output=dp.atom_domain(T=str), out_metric=dp.discrete_distance()),
        InvalidTypeError,
        "^the query must have one number as its answer, found String",
    )
    yield (
        narrow(*space, output=dp.atom_domain(T=bool), out_metric=dp.discrete_distance()),
        InvalidTypeError,
        "^the query must have one number as its answer, found bool",
    )
    yield (
        narrow(*space, out_metric=dp.discrete_distance()),
        SpaceMismatchError,
        "^output_metric does not match",
    )
    yield (
        narrow(*space, out_metric=dp.absolute_distance(T="i64")),
        SpaceMismatchError,
        "^output_metric does not match",
    )
    yield (
        narrow(*space, "f64", output=dp.atom_domain(T=float, nan=False)),
        InvalidTypeError,
        "^the query must have an integer answer, found f64; for floats pass sensitivity as a float",
    )
    yield narrow(*space, stability=lambda d: 2 * d), InvalidValueError, "the query was not run"
    yield narrow(*space, stability=lambda d: 1 / 0), PrivacyMapError, "ZeroDivisionError"
    yield (), InvalidTypeError, "^the message must be a query, or .*a tuple of length 0"
    yield (len, 1, 2), InvalidTypeError, "a tuple of length 3"
    yield (len, True), InvalidTypeError, "^threshold must be a number, found bool"
    yield (len, math.nan), InvalidValueError, "^threshold must be finite"
    yield oc.handles.Deviation(5, 5), InvalidTypeError, "^the query must be a transformation"
    yield oc.handles.Deviation(len, math.nan), InvalidValueError, "^guess must be finite"
    yield oc.handles.Deviation(clamped, 1), InvalidTypeError, "one number"
    yield int, InvalidTypeError, "^the query must be a transformation, or a callable"
    yield (space >> dp.t.then_count()).function, InvalidTypeError, "found Function"


def test_wrong_queries_are_refused_and_change_nothing(ask, space):
    calls = []
    queryable = ask(threshold=3, max_hits=2)
    total = 0
    for query, error, match in wrong_queries(space):
        with pytest.raises(error, match=match) as caught:
            queryable(query)
        assert isinstance(caught.value, ConcurrentError)
        total += 1
    assert total > 15
    assert not calls
    count = space >> dp.t.then_count()
    found = [queryable(count).outcome for _ in range(3)]
    assert found == [
        oc.handles.Outcome.ABOVE,
        oc.handles.Outcome.ABOVE,
        oc.handles.Outcome.EXHAUSTED,
    ]
    for query, error, match in wrong_queries(space):
        with pytest.raises(error, match=match):
            queryable(query)  # exhausted or not
    assert queryable(count).outcome is oc.handles.Outcome.EXHAUSTED


def test_a_refused_query_is_not_computed(ask, space):
    ran = []
    wide = dp.t.make_user_transformation(
        *space,
        dp.atom_domain(T="i32"),
        dp.absolute_distance(T="i32"),
        lambda rows: ran.append(rows) or 0,
        lambda d_in: 2 * d_in,
    )
    queryable = ask()
    for query in (wide, oc.handles.Deviation(wide, 3), (wide, 1)):
        with pytest.raises(InvalidValueError, match="larger sensitivity; the query was not run"):
            queryable(query)
    with pytest.raises(InvalidTypeError, match="^threshold"):
        queryable((lambda rows: ran.append(rows) or 0, "x"))
    assert ran == []
    assert ask(sensitivity=2)(wide)
    assert len(ran) == 1


def test_sensitivity_is_that_at_the_d_in_of_the_measurement(ask, space):
    count, clamped = space >> dp.t.then_count(), dp.t.make_clamp(*space, (0, 5))
    with pytest.raises(InvalidValueError, match=r"\(2\) must be at most 1 at d_in \(2\)"):
        ask(d_in=2, sensitivity=1)(count)
    assert ask(d_in=2, sensitivity=2)(count)
    assert ask(sensitivity=5)(clamped >> dp.t.then_sum())
    with pytest.raises(InvalidValueError, match=r"\(5\) must be at most 4"):
        ask(sensitivity=4)(clamped >> dp.t.then_sum())


@pytest.mark.parametrize("promise", [math.nan, -1.0])
def test_a_stability_map_that_is_no_bound(ask, space, promise):
    """NaN is refused; what is below the sensitivity is the transformation's own promise."""
    made = dp.t.make_user_transformation(
        *space,
        dp.atom_domain(T=float, nan=False),
        dp.absolute_distance(T=float),
        lambda rows: 5.0,
        lambda d_in: promise,
    )
    queryable = ask(sensitivity=1.0)
    if math.isnan(promise):
        with pytest.raises(InvalidValueError, match="^the sensitivity of the query .nan. must"):
            queryable(made)


@pytest.mark.parametrize("kind", ["i32", "i64", "u32", "u64", "usize"])
def test_whole_queries_of_every_type(ask, space, kind):
    made = narrow(*space, kind)
    assert ask()((made, 5))
    assert not ask()((made, 6))
    assert ask(sensitivity=1.0)((made, 4.9))
    assert not ask(sensitivity=1.0)((made, 5.1))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_queries_with_floats(ask, space, kind):
    made = dp.t.make_user_transformation(
        *space,
        dp.atom_domain(T=kind, nan=False),
        dp.absolute_distance(T=kind),
        lambda rows: 2.25,
        lambda d_in: 1.0 * d_in,
    )
    assert ask(sensitivity=1.0)((made, 2.2))
    assert not ask(sensitivity=1.0)((made, 2.3))
    with pytest.raises(
        InvalidTypeError, match=f"found {kind}; for floats pass sensitivity as a float"
    ):
        ask()(made)


@pytest.mark.parametrize(
    "answer", [3, np.int8(3), np.int64(3), np.uint64(3), True + 2, np.bool_(True) + np.int64(2)]
)
def test_whole_answers(ask, answer):
    for more in ({}, {"sensitivity": 1.0}):
        assert ask(**more)((lambda rows: answer, 2.5))
        assert not ask(**more)((lambda rows: answer, 3.5))


@pytest.mark.parametrize("answer", [2.5, np.float64(2.5), np.float32(2.5), Fraction(5, 2)])
def test_answers_with_a_part(ask, answer):
    queryable = ask(sensitivity=1.0)
    assert queryable((lambda rows: answer, 2.4))
    assert not queryable((lambda rows: answer, 2.6))
    with pytest.raises(InvalidTypeError, match="^the query must have an integer answer, found"):
        ask()(lambda rows: answer)


@pytest.mark.parametrize("answer", [3.0, np.float64(3.0), "3", None, [3], math.nan, 3j])
def test_only_integers_answer_whole_queries(ask, answer):
    queryable = ask(max_hits=1)
    with pytest.raises(InvalidTypeError, match="^the query must have an integer answer, found"):
        queryable(lambda rows: answer)
    assert queryable(len)


def test_answers_far_out(ask):
    for far in (2**63, 2**100, 10**400):
        assert ask()(lambda rows, far=far: far)
        assert not ask()(lambda rows, far=far: -far)
    for far in (1e290, 1e15):
        assert ask(sensitivity=1.0)(lambda rows, far=far: far)
        assert not ask(sensitivity=1.0)(lambda rows, far=far: -far)


def test_large_integers_keep_their_distance_on_a_fine_grid(ask):
    """Answers 2**53 + 1 and 2**53 + 2 on neighbours become 2 apart."""
    queryable = ask(sensitivity=1.0, answer_scale=1e-9)
    distances = [
        queryable(oc.handles.Deviation(lambda rows, a=answer: a, 2.0**53)).value
        for answer in (2**53 + 1, 2**53 + 2)
    ]
    assert distances == pytest.approx([1.0, 2.0], abs=1e-6)


@pytest.mark.parametrize("failure", [ValueError, KeyError, ZeroDivisionError])
def test_a_query_that_raises_leaves_the_mechanism_as_it_was(ask, failure):
    def fail(rows):
        raise failure("no answer")

    queryable = ask(max_hits=1, threshold=2)
    for query in (fail, oc.handles.Deviation(fail, 3), (fail, 3)):
        with pytest.raises(failure):
            queryable(query)
    assert queryable(len).outcome is oc.handles.Outcome.ABOVE
    assert queryable(fail).outcome is oc.handles.Outcome.EXHAUSTED  # not asked
    assert queryable(len).outcome is oc.handles.Outcome.EXHAUSTED


def test_an_interrupt_within_a_query_closes_the_mechanism(ask):
    """What it had drawn and counted by then is not known."""

    def interrupt(rows):
        raise KeyboardInterrupt

    queryable = ask(max_hits=1, threshold=2)
    with pytest.raises(KeyboardInterrupt):
        queryable(interrupt)
    with pytest.raises(oc.errors.InterruptedHandleError):
        queryable(len)


def test_a_transformation_that_fails_leaves_the_mechanism_as_it_was(ask, space):
    def fail(rows):
        raise ValueError("no answer")

    made = dp.t.make_user_transformation(
        *space,
        dp.atom_domain(T="i32"),
        dp.absolute_distance(T="i32"),
        fail,
        lambda d_in: d_in,
    )
    queryable = ask(max_hits=1, threshold=2)
    with pytest.raises(OpenDPException):
        queryable(made)
    assert queryable(len)
    assert queryable(made).outcome is oc.handles.Outcome.EXHAUSTED


def test_a_new_transformation_at_an_old_address_is_checked(ask, space):
    """Identities of objects that are gone are used again."""
    queryable = ask()
    for _ in range(200):
        queryable(space >> dp.t.then_count())
        gc.collect(0)
        with pytest.raises(InvalidValueError, match="^the sensitivity of the query"):
            queryable(narrow(*space, stability=lambda d_in: 2 * d_in))


def test_what_a_callable_does_to_its_rows_does_not_reach_the_next(ask):
    queryable = ask(threshold=3)
    queryable(lambda rows: rows.clear() or 0)
    assert queryable(len)


def test_the_stability_map_of_a_query_is_read_at_each_query(space):
    factor = [1]
    query = dp.t.make_user_transformation(
        *space,
        dp.atom_domain(T=int),
        dp.absolute_distance(T=int),
        lambda rows: factor[0] * len(rows),
        lambda d_in: factor[0] * d_in,
    )
    vector = oc.m.make_above_threshold(*space, PURE, 1, scale=1.0, threshold=1000.0)([1, 2, 3])
    assert vector(query).outcome is oc.handles.Outcome.BELOW
    factor[0] = 10**6
    with pytest.raises(InvalidValueError, match="sensitivity of the query"):
        vector(query)
