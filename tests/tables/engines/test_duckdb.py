"""References of tables and files in DuckDB."""

import json
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


def parts_of(tree):
    """The kinds of expressions in a statement, as DuckDB has parsed it."""
    if isinstance(tree, dict):
        return {tree.get("class")}.union(*map(parts_of, tree.values()))
    return set().union(*map(parts_of, tree)) if isinstance(tree, list) else set()


def test_why_a_view_of_casts_alone_is_refused():
    """Its definition is of casts and columns, and yet one row fails, and a setting is read."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visits AS SELECT 1 AS person, '20' AS age, "
        "TIMESTAMPTZ '2024-01-01 23:30:00+00' AS seen"
    )
    query = "SELECT person, CAST(age AS INT) AS age, CAST(seen AS DATE) AS day FROM visits"
    ((parsed,),) = connection.execute("SELECT json_serialize_sql($1)", [query]).fetchall()
    assert parts_of(json.loads(parsed)) - {None, "TYPE"} == {"COLUMN_REF", "CAST"}
    connection.execute(f"CREATE VIEW seen AS {query}")
    days = []
    for zone in ("UTC", "Asia/Tokyo"):
        connection.execute(f"SET TimeZone = '{zone}'")
        days += connection.execute("SELECT day FROM seen").fetchall()
    assert days[0] != days[1]
    total = "SELECT sum(age) FROM seen"
    assert connection.execute(total).fetchall() == [(20,)]
    connection.execute("INSERT INTO visits VALUES (2, 'x', NULL)")  # which tells of person 2
    with pytest.raises(duckdb.ConversionException):
        connection.execute(total)
    with pytest.raises(InvalidValueError, match="A view is refused"):
        oc.tables.scan(connection, "seen", {"person": int, "age": int}, "person")


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
