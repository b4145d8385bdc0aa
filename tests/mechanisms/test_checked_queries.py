"""Queries are checked before they see the data; a count of rows has OpenDP's stability."""

import gc
import inspect
import logging
import math
from fractions import Fraction
from functools import partial

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    MechanismError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.mechanisms.queries import rows_that_differ

from ..build import DATA, PURE, RENYI, SPACE, ZCDP, an_odometer, opened

SURE = 1e-3  # a scale whose noise is 0, but for odds of e^-1000
BELOW, ABOVE, EXHAUSTED = oc.handles.Outcome
Deviation = oc.handles.Deviation
COUNT = SPACE >> dp.t.then_count()


def ask(threshold=0, max_hits=10**6, scale=SURE, **more):
    """Above threshold, without noise to speak of; more keywords go to the constructor."""
    options = {"query_scale": scale, **more}
    return oc.m.make_sparse_vector(*SPACE, PURE, 1, scale, threshold, max_hits, **options)(DATA)


def test_transformations_and_callables_are_answered():
    for query in (COUNT, len, lambda rows: rows.count(2) + 2):
        assert ask(threshold=3)(query).outcome is ABOVE
        assert ask(threshold=4)(query).outcome is BELOW
    assert ask(threshold=3)((COUNT, 4)).outcome is BELOW
    assert ask(threshold=4)((COUNT, 3)).outcome is ABOVE


@pytest.mark.parametrize("guess", [0, 3, 7])
def test_a_deviation_is_the_distance_from_a_guess(guess):
    distance = abs(3 - guess)
    for query in (COUNT, len):
        queryable = ask(threshold=distance)
        assert queryable(Deviation(query, guess))
        assert not queryable((Deviation(query, guess), distance + 1))
    fine = ask(sensitivity=1.0, scale=1e-9)
    assert fine((Deviation(len, guess + 0.5), abs(2.5 - guess) - 1e-6))
    assert not fine((Deviation(len, guess + 0.5), abs(2.5 - guess) + 1e-6))


def test_a_deviation_is_refused_where_queries_must_be_monotone():
    """Deviations of one count from 0 and from a large guess move in opposite directions."""
    with pytest.raises(InvalidValueError, match="monotone"):
        ask(monotone=True)(Deviation(len, 1))


def answering(answer=5, to_type="i32", stability=lambda d_in: d_in, **spaces):
    """A transformation with this answer, or function."""
    nan = {"nan": False} if to_type[0] == "f" else {}
    return dp.t.make_user_transformation(
        spaces.get("domain", SPACE[0]),
        spaces.get("metric", SPACE[1]),
        spaces.get("output") or dp.atom_domain(T=to_type, **nan),
        spaces.get("out_metric") or dp.absolute_distance(T=to_type),
        answer if callable(answer) else lambda rows: answer,
        stability,
    )


CLAMPED, DISCRETE = dp.t.make_clamp(*SPACE, (0, 5)), dp.discrete_distance()
WIDE = answering(stability=lambda d: 2 * d)
FLOATS, WORDS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.atom_domain(T=str)
NUMBER, QUERY = "^the query must have one number as its answer", "^the query must be a transf"
WRONG = [
    (SpaceMismatchError, answering(domain=FLOATS), "^input_domain does not match"),
    (SpaceMismatchError, answering(metric=dp.insert_delete_distance()), "^input_metric does not"),
    (SpaceMismatchError, answering(out_metric=DISCRETE), "^output_metric does not match"),
    (InvalidValueError, CLAMPED >> dp.t.then_sum(), "^the sensitivity of the query .5. must"),
    (InvalidValueError, WIDE, "larger sensitivity; the query was not run"),
    (InvalidValueError, (len, math.nan), "^threshold must be finite"),
    (InvalidValueError, Deviation(len, math.nan), "^guess must be finite"),
    (PrivacyMapError, answering(stability=lambda d: 1 / 0), "ZeroDivisionError"),
    (InvalidTypeError, CLAMPED, f"{NUMBER}, found Vec"),
    (InvalidTypeError, answering(output=WORDS, out_metric=DISCRETE), f"{NUMBER}, found String"),
    (InvalidTypeError, answering(to_type="f64"), "an integer answer, found f64; for floats pass"),
    (InvalidTypeError, (), "^the message must be a query, or .*a tuple of length 0"),
    (InvalidTypeError, (len, True), "^threshold must be a number, found bool"),
    (InvalidTypeError, Deviation(5, 5), QUERY),
    (InvalidTypeError, int, f"{QUERY}ormation, or a callable"),
    (InvalidTypeError, COUNT.function, "found Function"),
]


def test_wrong_queries_are_refused_and_change_nothing():
    queryable = ask(threshold=3, max_hits=2)
    for outcomes in [ABOVE, ABOVE, EXHAUSTED], [EXHAUSTED]:  # exhausted or not
        for error, query, match in WRONG:
            with pytest.raises(error, match=match):
                queryable(query)
        assert [queryable(COUNT).outcome for _ in outcomes] == outcomes
    with pytest.raises(InvalidValueError, match="^the sensitivity of the query .nan. must"):
        ask(sensitivity=1.0)(answering(to_type="f64", stability=lambda d: math.nan))


def test_a_refused_query_is_not_computed():
    ran = []
    wide = answering(lambda rows: ran.append(rows) or 0, stability=lambda d: 2 * d)
    for query in (wide, Deviation(wide, 3), (wide, 1), (lambda rows: ran.append(rows), "x")):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            ask()(query)
    assert ran == []
    assert ask(sensitivity=2)(wide)
    assert len(ran) == 1


@pytest.mark.parametrize("kind", ["i32", "u64", "f32", "f64"])
def test_queries_of_every_type(kind):
    made = answering(2.25, kind, float) if kind[0] == "f" else answering(2, kind)
    for query in (made, lambda rows: np.uint64(2)) if kind[0] != "f" else ():
        assert ask()((query, 1.5))
        assert not ask()((query, 3))
    assert ask(sensitivity=1.0)((made, 1.9))
    assert not ask(sensitivity=1.0)((made, 2.3))


@pytest.mark.parametrize("answer", [2.5, Fraction(5, 2), np.float64(3.0), "3", None, math.nan])
def test_only_integers_answer_whole_queries(answer):
    queryable = ask(max_hits=1)
    with pytest.raises(InvalidTypeError, match="^the query must have an integer answer, found"):
        queryable(lambda rows: answer)
    assert queryable(len)


def test_a_query_that_raises_leaves_the_mechanism_as_it_was():
    def fail(rows):
        raise KeyError("no answer")

    queryable = ask(max_hits=1, threshold=2)
    for query in (fail, Deviation(fail, 3), (fail, 3), answering(fail)):
        with pytest.raises((KeyError, dp.OpenDPException)):
            queryable(query)
    assert queryable(len).outcome is ABOVE
    assert queryable(fail).outcome is EXHAUSTED  # not asked


def test_an_interrupt_within_a_query_closes_the_mechanism():
    """What it had drawn and counted by then is not known."""

    def interrupt(rows):
        raise KeyboardInterrupt

    queryable = ask(max_hits=1, threshold=2)
    with pytest.raises(KeyboardInterrupt):
        queryable(interrupt)
    with pytest.raises(oc.errors.InterruptedHandleError):
        queryable(len)


def test_a_new_transformation_at_an_old_address_is_checked():
    """Identities of objects that are gone are used again."""
    queryable = ask()
    for _ in range(200):
        queryable(SPACE >> dp.t.then_count())
        gc.collect(0)
        with pytest.raises(InvalidValueError, match="^the sensitivity of the query"):
            queryable(answering(stability=lambda d_in: 2 * d_in))


def test_what_a_callable_does_to_its_rows_does_not_reach_the_next():
    queryable = ask(threshold=3)
    queryable(lambda rows: rows.clear() or 0)
    assert queryable(len)


def test_the_stability_map_of_a_query_is_read_at_each_query():
    factor, queryable = [1], ask(threshold=1000)
    query = answering(stability=lambda d: factor[0] * d)
    assert queryable(query).outcome is BELOW
    factor[0] = 10**6
    with pytest.raises(InvalidValueError, match="sensitivity of the query"):
        queryable(query)


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
    other = SPACE[0], dp.user_distance("pairs")
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    wrong = [(SPACE, 0), (SPACE, 2), (SPACE, 2**31 - 1), (other, (1, 1)), (other, "1")]
    for space, d_in in (*wrong, (real, 0.5), (real, math.nextafter(1.0, 2.0))):
        with pytest.raises(InvalidTypeError, match="^sensitivity must be given at d_in"):
            make(space, d_in)
    assert make(other, (1, 1), sensitivity=1).map((1, 1)) > 0.0
    assert make(real, 1.0).map(1.0) > 0.0


@makers
def test_a_promise_at_d_in_is_paid_for_and_says_nothing_about_larger_distances(make):
    assert math.isclose(make(SPACE, 20, sensitivity=20).map(20), 20 * make(SPACE, 1).map(1))
    mechanism = make(SPACE, 3, sensitivity=3)
    assert mechanism.map(2) <= mechanism.map(3)
    for one in (mechanism, oc.c.cast(mechanism, ZCDP)):
        for d_in in (4, 2**31 - 1):
            with pytest.raises(InvalidValueError, match=rf"d_in \({d_in}\) must be at most 3"):
                one.map(d_in)
    with pytest.raises(dp.OpenDPException):
        dp.c.make_approximate(mechanism).map(4)
    root = opened(100.0, d_in=20)
    with pytest.raises(Exception, match="must be at most 3"):
        root(mechanism)
    assert root.privacy_loss() == 0.0


def test_transformations_are_read_at_d_in():
    """A query whose stability at d_in is above the sensitivity is refused, not only at 1."""
    total = SPACE >> dp.t.then_clamp((0, 10)) >> dp.t.then_sum()
    total.map = lambda d_in: 0  # OpenDP reads its own

    def asked(sensitivity, query):
        promised = {"threshold": 10**6, "sensitivity": sensitivity}
        return made("above_threshold", SPACE, 20, **promised)([1] * 5)(query)

    assert asked(20, COUNT).outcome is BELOW
    for sensitivity, query, found in ((20, total, 200), (1, COUNT, 20)):
        words = rf"\({found}\) must be at most {sensitivity} at d_in \(20\)"
        with pytest.raises(InvalidValueError, match=words):
            asked(sensitivity, query)


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


@pytest.mark.parametrize(
    ("error", "words", "make", "arguments", "options"),
    [
        (UnsupportedMeasureError, "output_measure", "weights", (RENYI, 1, 1.0, 4, 9), {}),
        (UnsupportedMeasureError, "output_measure", "weights", (oc.tradeoff(), 1, 1.0, 4, 9), {}),
        (InvalidValueError, "beta", "weights", (ZCDP, 1, 1.0, 4, 9), {"beta": 1.0}),
        (UnsupportedMeasureError, "output_measure", "queries", (PURE, 1, [0.5], 4), {}),
    ],
)
def test_it_is_refused_by_the_name_of_the_argument(error, words, make, arguments, options):
    makers = {
        "weights": oc.m.make_private_multiplicative_weights,
        "queries": oc.m.make_projected_queries,
    }
    with pytest.raises(error, match=f"^{words}"):
        makers[make](*SPACE, *arguments, size=1000, **options)


# --- counts of the rows of a plan, whose sensitivity is what OpenDP certifies --------------------

SCHEMA = {"who": pl.Int64, "age": pl.Int64}
EMPTY = pl.LazyFrame(schema=SCHEMA)
DOMAIN = dp.domain_of(EMPTY, infer=True)
SYMMETRIC, BY_WHO = dp.symmetric_distance(), dp.symmetric_id_distance(pl.col("who"))
OLDER, Bound = EMPTY.filter(pl.col("age") > 4), dp.polars.Bound
CHANGED = EMPTY.with_columns(pl.col("age") * 2).filter(pl.col("age") > 9)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8)


def frame(rows):
    return pl.LazyFrame(rows, schema=SCHEMA, orient="row")


def first_rows(k):
    return EMPTY.filter(pl.int_range(pl.len()).over("who") < k)


@pytest.mark.parametrize(("plan", "least"), [(EMPTY, 0), (OLDER, 5), (CHANGED, 5)])
@settings(max_examples=15)
@given(rows=ROWS)
def test_the_count_is_the_number_of_rows_and_moves_by_at_most_the_map(plan, least, rows):
    made = oc.t.make_frame_count(DOMAIN, SYMMETRIC, plan)
    here = made(frame(rows))
    assert here == sum(age >= least for _, age in rows)
    for index in range(len(rows)):
        assert abs(made(frame(rows[:index] + rows[index + 1 :])) - here) <= made.map(1)


@settings(max_examples=20)
@given(rows=ROWS, k=st.integers(1, 3))
def test_a_truncated_count_moves_by_at_most_k_if_a_person_leaves(rows, k):
    made = oc.t.make_frame_count(DOMAIN, BY_WHO, first_rows(k))
    assert made.map(1) == k
    here = made(frame(rows))
    for who in {who for who, _ in rows}:
        assert abs(made(frame([one for one in rows if one[0] != who])) - here) <= k


IN_GROUPS = Bound(by=["age"], per_group=2, num_groups=3)


@pytest.mark.parametrize(
    ("metric", "d_in", "sensitivity"),
    [
        (SYMMETRIC, 3, 3),
        (dp.change_one_distance(), 3, 6),
        (dp.frame_distance(SYMMETRIC), [Bound(per_group=4)], 4),
        (dp.frame_distance(SYMMETRIC), [IN_GROUPS], 6),
        (dp.frame_distance(SYMMETRIC), [IN_GROUPS, Bound(per_group=5)], 5),
    ],
)
def test_the_map_is_the_number_of_rows_that_differ(metric, d_in, sensitivity):
    assert oc.t.make_frame_count(DOMAIN, metric, OLDER).map(d_in) == sensitivity


def test_bounds_that_do_not_bound_the_rows_are_refused():
    for bounds in ([], [Bound(num_groups=3)], [Bound(by=["age"], per_group=2)]):
        with pytest.raises(InvalidValueError, match="^d_in must bound the number of rows"):
            rows_that_differ(bounds)


@pytest.mark.parametrize(
    ("unit", "plan", "words"),
    [
        (BY_WHO, OLDER, "truncate first"),
        (dp.change_one_id_distance(pl.col("who")), OLDER, "truncate first"),
        (SYMMETRIC, EMPTY.select(pl.len()), "^lazyframe must be a plan"),
        (SYMMETRIC, EMPTY.filter(pl.col("age") > pl.col("age").mean()), "^lazyframe must be a pl"),
        (SYMMETRIC, EMPTY.map_batches(lambda frame: frame), "^lazyframe must be a plan"),
    ],
)
def test_plans_without_a_certified_stability_are_refused(unit, plan, words):
    with pytest.raises(InvalidValueError, match=words):
        oc.t.make_frame_count(DOMAIN, unit, plan)


def test_a_sparse_vector_checks_the_sensitivity_of_a_count():
    search = oc.m.make_above_threshold(DOMAIN, BY_WHO, PURE, 1, scale=0.01, threshold=2)
    handle = search(frame([(1, 9), (1, 2), (2, 5)]))
    with pytest.raises(InvalidValueError, match=r"^the sensitivity of the query \(2\)"):
        handle(oc.t.make_frame_count(DOMAIN, BY_WHO, first_rows(2)))
    assert handle(oc.t.make_frame_count(DOMAIN, BY_WHO, first_rows(1)))


@pytest.mark.parametrize("route", ["chain", "query"])
def test_an_error_of_polars_shows_no_row(tmp_path, caplog, route):
    path = tmp_path / "visits.csv"
    rows = "who,age\n" + "1,2\n" * 500  # more than Polars reads to infer the types
    path.write_text(rows)
    data = oc.uncollected(pl.scan_csv(path))
    path.write_text(f"{rows}3,SECRET\n")
    made = oc.t.make_frame_count(DOMAIN, SYMMETRIC, EMPTY.filter(pl.col("age") > 1))
    if route == "chain":
        handle = an_odometer(space=(DOMAIN, SYMMETRIC))(data)
        query = made >> dp.m.then_laplace(scale=4.0)
    else:
        handle = oc.m.make_above_threshold(DOMAIN, SYMMETRIC, PURE, 1, 1.0, 5)(data)
        query = made
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(MechanismError) as refusal,
    ):
        handle(query)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert "SECRET" in caplog.text  # the owner's log
    if route == "chain":
        assert handle.privacy_loss(1) == 0.25
