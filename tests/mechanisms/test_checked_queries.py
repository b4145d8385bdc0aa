"""Queries are checked before they see the data."""

import gc
import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
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


def test_a_deviation_is_refused_where_queries_must_be_monotone(ask):
    """Deviations of one count from 0 and from a large guess move in opposite directions."""
    queryable = ask(monotone=True)
    with pytest.raises(InvalidValueError, match="monotone"):
        queryable(oc.handles.Deviation(len, 1))


def narrow(
    domain, metric, to_type="i32", output=None, out_metric=None, stability=None, answer=None
):
    nan = {"nan": False} if to_type[0] == "f" else {}
    return dp.t.make_user_transformation(
        domain,
        metric,
        output or dp.atom_domain(T=to_type, **nan),
        out_metric or dp.absolute_distance(T=to_type),
        answer or (lambda rows: 5),
        stability or (lambda d_in: d_in),
    )


def wrong_queries(space):
    domain, metric = space
    other = dp.vector_domain(dp.atom_domain(T=float, nan=False)), metric
    bounded = dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 5))), metric
    clamped, discrete = dp.t.make_clamp(*space, (0, 5)), {"out_metric": dp.discrete_distance()}
    words, truth = dp.atom_domain(T=str), dp.atom_domain(T=bool)
    far = narrow(*space, out_metric=dp.absolute_distance(T="i64"))
    floats = narrow(*space, "f64")
    count, number = space >> dp.t.then_count(), "^the query must have one number as its answer"
    query = "^the query must be a transformation"
    return {
        SpaceMismatchError: [
            (other >> dp.t.then_count(), "^input_domain does not match"),
            (narrow(domain, dp.insert_delete_distance()), "^input_metric does not match"),
            (bounded >> dp.t.then_sum(), "^input_domain does not match"),
            (narrow(*space, **discrete), "^output_metric does not match"),
            (far, "^output_metric does not match"),
        ],
        InvalidValueError: [
            (clamped >> dp.t.then_sum(), "^the sensitivity of the query .5. must"),
            (narrow(*space, stability=lambda d: 2 * d), "the query was not run"),
            ((len, math.nan), "^threshold must be finite"),
            (oc.handles.Deviation(len, math.nan), "^guess must be finite"),
        ],
        PrivacyMapError: [(narrow(*space, stability=lambda d: 1 / 0), "ZeroDivisionError")],
        InvalidTypeError: [
            (clamped, f"{number}, found Vec"),
            (narrow(*space, output=words, **discrete), f"{number}, found String"),
            (narrow(*space, output=truth, **discrete), f"{number}, found bool"),
            (floats, "an integer answer, found f64; for floats pass sensitivity as a float"),
            ((), "^the message must be a query, or .*a tuple of length 0"),
            ((len, 1, 2), "a tuple of length 3"),
            ((len, True), "^threshold must be a number, found bool"),
            (oc.handles.Deviation(5, 5), query),
            (oc.handles.Deviation(clamped, 1), "one number"),
            (int, f"{query}, or a callable"),
            (count.function, "found Function"),
        ],
    }


def test_wrong_queries_are_refused_and_change_nothing(ask, space):
    queryable, count = ask(threshold=3, max_hits=2), space >> dp.t.then_count()
    for outcomes in ("above", "above", "exhausted"), ("exhausted",):  # exhausted or not
        for error, queries in wrong_queries(space).items():
            for query, match in queries:
                with pytest.raises(error, match=match):
                    queryable(query)
        assert tuple(queryable(count).outcome.value for _ in outcomes) == outcomes


def test_a_refused_query_is_not_computed(ask, space):
    ran = []
    wide = narrow(*space, stability=lambda d: 2 * d, answer=lambda rows: ran.append(rows) or 0)
    queryable = ask()
    for query in (wide, oc.handles.Deviation(wide, 3), (wide, 1)):
        with pytest.raises(InvalidValueError, match="larger sensitivity; the query was not run"):
            queryable(query)
    with pytest.raises(InvalidTypeError, match="^threshold"):
        queryable((lambda rows: ran.append(rows) or 0, "x"))
    assert ran == []
    assert ask(sensitivity=2)(wide)
    assert len(ran) == 1


def test_a_stability_map_that_is_no_bound(ask, space):
    with pytest.raises(InvalidValueError, match="^the sensitivity of the query .nan. must"):
        ask(sensitivity=1.0)(narrow(*space, "f64", stability=lambda d: math.nan))


@pytest.mark.parametrize("kind", ["i32", "i64", "u32", "u64", "usize"])
def test_whole_queries_of_every_type(ask, space, kind):
    made = narrow(*space, kind)
    assert ask()((made, 5))
    assert not ask()((made, 6))
    assert ask(sensitivity=1.0)((made, 4.9))
    assert not ask(sensitivity=1.0)((made, 5.1))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_queries_with_floats(ask, space, kind):
    made = narrow(*space, kind, stability=float, answer=lambda rows: 2.25)
    assert ask(sensitivity=1.0)((made, 2.2))
    assert not ask(sensitivity=1.0)((made, 2.3))
    with pytest.raises(
        InvalidTypeError, match=f"found {kind}; for floats pass sensitivity as a float"
    ):
        ask()(made)


@pytest.mark.parametrize("answer", [3, np.int8(3), np.uint64(3), np.bool_(True) + np.int64(2)])
def test_whole_answers(ask, answer):
    for more in ({}, {"sensitivity": 1.0}):
        assert ask(**more)((lambda rows: answer, 2.5))
        assert not ask(**more)((lambda rows: answer, 3.5))


@pytest.mark.parametrize("answer", [2.5, np.float32(2.5), Fraction(5, 2)])
def test_answers_with_a_part(ask, answer):
    queryable = ask(sensitivity=1.0)
    assert queryable((lambda rows: answer, 2.4))
    assert not queryable((lambda rows: answer, 2.6))


NOT_WHOLE = [2.5, Fraction(5, 2), 3.0, np.float64(3.0), "3", None, [3], math.nan, 3j]


@pytest.mark.parametrize("answer", NOT_WHOLE)
def test_only_integers_answer_whole_queries(ask, answer):
    queryable = ask(max_hits=1)
    with pytest.raises(InvalidTypeError, match="^the query must have an integer answer, found"):
        queryable(lambda rows: answer)
    assert queryable(len)


def test_a_query_that_raises_leaves_the_mechanism_as_it_was(ask, space):
    def fail(rows):
        raise KeyError("no answer")

    queryable, made = ask(max_hits=1, threshold=2), narrow(*space, answer=fail)
    for query in (fail, oc.handles.Deviation(fail, 3), (fail, 3), made):
        with pytest.raises((KeyError, dp.OpenDPException)):
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
    query = narrow(*space, stability=lambda d: factor[0] * d)
    vector = oc.m.make_above_threshold(*space, PURE, 1, scale=1.0, threshold=1000.0)([1, 2, 3])
    assert vector(query).outcome is oc.handles.Outcome.BELOW
    factor[0] = 10**6
    with pytest.raises(InvalidValueError, match="sensitivity of the query"):
        vector(query)
