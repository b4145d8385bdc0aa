"""Counts of the rows of a plan, whose sensitivity is what OpenDP certifies."""

import logging

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, MechanismError
from opendp_concurrent.mechanisms.queries import rows_that_differ

pl = pytest.importorskip("polars")

SCHEMA = {"who": pl.Int64, "age": pl.Int64}
EMPTY = pl.LazyFrame(schema=SCHEMA)
DOMAIN = dp.domain_of(EMPTY, infer=True)
SYMMETRIC, PURE = dp.symmetric_distance(), dp.max_divergence()
BY_WHO = dp.symmetric_id_distance(pl.col("who"))
Bound = dp.polars.Bound


def frame(rows):
    return pl.LazyFrame(rows, schema=SCHEMA, orient="row")


def first_rows(k):
    return EMPTY.filter(pl.int_range(pl.len()).over("who") < k)


PLANS = {
    "all": (EMPTY, lambda rows: rows),
    "older": (EMPTY.filter(pl.col("age") > 4), lambda rows: [one for one in rows if one[1] > 4]),
    "changed": (
        EMPTY.with_columns(pl.col("age") * 2).filter(pl.col("age") > 9),
        lambda rows: [one for one in rows if 2 * one[1] > 9],
    ),
}
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8)


@pytest.mark.parametrize("plan", PLANS)
@settings(max_examples=15)
@given(rows=ROWS)
def test_the_count_is_the_number_of_rows_and_moves_by_at_most_the_map(plan, rows):
    lazyframe, of = PLANS[plan]
    made = oc.t.make_frame_count(DOMAIN, SYMMETRIC, lazyframe)
    here = made(frame(rows))
    assert here == len(of(rows))
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


@pytest.mark.parametrize(
    ("metric", "d_in", "sensitivity"),
    [
        (SYMMETRIC, 3, 3),
        (dp.insert_delete_distance(), 3, 3),
        (dp.change_one_distance(), 3, 6),
        (dp.hamming_distance(), 3, 6),
        (dp.frame_distance(SYMMETRIC), [Bound(per_group=4)], 4),
        (dp.frame_distance(SYMMETRIC), [Bound(by=["age"], per_group=2, num_groups=3)], 6),
        (
            dp.frame_distance(SYMMETRIC),
            [Bound(by=["age"], per_group=2, num_groups=3), Bound(per_group=5)],
            5,
        ),
    ],
)
def test_the_map_is_the_number_of_rows_that_differ(metric, d_in, sensitivity):
    made = oc.t.make_frame_count(DOMAIN, metric, EMPTY.filter(pl.col("age") > 4))
    assert made.map(d_in) == sensitivity


def test_bounds_that_do_not_bound_the_rows_are_refused():
    for bounds in ([], [Bound(num_groups=3)], [Bound(by=["age"], per_group=2)]):
        with pytest.raises(InvalidValueError, match="^d_in must bound the number of rows"):
            rows_that_differ(bounds)


@pytest.mark.parametrize("unit", [BY_WHO, dp.change_one_id_distance(pl.col("who"))])
def test_individuals_with_any_number_of_rows_are_refused(unit):
    with pytest.raises(InvalidValueError, match="truncate first"):
        oc.t.make_frame_count(DOMAIN, unit, EMPTY.filter(pl.col("age") > 4))


def test_plans_without_a_certified_stability_are_refused():
    for plan in (
        EMPTY.select(pl.len()),
        EMPTY.filter(pl.col("age") > pl.col("age").mean()),
        EMPTY.head(3),
        EMPTY.map_batches(lambda frame: frame),
    ):
        with pytest.raises(InvalidValueError, match="^lazyframe must be a plan"):
            oc.t.make_frame_count(DOMAIN, SYMMETRIC, plan)


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
        odometer = oc.make_concurrent_odometer(DOMAIN, SYMMETRIC, PURE)
        handle, ask = odometer(data), made >> dp.m.then_laplace(scale=4.0)
    else:
        handle, ask = oc.m.make_above_threshold(DOMAIN, SYMMETRIC, PURE, 1, 1.0, 5)(data), made
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.measurements"),
        pytest.raises(MechanismError) as refusal,
    ):
        handle(ask)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__context__ is None
    assert "SECRET" in caplog.text  # the owner's log
    if route == "chain":
        assert handle.privacy_loss(1) == 0.25
