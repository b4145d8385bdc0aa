"""What is scanned, what is refused, and what a table shows."""

import copy
import dataclasses
import gc
import os
import pickle
import re
import weakref
from datetime import date, datetime

import duckdb
import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import ForkedError, InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import Tables, table_domain, tables_of, units
from opendp_concurrent.tables.schema import schema_of

from .notes import ROWS, SCHEMA, count_of, notes, odometer_on


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("CREATE TABLE notes (person INT, note TEXT)")
        opened.execute(f"INSERT INTO notes {ROWS}")
        yield opened


def test_a_table_shows_no_rows(connection):
    table = notes(connection)
    assert repr(table) == 'Table("person": int, "note": str; unit "person")'
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InvalidTypeError, match="scan it again"):
            take(table)


def test_domains_and_metrics_are_equal_by_value(connection):
    one, other = notes(connection), notes(connection)
    assert one.space == other.space
    assert units() == units()
    for changed in (
        Tables(one.tables.schema, 3),
        Tables(schema_of({"person": str, "note": str}, "person")),
        Tables(schema_of(SCHEMA, "note")),
        Tables(schema_of({'person": int; unit "person': int, "note": str}, "note")),
    ):
        assert table_domain(changed) != one.space[0]
    assert one.space[0].member(one)
    assert not one.space[0].member([1, 2])
    assert tables_of(*one.space) == one.tables


def test_a_transformation_refuses_data_of_another_domain(connection):
    table = notes(connection)
    asked = count_of(table)
    truncated = (table.space >> oc.t.then_truncate(1))(table)
    for wrong in (truncated, [1, 2], None, connection):
        with pytest.raises(Exception, match="arg must be Table"):
            asked(wrong)


def test_a_table_keeps_its_connection_until_it_is_freed(connection):
    table = notes(connection)
    freed = weakref.ref(table)
    root = odometer_on(table)
    del table
    gc.collect()
    assert freed() is not None
    del root
    gc.collect()
    assert freed() is None


def test_a_snapshot_does_not_change(connection):
    moving, still = notes(connection), notes(connection, snapshot=True)
    connection.execute("DELETE FROM notes WHERE person = 1")
    assert count_of(moving)(moving) == 1
    assert count_of(still)(still) == 3


def databases(connection):
    return connection.execute("SELECT count(*) FROM duckdb_databases()").fetchone()[0]


def test_a_materialized_truncation_runs_once_for_all_launches(connection):
    table = notes(connection)
    before = databases(connection)
    truncate = table.space >> oc.t.then_truncate(1, materialize=True)
    odometer = truncate >> oc.then_concurrent_odometer(dp.max_divergence())
    root = odometer(table)
    assert databases(connection) == before + 1
    connection.execute("DELETE FROM notes")
    count = truncate.output_space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=1e-9)
    assert root(count) == 2
    assert root(count) == 2
    assert databases(connection) == before + 1
    del root
    gc.collect()
    assert databases(connection) == before


DECIMAL = oc.tables.Decimal(2)
OF_TYPES = [  # a stored type, the type of the schema, and the reason
    ("DECIMAL(5, 2)", float, "could fail or round"),
    ("HUGEINT", int, "could fail or round"),
    ("TIMESTAMP", date, "could fail or round"),
    ("TIMESTAMP_NS", datetime, "could fail or round"),
    ("DECIMAL(19, 2)", DECIMAL, "up to 18 digits"),
    ("DECIMAL(9, 3)", DECIMAL, "could fail or round"),
    ("DOUBLE GENERATED ALWAYS AS (random())", float, "generated columns"),
]
REFUSED = [  # statements, what is scanned, and the reason
    ("CREATE VIEW v AS SELECT 1 AS person", "v", "view is refused"),
    ("SELECT 1", "v", "found 0 tables"),
    ("CREATE TABLE V (person INT)", "v", "found 0 tables"),
    ("CREATE SCHEMA a; CREATE TABLE a.v (person INT); CREATE TABLE v (person INT)", "v", "found 2"),
    ("CREATE TABLE v (x INT)", "v", "which has"),
    ("SELECT 1", "nowhere.parquet", "file that exists"),
    ("SELECT 1", "*.parquet", "file that exists"),
    ("SELECT 1", ["a.csv", "b.parquet"], "several of one kind"),
    ("SELECT 1", "(SELECT 1 AS person)", "found 0 tables"),
]


@pytest.mark.parametrize(("stored", "kind", "reason"), OF_TYPES)
def test_a_column_that_could_fail_or_change_is_refused(stored, kind, reason):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE v (person INT, x {stored})")
    with pytest.raises((InvalidTypeError, InvalidValueError), match=re.escape(reason)):
        oc.tables.scan(connection, "v", {"person": int, "x": kind}, "person")


@pytest.mark.parametrize(("statement", "table", "reason"), REFUSED)
def test_what_could_fail_or_change_is_refused(statement, table, reason):
    connection = duckdb.connect()
    connection.execute(statement)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=re.escape(reason)):
        oc.tables.scan(connection, table, {"person": int}, "person")


def test_a_decimal_is_no_unit():
    connection = duckdb.connect().execute("CREATE TABLE v (person DECIMAL(9, 2))")
    with pytest.raises((InvalidTypeError, InvalidValueError), match="unit must have no"):
        oc.tables.scan(connection, "v", {"person": DECIMAL}, "person")


def test_a_schema_picks_one_of_two_tables(connection):
    connection.execute("CREATE SCHEMA a; CREATE TABLE a.notes (person INT)")
    table = oc.tables.scan(connection, ("a", "notes"), {"person": int}, "person")
    assert count_of(table)(table) == 0


def test_a_missing_unit_is_named_and_a_missing_schema_is_proposed(connection, capsys):
    for source in ("notes.csv", connection):
        with pytest.raises(InvalidTypeError, match=r"unit must be given: .*describe_schema"):
            oc.tables.scan(source)
    connection.execute("CREATE TABLE bills (person INT, eur DECIMAL(9, 2), odd INT[])")
    table = oc.tables.scan(connection, "bills", unit="person")
    assert str(table.tables.schema) == '"person": int, "eur": Decimal(2); unit "person"'
    assert capsys.readouterr().out == oc.tables.describe_schema(connection, "bills") + "\n"


def test_texts_of_a_column_with_a_collation_are_compared_by_their_bytes(connection):
    connection.execute("CREATE TABLE c (person TEXT COLLATE NOCASE, x TEXT COLLATE NOCASE)")
    connection.execute("INSERT INTO c VALUES ('a', 'x'), ('A', 'X'), ('a', 'X')")
    table = oc.tables.scan(connection, "c", {"person": str, "x": str}, "person")
    assert (table.space >> oc.t.then_distinct_units())(table) == 2
    once = table.space >> oc.t.then_truncate(1)
    assert (once >> oc.t.then_table_count("x", ["x", "X"]))(table) == [0, 2]
    large = table.space >> oc.t.then_where(oc.tables.col("x") == "X")
    assert (large >> oc.t.then_distinct_units())(table) == 2


def test_a_stored_copy_is_not_scanned_by_its_name(connection):
    """It is another dataset, and a table of the owner may have the same name."""
    connection.execute("CREATE TABLE rides AS SELECT 1 AS person, 5 AS v")
    copy = oc.tables.scan(connection, "rides", {"person": int, "v": int}, "person", snapshot=True)
    database, _, name = copy.relation.reference[1:]
    for table in ("t", name, (database, "main", name)):
        with pytest.raises(InvalidValueError, match="found 0 tables"):
            oc.tables.scan(connection, table, {"person": int, "v": int}, "person")
    del copy


@pytest.mark.parametrize("first", [True, False])
def test_two_states_of_one_file_are_refused_together(tmp_path, connection, first):
    path, schema = str(tmp_path / "a.parquet"), {"person": int, "v": int}
    connection.execute(f"COPY (SELECT range AS person, range AS v FROM range(5)) TO '{path}'")
    one = oc.tables.scan(connection, path, schema, "person")
    (tmp_path / "a.parquet").unlink()
    connection.execute(f"COPY (SELECT range AS person, range + 1 AS v FROM range(4)) TO '{path}'")
    other = oc.tables.scan(connection, path, schema, "person")
    both = one.with_tables(y=other) if first else other.with_tables(y=one)
    joined = both.space >> oc.t.then_private_join("y", {}) >> oc.t.then_truncate(1)
    with pytest.raises(OpenDPException):
        (joined >> oc.t.then_table_count())(both)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_asks_no_table_that_follows_from_one_of_its_parent(connection):
    connection.execute("CREATE TABLE t AS SELECT 1 AS person")
    table = oc.tables.scan(connection, "t", {"person": int}, "person")
    table = dataclasses.replace(table, _process=os.getpid() + 1)  # as if this were a fork
    for query in (oc.t.then_distinct_units(), oc.t.then_truncate(1) >> oc.t.then_table_count()):
        with pytest.raises(OpenDPException) as caught:
            (table.space >> query)(table)
        assert "process" in str(caught.value) or isinstance(caught.value, ForkedError)
    with pytest.raises(ForkedError):
        oc.tables.scan(connection, "t", {"person": int}, "person").with_tables(y=table)
