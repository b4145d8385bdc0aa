"""What is scanned becomes another table: types and kinds hold in each launch, or it fails.

In 0.2.0 they were checked by ``scan`` and then believed. After a column had become one of doubles,
1.4 and 0.6 were one unit; of texts, one of them made launches fail, whose neighbours answered.
"""

from types import SimpleNamespace

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import TableError
from opendp_concurrent.tables.duckdb import DuckDB

SCHEMA = {"person": int, "x": int}


@pytest.fixture(params=["duckdb", "postgres"])
def place(request):
    """A database of each engine that has transactions: a connection, and a function for more."""
    if request.param == "postgres":
        connect = request.getfixturevalue("own_database")
        yield SimpleNamespace(first=connect(), connect=connect)
    else:
        with duckdb.connect() as first:
            yield SimpleNamespace(first=first, connect=first.cursor)


def do(connection, statements):
    for one in statements.split(";"):
        connection.execute(one)


def scanned(place, **options):
    do(place.first, "CREATE TABLE t (person INT, x INT); INSERT INTO t VALUES (1, 5), (2, 7)")
    return oc.tables.scan(place.first, "t", SCHEMA, "person", **options)


def total(table):
    return table.space >> oc.t.then_truncate(1) >> oc.t.then_table_sum("x", (-100, 100))


def outcome(ask):
    """What an analyst sees: an answer, or the error."""
    try:
        return ask()
    except Exception as error:  # an analyst sees its type and its text
        return type(error), str(error)


FAILED = (TableError, str(TableError()))
AS = "DROP TABLE t; CREATE TABLE t AS SELECT * FROM (VALUES {}) AS v (person, x)"
VIEW = (
    "CREATE TABLE b AS SELECT * FROM (VALUES {}) AS v (person, x); DROP TABLE t; CREATE VIEW t AS "
    "SELECT person, CAST(50 * (count(*) OVER ()) - 50 AS INT) AS x FROM b"
)
DOUBLE = "CAST({} AS DOUBLE PRECISION)"
TO_TEXT = "ALTER TABLE t ALTER x TYPE VARCHAR; INSERT INTO t VALUES {}"
CHANGES = {  # what the owner does, and rows with and without one person
    "doubles": (AS, f"({DOUBLE.format(1.4)}, 100), (2.0, 0)", "(0.6, -100)"),
    "texts of units": (AS, "('1', 100), ('2', 0)", "('z', 0)"),
    "a view": (VIEW, "(1, 0), (2, 0)", "(3, 0)"),
    "another type": (TO_TEXT, "(3, '7')", "(4, 'none')"),
    "large integers": (AS.replace("SELECT *", "SELECT person, CAST(x AS DECIMAL(38, 0)) AS x"),
                       "(1, 1), (2, 2)", f"(3, {2**70})"),
    "no such column": (AS.replace("(person, x)", "(person, y)"), "(1, 1), (2, 2)", "(3, 3)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_launch_on_another_kind_of_table_is_the_same_error_for_neighbours(place, name):
    statements, rows, person = CHANGES[name]
    for one in (rows, f"{rows}, {person}"):
        table = scanned(place)
        root = (table.space >> oc.then_concurrent_odometer(dp.max_divergence()))(table)
        query = total(table) >> dp.m.then_laplace(scale=1000.0)
        root(query)
        do(place.first, statements.format(one))
        assert outcome(lambda: root(query)) == FAILED  # noqa: B023
        assert root.privacy_loss(1) == 0.2  # it is charged
        do(place.first, "DROP VIEW t; DROP TABLE b" if statements is VIEW else "DROP TABLE t")


# --- each way of asking ------------------------------------------------------------------------


def stored(table):
    return (table.space >> oc.t.then_truncate(1, materialize=True))(table)


WAYS = {
    "a statement": lambda table: lambda: total(table)(table),
    "rows that are stored": lambda table: lambda: stored(table),
    "a snapshot": lambda table: table.materialized,
}


@pytest.mark.parametrize("name", WAYS)
def test_each_way_of_asking_is_refused(place, name):
    table = scanned(place)
    ask = WAYS[name](table)
    do(place.first, AS.format("('1', 7), ('2', 7)"))  # texts that could be read
    told = outcome(ask)
    assert told == FAILED or "TableError" in told[1]  # through a native call


def test_what_is_stored_does_not_depend_on_the_table(place):
    table = scanned(place)
    kept = stored(table)
    do(place.first, AS.format("('1', 7), ('z', 7)"))
    assert (kept.space >> oc.t.then_table_count())(kept) == 2


# --- changes while a statement runs ------------------------------------------------------------


def during(monkeypatch, table, change):
    """Let the owner change something after the statement, and before it is checked."""
    kind, errors = type(table._engine), []
    check = kind.check

    def changed(self, run, scan):
        try:
            change()
        except Exception as error:  # what the engine tells the owner
            errors.append(type(error).__name__)
        check(self, run, scan)

    monkeypatch.setattr(kind, "check", changed)
    return errors


def test_a_change_while_a_statement_runs_is_not_seen_by_it(place, monkeypatch):
    """On DuckDB the transaction has its own catalogue; PostgreSQL lets the change wait."""
    table = scanned(place)
    other = place.connect()
    if not isinstance(table._engine, DuckDB):
        other.execute("SET lock_timeout = '50ms'")
    errors = during(monkeypatch, table, lambda: do(other, AS.format("('1', 0), ('z', 0)")))
    assert total(table)(table) == 12
    assert errors == ([] if isinstance(table._engine, DuckDB) else ["LockNotAvailable"])
    if not errors:
        monkeypatch.undo()
        assert outcome(lambda: total(table)(table))[0] is not int


def test_a_schema_that_is_renamed_while_a_statement_runs(own_database, monkeypatch):
    """What the name means now was not read: nobody gets the answer."""
    first = own_database()
    do(first, "CREATE SCHEMA a; CREATE TABLE a.u (person TEXT, x INT)")
    do(first, "INSERT INTO a.u VALUES ('1', 5); CREATE SCHEMA b")
    do(first, "CREATE TABLE b.u (person INT, x INT); INSERT INTO b.u VALUES (2, 7)")
    table = oc.tables.scan(first, ("b", "u"), SCHEMA, "person")
    do(first, "ALTER SCHEMA b RENAME TO c; ALTER SCHEMA a RENAME TO b")
    back = "ALTER SCHEMA b RENAME TO a; ALTER SCHEMA c RENAME TO b"
    during(monkeypatch, table, lambda: do(first, back))
    assert "TableError" in outcome(lambda: total(table)(table))[1]
    monkeypatch.undo()
    assert total(table)(table) == 7


# --- DuckDB: what a generated column and a view are known by -----------------------------------


@pytest.mark.parametrize("name", ["t", 'a "b".c', "it's; --"])
def test_columns_with_defaults_or_the_name_rowid_are_read(name):
    connection = duckdb.connect()
    spelled = '"' + name.replace('"', '""') + '"'
    connection.execute(f"CREATE TABLE {spelled} (person INT DEFAULT 3, rowid INT DEFAULT random())")
    connection.execute(f"INSERT INTO {spelled} VALUES (1, 5)")
    table = oc.tables.scan(connection, name, {"person": int, "rowid": int}, "person")
    count = table.space >> oc.t.then_truncate(1) >> oc.t.then_table_count()
    assert count(table) == 1
    connection.execute(f"ALTER TABLE {spelled} RENAME TO base")
    connection.execute(f"CREATE VIEW {spelled} AS SELECT * FROM base")
    assert "TableError" in outcome(lambda: count(table))[1]


@pytest.mark.parametrize("before", ["x INT", "x INT DEFAULT CAST(0 AS INT)"])
def test_a_generated_column_is_refused_afterwards(before):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (person INT, {before})")
    table = oc.tables.scan(connection, "t", SCHEMA, "person")
    assert total(table)(table) == 0
    connection.execute(
        "CREATE OR REPLACE TABLE t (person INT, x INT GENERATED ALWAYS AS (CAST(0 AS INT)))"
    )
    assert "TableError" in outcome(lambda: total(table)(table))[1]
