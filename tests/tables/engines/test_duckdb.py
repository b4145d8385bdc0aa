"""References of tables and files in DuckDB."""

import pytest

from opendp_concurrent.errors import InvalidValueError

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

import duckdb

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
