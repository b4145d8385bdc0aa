"""Queries are checked before they see the data."""

import gc
import inspect
import math
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

from ..build import PURE, SPACE, opened

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


# --- the sensitivity of a query was 1 if left out, at any d_in: 20 rows cost what 1 row costs ---

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


# --- measures and shares that a mechanism refuses of its own, by class and name of the argument ---

ZCDP = dp.zero_concentrated_divergence()


def weights(measure, **options):
    given = {"size": 1000, **options}
    return oc.m.make_private_multiplicative_weights(*SPACE, measure, 1, 1.0, 4, 9, **given)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (UnsupportedMeasureError, "output_measure", lambda: weights(dp.renyi_divergence())),
        (UnsupportedMeasureError, "output_measure", lambda: weights(oc.tradeoff())),
        (InvalidValueError, "beta", lambda: weights(ZCDP, beta=1.0)),
        (
            UnsupportedMeasureError,
            "output_measure",
            lambda: oc.m.make_projected_queries(*SPACE, PURE, 1, [0.5], 4, size=10),
        ),
        (
            InvalidValueError,
            "beta",
            lambda: oc.mechanisms.sparse_vector_accuracy(2.0, 4.0, 9, beta=0.0),
        ),
    ],
)
def test_it_is_refused_by_the_name_of_the_argument(error, words, call):
    with pytest.raises(error, match=f"^{words}"):
        call()
