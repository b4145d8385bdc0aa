"""References of tables and files in DuckDB."""

import signal
import subprocess
import sys
from contextlib import nullcontext, suppress

import pytest

from opendp_concurrent.errors import InvalidValueError

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import duckdb

import opendp_concurrent as oc
from opendp_concurrent.tables.duckdb import DuckDB
from opendp_concurrent.tables.engine import opaque


@pytest.fixture
def engine():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (age INT)")
        connection.execute("CREATE VIEW seen AS SELECT age FROM people")
        yield DuckDB(connection)


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
    path.write_text("age\n41\n42,1\n")
    with duckdb.connect() as connection:
        before = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall()
        with pytest.raises(InvalidValueError, match="line 3"):
            oc.tables.scan(connection, str(path), {"age": int}, "age")
        after = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchall()
    assert before == after


class Stopping:
    """A connection whose statements stop at an interrupt, and raise DuckDB's own error then."""

    def __init__(self):
        self.said = []

    def cursor(self):
        return nullcontext(self)

    def execute(self, text, parameters=()):
        self.said.append(text)
        if text.startswith("SELECT"):
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            raise RuntimeError("Query interrupted")
        return self


def test_an_interrupt_that_stops_a_statement_is_an_interrupt():
    connection = Stopping()
    engine = DuckDB(connection)
    for work in (
        lambda: opaque(lambda: engine.run("SELECT 1", ())),
        lambda: opaque(lambda: engine.run("SELECT 1", (), of=("it is not reached",))),
        lambda: engine._of_parquet("SELECT 1", "gone.parquet"),
    ):
        with pytest.raises(KeyboardInterrupt) as caught:
            work()
        assert caught.value.__context__ is None
    assert connection.said.count("ROLLBACK") == 1


SCRIPT = """
import sys
sys.modules["sklearn"] = None  # which takes seconds, and which OpenDP would import
import duckdb, opendp.prelude as dp, opendp_concurrent as oc
dp.enable_features("contrib", "honest-but-curious")
connection = duckdb.connect()
connection.execute("CREATE TABLE people AS SELECT range AS person FROM range(3)")
people = oc.tables.scan(connection, "people", {"person": int}, "person")
context = oc.concurrent_context(people, oc.tables.unit_of(units=1), dp.loss_of(epsilon=1.0))
context.query(epsilon=0.5).truncate(1).count().laplace().release()
def function(): pass  # keeps the variables of the script until OpenDP no longer frees anything
"""


def test_a_script_ends_in_silence():
    """DuckDB printed 70 lines on what was not freed at exit: nanobind: leaked 28 instances!"""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    assert ended.stderr == ""
