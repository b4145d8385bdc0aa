"""References of tables and files in DuckDB."""

import subprocess
import sys

import pytest

from opendp_concurrent.errors import InvalidValueError

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import duckdb

import opendp_concurrent as oc
from opendp_concurrent.tables.engines.duckdb import DuckDB


@pytest.fixture
def engine():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (age INT)")
        connection.execute("CREATE VIEW seen AS SELECT age FROM people")
        yield DuckDB(connection)


def test_a_stored_table_is_referred_to_by_its_whole_name(engine):
    assert engine.reference(("people",))[-2:] == ("main", "people")
    assert engine.reference(("main", "people")) == engine.reference(("people",))


def test_a_file_is_referred_to_by_its_path(engine, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,region\n41,north\n")
    assert engine.reference((str(path),)) == ("csv", str(path))


@pytest.mark.parametrize("name", ["seen", "nobody", "PEOPLE", "people*.csv", "gone.parquet"])
def test_views_patterns_and_what_is_not_there_are_refused(engine, name):
    with pytest.raises(InvalidValueError, match="^table "):
        engine.reference((name,))


def test_a_table_of_another_system_is_refused(engine, monkeypatch):
    """SQLite's columns of integers may have texts, which are cast when they are read."""
    fetch, listed = engine._fetch, "duckdb_databases()"

    def attached(text, parameters):
        assert listed in text
        other = f"(SELECT database_name, 'sqlite' AS type FROM {listed}) AS d"
        return fetch(text.replace(listed, other), parameters)

    monkeypatch.setattr(engine, "_fetch", attached)
    with pytest.raises(InvalidValueError, match="found 0 tables"):
        engine.reference(("people",))


def test_a_read_only_database_reads_a_csv_file(tmp_path):
    path, stored = tmp_path / "people.csv", str(tmp_path / "people.db")
    path.write_text("age\n41\n")
    duckdb.connect(stored).close()
    with duckdb.connect(stored, read_only=True) as connection:
        table = oc.tables.scan(connection, str(path), {"age": int}, "age")
        assert (table.space >> oc.t.then_distinct_units())(table) == 1


def test_what_is_read_of_a_refused_file_is_dropped(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age\n41\n42,\n")
    with duckdb.connect() as connection:
        before = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall()
        with pytest.raises(InvalidValueError, match="line 3"):
            oc.tables.scan(connection, str(path), {"age": int}, "age")
        after = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall()
    assert before == after


INTERRUPTED = """
import os, signal, threading, time
import duckdb
import opendp.prelude as dp
import opendp_concurrent as oc
from opendp_concurrent.tables.engines.duckdb import DuckDB
from opendp_concurrent.tables.engines.engine import opaque
dp.enable_features("contrib", "honest-but-curious")
LONG = "SELECT sum(hash(range)) FROM range(100000000000)"
connection = duckdb.connect()
connection.execute("CREATE TABLE v (person INT)")
table = oc.tables.scan(connection, "v", {"person": int}, unit="person")
engine, run = DuckDB(connection), DuckDB.run
query = table.space >> oc.t.then_truncate(per_unit=3) >> oc.t.then_table_count()
query = query >> dp.m.then_laplace(scale=6.0)
root = oc.make_concurrent_odometer(*table.space, dp.max_divergence())(table)
root(query)

def interrupted(function, *arguments):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    try:
        function(*arguments)
    except BaseException as error:
        told = oc.errors.charged(error), error.__context__, time.monotonic() - begun < 30
        print(type(error).__name__, *told)

DuckDB.run = lambda self, text, parameters, timeout: run(self, LONG, (), timeout)
interrupted(root, query)
interrupted(opaque, lambda: engine.run(LONG, (), None))
interrupted(opaque, lambda: engine.transaction(lambda run: run(LONG, ()), None))
interrupted(engine._of_parquet, "SELECT 1", "gone.parquet")
DuckDB.run = run
print(root(query) is None, root.privacy_loss(1) == 3 * query.map(1))
"""


def test_an_interrupt_during_a_statement_is_an_interrupt():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=100
    )
    assert done.stdout.splitlines() == [
        "KeyboardInterrupt True None True",
        *["KeyboardInterrupt None None True"] * 3,
        "False True",
    ], done.stderr[-2000:]
