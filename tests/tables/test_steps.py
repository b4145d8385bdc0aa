"""Transformations from tables to tables: bounds, maps and refusals."""

import duckdb
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import GroupBound, Norms, Tables
from opendp_concurrent.tables.schema import schema_of

col = oc.tables.col
SCHEMA = {"person": int, "zone": str, "day": int, "eur": float}


@pytest.fixture(scope="module")
def table():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person INT, zone TEXT, day INT, eur DOUBLE)")
    connection.execute(
        "INSERT INTO t VALUES (1, 'a', 1, 2.0), (1, 'b', 2, 3.0), (2, NULL, 1, NULL)"
    )
    return oc.tables.scan(connection, "t", SCHEMA, "person")


STEPS = {
    "with columns": oc.t.then_with_columns({"late": col("day") > 1, "eur": col("eur") * 2}),
    "where": oc.t.then_where(col("day") == 1),
    "select": oc.t.then_table_select(["zone"]),
    "truncate": oc.t.then_truncate(2),
    "per unit": oc.t.then_per_unit({"n": oc.tables.count(), "late": oc.tables.max("day")}),
    "group truncate": oc.t.then_group_truncate("zone", 2, 3),
    "public join": oc.t.then_public_join("zone", {"big": bool}, {"a": True, "b": None}),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_distance_in_units(table, name):
    step = table.space >> STEPS[name]
    assert [step.map(d_in) for d_in in (0, 1, 2, 10**9)] == [0, 1, 2, 10**9]
    for wrong in (-1, 1.5, True, "1", None):
        with pytest.raises(Exception, match="d_in"):
            step.map(wrong)


@pytest.mark.parametrize("name", STEPS)
def test_nothing_runs_before_an_aggregate_is_asked(table, name, monkeypatch):
    monkeypatch.setattr(type(table._engine), "run", None)
    derived = (table.space >> STEPS[name])(table)
    assert type(derived) is oc.tables.Table
    assert derived.tables == (table.space >> STEPS[name]).output_domain.descriptor


def norms(tables, by, groups=None):
    return tables.contribution(frozenset(by), groups)


def test_bounds_of_groups_by_hand():
    schema = schema_of(SCHEMA, "person")
    rows = Tables(schema).at_most(5)
    assert norms(rows, {"zone"}) == Norms(5, 25, 5)
    grouped = rows.at_most(6, GroupBound(frozenset({"zone"}), 3, 2))
    assert norms(grouped, {"zone"}) == Norms(5, 4 + 4 + 1, 2)  # 2 + 2 + 1 rows
    assert norms(grouped, {"zone"}, 2) == Norms(4, 8, 2)
    assert norms(grouped, {"zone", "day"}) == Norms(5, 9, 2)  # finer: at most 2 in each
    assert norms(grouped, {"day"}) == Norms(5, 25, 5)  # another column: nothing is known
    finer = Tables(schema).at_most(6, GroupBound(frozenset({"zone", "day"}), 3, 2))
    assert norms(finer, {"zone"}) == Norms(6, 36, 6)  # all groups may be in one zone
    assert finer.groups_at_most(frozenset({"zone"})) == 3
    assert grouped.groups_at_most(frozenset({"zone", "day"})) == 5


def brute(total, each, count):
    """The largest L2 norm, squared, of `count` integers of at most `each` with a sum of `total`."""
    if count == 0 or total == 0:
        return 0
    return max(
        one**2 + brute(total - one, one, count - 1) for one in range(1, min(each, total) + 1)
    )


def test_the_l2_norm_is_the_largest_of_all_vectors():
    schema = schema_of(SCHEMA, "person")
    for total in range(1, 9):
        for each in range(1, 6):
            for count in range(1, 6):
                bound = GroupBound(frozenset({"zone"}), count, each)
                tables = Tables(schema).at_most(min(total, each * count), bound)
                found = norms(tables, {"zone"})
                assert found.l2_squared == brute(min(total, each * count), each, count)
                assert found.l1 == min(total, each * count)


def test_a_bound_goes_with_its_columns(table):
    grouped = table.space >> oc.t.then_group_truncate(["zone", "day"], 2, 1)
    kept = grouped >> oc.t.then_table_select(["zone", "day"])
    lost = grouped >> oc.t.then_table_select(["zone"])
    assert len(kept.output_domain.descriptor.groups) == 1
    assert lost.output_domain.descriptor.groups == frozenset()
    assert lost.output_domain.descriptor.rows == 2


REFUSED = {
    "a text": (oc.t.then_where, ["age > 3"], "oc.tables.col"),
    "a function": (oc.t.then_where, [lambda row: True], "deterministic and total"),
    "no column": (oc.t.then_where, [col("nowhere") == 1], "must be a column"),
    "a float for an integer": (oc.t.then_where, [col("day") == 1.5], "integer"),
    "a Boolean for an integer": (oc.t.then_where, [col("day") == True], "integer"),  # noqa: E712
    "NaN": (oc.t.then_where, [col("eur") == float("nan")], "NaN"),
    "too large": (oc.t.then_where, [col("day") == 2**63], "64 bits"),
    "NUL": (oc.t.then_where, [col("zone") == "a\0"], "NUL"),
    "a surrogate": (oc.t.then_where, [col("zone") == "\ud800"], "Unicode"),
    "two types": (oc.t.then_where, [col("zone") == col("day")], "one type"),
    "no condition": (oc.t.then_where, [col("day")], "must hold or not"),
    "a truth value of arithmetic": (oc.t.then_where, [col("day") + 1], "must hold or not"),
    "no new columns": (oc.t.then_with_columns, [{}], "at least one"),
    "columns of texts": (oc.t.then_with_columns, [{"x": "day + 1"}], "oc.tables.col"),
    "the unit again": (oc.t.then_with_columns, [{"person": col("day")}], "redefine 'person'"),
    "a name in another case": (oc.t.then_with_columns, [{"Day": col("day")}], "case"),
    "no such selected": (oc.t.then_table_select, [["x"]], "must be a column"),
    "no count": (oc.t.then_per_unit, [{"n": col("day")}], "oc.tables.count"),
    "a mean": (oc.t.then_per_unit, [{"n": oc.tables.Answer("mean", "day", (0, 1))}], "count"),
    "the largest Boolean": (oc.t.then_per_unit, [{"n": oc.tables.max("x")}], "must be a column"),
    "a sum without bounds": (oc.t.then_per_unit, [{"n": oc.tables.sum("day", None)}], "bounds"),
    "the unit anew": (oc.t.then_per_unit, [{"Person": oc.tables.count()}], "more than case"),
    "nothing of a unit": (oc.t.then_per_unit, [{}], "at least one"),
    "selected twice": (oc.t.then_table_select, [["day", "day"]], "once"),
    "no rows": (oc.t.then_truncate, [0], "at least 1"),
    "part of a row": (oc.t.then_truncate, [1.5], "integer"),
    "by a float": (oc.t.then_group_truncate, ["eur", 1], "found float"),
    "by nothing": (oc.t.then_group_truncate, [[], 1], "nonempty"),
    "old name": (oc.t.then_public_join, ["zone", {"DAY": int}, {"a": 1}], "more than case"),
    "wrong key": (oc.t.then_public_join, ["zone", {"x": int}, {3: 1}], "column's type"),
    "wrong value": (oc.t.then_public_join, ["zone", {"x": int}, {"a": "b"}], "integer"),
    "too few values": (
        oc.t.then_public_join,
        ["zone", {"x": int, "y": int}, {"a": (1,)}],
        "must have 2 values",
    ),
    "no columns": (oc.t.then_public_join, ["zone", {}, {"a": ()}], "at least one column"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_shown_to_be_stable_is_refused(table, name):
    then, arguments, reason = REFUSED[name]
    with pytest.raises((InvalidTypeError, InvalidValueError), match=reason):
        table.space >> then(*arguments)


@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize(("how", "counts"), [("inner", [1, 1, 1, 0]), ("left", [1, 1, 1, 1])])
def test_a_row_has_as_many_public_partners_as_its_key_and_bounds_grow(table, library, how, counts):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"big": [1, 2, 3, 4], "zone": ["a", "a", "b", "c"], "more": 0.5})
    rows = frame if library == "polars" else frame.to_pandas()
    bounded = table.space >> oc.t.then_group_truncate("zone", 2, 3)
    joined = bounded >> oc.t.then_public_join("zone", {"big": int}, rows, how)
    known = joined.output_domain.descriptor
    assert (known.rows, [one.rows for one in known.groups]) == (2 * 6, [2 * 3])
    ask = joined >> oc.t.then_table_count("big", [1, 2, 3, None])
    assert (ask(table), ask.map(1)) == (counts, 12)
    with pytest.raises(InvalidValueError, match="rows must have the columns big, zone"):
        bounded >> oc.t.then_public_join("zone", {"big": int}, frame.select("more"))


def test_a_join_with_a_private_table_is_refused(table):
    with pytest.raises(InvalidTypeError, match="two private tables"):
        oc.t.make_public_join(*table.space, "zone", {"x": int}, table)
