"""Privacy units of tables: what counts units by the table's own column, and what does not."""

import warnings

import duckdb
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.metrics import change_one_id_distance

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, ScanWarning
from opendp_concurrent.tables.domain import units
from opendp_concurrent.tables.table import TABLES

from ..sparks import BY_HAND
from .pipelines import Data

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect().execute("CREATE TABLE t (person INT, other INT)")
    return oc.tables.scan(connection, "t", {"person": int, "other": int}, "person")


def test_an_identifier_of_opendp_is_the_unit_and_a_change_is_two_units(table):
    for one in ("person", pl.col("person")):
        assert TABLES.unit(table, *dp.unit_of(contributions=3, identifier=one)) == (units(), 3)
    assert TABLES.unit(table, change_one_id_distance("person"), 2) == (units(), 4)


@pytest.mark.parametrize(
    "unit",
    [
        dp.unit_of(contributions=3),
        dp.unit_of(changes=1),
        dp.unit_of(contributions=1, identifier="other"),
        dp.unit_of(contributions=1, identifier="nothing"),
        dp.unit_of(contributions=1, identifier=pl.col("person") % 7),
        dp.unit_of(changes=1, identifier="other"),
        dp.unit_of(contributions=[dp.polars.Bound(per_group=3)], identifier="person"),
    ],
    ids=str,
)
def test_what_counts_something_else_is_refused(table, unit):
    with pytest.raises(InvalidTypeError, match="^privacy_unit .* own column 'person'"):
        TABLES.unit(table, *unit)


# --- each row is a unit ---------------------------------------------------------------------------

SCHEMA = {"zone": str, "hours": int}
ROWS = Data.of(SCHEMA, oc.tables.ROW, [("ab"[at % 2], at % 7) for at in range(21)])
ASKED = {
    "count": (oc.t.then_table_count(), 1),
    "distinct units": (oc.t.then_distinct_units(), 1),
    "units by zone": (oc.t.then_distinct_units("zone", ["a", "b", "c"]), 1),
    "counts": (oc.t.then_table_count("zone", ["a", "b", "c"]), 1),
    "sum": (oc.t.then_table_sum("hours", (0, 5)), 5),
    "zones": (oc.t.then_distinct_values("zone"), 1),
    "histogram": (oc.t.then_table_histogram("hours", [0, 2, 4, 9]), 1),
}


def answers(space, table, *steps):
    for step in steps:
        space = space >> step
    return {name: (space >> asked)(table) for name, (asked, _) in ASKED.items()}


@pytest.fixture(params=["duckdb", "files", "postgres", BY_HAND])
def engine(request):
    return request.getfixturevalue(f"on_{request.param}")


def test_each_row_is_a_unit_on_each_engine(engine):
    table = engine.load(ROWS)
    by_zone, total = [11, 10, 0], 3 * (0 + 1 + 2 + 3 + 4 + 5 + 5)
    expected = dict(zip(ASKED, (21, 21, by_zone, by_zone, total, 2, [6, 6, 9]), strict=True))
    assert answers(table.space, table) == expected
    said = 'Table("zone": str, "hours": int; each row is a unit; at most 1 rows a unit)'
    assert str(table) == said
    truncated = oc.t.then_truncate(2), oc.t.then_group_truncate("zone", 1, 2)
    assert answers(table.space, table, *truncated) == expected  # a unit has one row
    stored = (table.space >> oc.t.then_truncate(1, materialize=True))(table)
    assert answers(stored.space, stored) == expected
    kept = oc.t.then_where(oc.tables.col("hours") > 4)
    assert (table.space >> kept >> oc.t.then_distinct_units())(table) == 6
    keys = (table.space >> oc.m.then_table_keys("zone", d_out=(50.0, 0.1)))(table)
    assert set(keys) == {"a", "b"}
    assert abs(keys["a"] - 11) < 5
    fixed = engine.load(ROWS, snapshot=True)
    assert answers(fixed.space, fixed) == expected


ROW = st.tuples(st.sampled_from("abc"), st.integers(-1, 9))


@settings(max_examples=5, deadline=None)
@given(st.lists(ROW, max_size=9), ROW, ROW, st.booleans())
def test_one_row_more_is_distance_1_and_one_that_changes_is_distance_2(rows, one, other, changed):
    connection = duckdb.connect()
    found = []
    for added in ([one], [other] if changed else []):
        connection.execute("CREATE OR REPLACE TABLE t (zone TEXT, hours BIGINT)")
        for row in [*rows, *added][:: 1 if added == [one] else -1]:  # the order does not matter
            connection.execute("INSERT INTO t VALUES ($1, $2)", row)
        table = oc.tables.scan(connection, "t", SCHEMA, oc.tables.ROW)
        space = table.space >> oc.t.then_where(oc.tables.col("hours") >= 0)
        found.append(answers(space, table, oc.t.then_truncate(3)))
    for name, (asked, at_one) in ASKED.items():
        left, right = ([one] if isinstance(one, int) else one for one in (f[name] for f in found))
        distance = sum(abs(a - b) for a, b in zip(left, right, strict=True))
        assert (table.space >> asked).map(1) == at_one
        assert distance <= (table.space >> asked).map(2 if changed else 1)


def test_a_unit_that_is_a_row_stays_one_row(on_duckdb):
    """A row with two partners was counted as two units, at the loss of one."""
    pandas = pytest.importorskip("pandas")
    table = on_duckdb.load(Data.of(SCHEMA, oc.tables.ROW, [("a", at) for at in range(9)]))
    once = pandas.DataFrame({"zone": ["a", "b"], "big": [1, 2]})
    joined = table.space >> oc.t.then_public_join("zone", {"big": int}, once)
    units = joined >> oc.t.then_distinct_units()
    assert (units(table), units.map(1)) == (9, 1)
    with pytest.raises(InvalidValueError, match="^rows have 2 partners"):
        table.space >> oc.t.then_public_join("zone", {"big": int}, pandas.concat([once, once]))


def test_rows_are_counted_by_opendps_units_too(table):
    rows = oc.tables.scan(table.engine()._connection, "t", {"other": int}, oc.tables.ROW)
    assert TABLES.unit(rows, *dp.unit_of(contributions=3)) == (units(), 3)
    assert TABLES.unit(rows, *dp.unit_of(changes=3)) == (units(), 6)
    assert TABLES.unit(rows, *oc.tables.unit_of(units=2)) == (units(), 2)
    with pytest.raises(InvalidTypeError, match="^privacy_unit .* by the table's rows"):
        TABLES.unit(rows, *dp.unit_of(contributions=1, identifier="other"))
    context = oc.concurrent_context(rows, dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0))
    assert isinstance(context.query(epsilon=0.5).count().laplace().release(), int)


def test_parts_of_rows_that_change_are_cut_once():
    """A row may be in another part later, so that one person would be in the answers of both."""
    connection = duckdb.connect().execute("CREATE TABLE t AS SELECT 1 AS week")
    rows = oc.tables.scan(connection, "t", {"week": int}, oc.tables.ROW)
    one = rows.space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=1e-9)
    by_week = oc.c.by_column("week")
    parts = oc.c.make_parallel_composition(*rows.space, by_week, dict.fromkeys((1, 2), one))
    found = parts(rows)
    assert found[1] == 1
    connection.execute("UPDATE t SET week = 2")
    assert found[2] == 0
    odometer = oc.make_concurrent_odometer(*rows.space, dp.max_divergence())
    blocks = oc.c.make_block_filter(odometer, 1, 1.0, blocks=by_week, keys=[1])(rows)
    with pytest.raises(InvalidTypeError, match="keys cannot be added"):
        blocks.add_blocks([2])


# --- few units ------------------------------------------------------------------------------------


FEW = [(3, 150, True), (50, 500, True), (51, 5100, False), (50, 499, False), (1, 10, True)]


@pytest.mark.parametrize(("units_there", "rows", "warned"), [*FEW, (0, 0, False)])
def test_a_unit_of_few_values_warns_the_owner(on_duckdb, units_there, rows, warned):
    """A unit such as species was taken in silence; each species was protected as one person."""
    rows_of = [(f"s{at % units_there}", at) for at in range(rows)]
    data = Data.of({"species": str, "n": int}, "species", rows_of)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_duckdb.load(data)
    told = [one for one in caught if one.category is ScanWarning]
    assert len(told) == warned
    said = f"unit (species) has {units_there} different values in {rows} rows"
    assert all(said in str(one.message) for one in told)


def test_many_units_after_many_rows_of_few_do_not_warn():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range // 500 AS person FROM range(500 * 60)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        oc.tables.scan(connection, "t", {"person": int}, "person")
        oc.tables.scan(connection, "t", {"person": int}, oc.tables.ROW)
