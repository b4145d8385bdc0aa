"""PostgreSQL: what is refused, errors, time, snapshots, and connections of our own."""

import gc
import logging
import re
import time

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, TableError

from ..notes import ROWS, SECRET, count_of, notes, odometer_on

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def connection(own_database):
    opened = own_database()
    opened.execute("CREATE TABLE notes (person INT, note TEXT)")
    opened.execute(f"INSERT INTO notes {ROWS}")
    return opened


def others(connection, expected):
    """Whether there are so many connections besides this one; the server needs time to end some."""
    gc.collect()
    end = time.monotonic() + 20
    while True:
        ((found,),) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchall()
        if found == expected or time.monotonic() > end:
            return found == expected
        time.sleep(0.01)


def test_an_error_of_the_engine_is_constant_and_logged(connection, caplog):
    table = notes(connection)
    asked, root = count_of(table), odometer_on(table)
    connection.execute("DROP TABLE notes")
    connection.execute("CREATE TABLE notes (person TEXT, note TEXT)")
    connection.execute(f"INSERT INTO notes VALUES ('{SECRET}', 'x')")
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.tables"),
        pytest.raises(TableError) as caught,
    ):
        root(asked >> dp.m.then_laplace(scale=1.0))
    assert SECRET in caplog.text  # for the owner
    assert str(caught.value) == str(TableError())
    for linked in (caught.value.__context__, caught.value.__cause__):
        assert linked is None or SECRET not in repr(linked)
    assert root.privacy_loss(1) == 5.0  # it stays charged


def test_the_limit_of_a_login_on_time_cancels_statements_which_stay_charged(connection, caplog):
    connection.execute(
        "CREATE TABLE long AS SELECT x % 97 AS person, x FROM generate_series(1, 300000) AS g (x)"
    )
    schema = {"person": int, "x": int}
    table = oc.tables.scan(connection, "long", schema, "person")
    name = connection.info.dbname
    connection.execute(f"ALTER DATABASE {name} SET statement_timeout = '20ms'")
    idle = table._engine._connections._idle
    while idle:  # those began before
        idle.pop().close()
    root = odometer_on(table)
    with caplog.at_level(logging.ERROR), pytest.raises(TableError):
        root(count_of(table) >> dp.m.then_laplace(scale=1.0))
    assert "statement timeout" in caplog.text
    assert root.privacy_loss(1) == 5.0


def test_a_snapshot_does_not_change(connection):
    moving, still = notes(connection), notes(connection, snapshot=True)
    connection.execute("DELETE FROM notes WHERE person = 1")
    assert count_of(moving)(moving) == 1
    assert count_of(still)(still) == 3
    truncated = (still.space >> oc.t.then_truncate(1, materialize=True))(still)
    count = truncated.space >> oc.t.then_table_count()
    assert count(truncated) == 2
    still = None
    assert count(truncated) == 2  # it does not need the snapshot


def test_connections_are_closed_when_nobody_needs_them(connection):
    table = notes(connection)
    truncate = table.space >> oc.t.then_truncate(1, materialize=True)
    once = truncate(table)
    twice = (once.space >> oc.t.then_truncate(1, materialize=True))(once)
    count = twice.space >> oc.t.then_table_count()
    once = None
    assert count(twice) == 2
    assert others(connection, 2)
    twice = table = None
    assert others(connection, 0)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_failed_statement_leaves_a_materialized_table_as_it_is(connection, snapshot):
    table = notes(connection, snapshot=snapshot)
    kept = (table.space >> oc.t.then_truncate(1, materialize=True))(table)
    with pytest.raises(psycopg.Error):
        kept._engine.run("SELECT 1 / 0", ())
    assert (kept.space >> oc.t.then_table_count())(kept) == 2


REFUSED = {
    "a view": ("CREATE VIEW v AS SELECT 1 AS person", "view is refused"),
    "a materialized view": ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS person", "view is refused"),
    "nothing": ("SELECT 1", "found 0 tables"),
    "a temporary table": ("CREATE TEMP TABLE v (person INT)", "found 0 tables"),
    "two schemas": (
        "CREATE SCHEMA a; CREATE TABLE a.v (person INT); CREATE TABLE v (person INT)",
        "found 2 tables",
    ),
    "a numeric": ("CREATE TABLE v (person NUMERIC)", "could fail or round"),
    "padded texts": ("CREATE TABLE v (person CHAR(3))", "could fail or round"),
    "a domain": (
        "CREATE DOMAIN id AS INT CHECK (value < 9); CREATE TABLE v (person id)",
        "could fail or round",
    ),
    "a foreign part": (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w; "
        "CREATE TABLE v (person INT) PARTITION BY LIST (person); "
        "CREATE FOREIGN TABLE f PARTITION OF v FOR VALUES IN (1) SERVER far",
        "foreign",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_fail_or_change_is_refused(connection, name):
    statements, reason = REFUSED[name]
    connection.execute(statements)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=re.escape(reason)):
        oc.tables.scan(connection, "v", {"person": int}, "person")


def test_row_security_is_refused(connection):
    connection.execute("CREATE ROLE reader LOGIN")
    try:
        connection.execute("GRANT SELECT ON notes TO reader")
        connection.execute("ALTER TABLE notes ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY half ON notes USING (random() < 0.5)")
        told = {**connection.info.get_parameters(), "user": "reader"}
        with (
            psycopg.connect(**told) as reader,
            pytest.raises(InvalidValueError, match="found 0 tables"),
        ):
            notes(reader)
    finally:
        gc.collect()
        connection.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_database_in_another_encoding_is_refused(server):
    server.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    address = server.url.replace("+psycopg", "").rpartition("/")[0]
    with psycopg.connect(f"{address}/latin", autocommit=True) as opened:
        opened.execute("CREATE TABLE notes (person INT, note TEXT)")
        with pytest.raises(InvalidValueError, match="UTF8"):
            notes(opened)
    gc.collect()
    server.execute("DROP DATABASE latin WITH (FORCE)")
