"""The name of a folder overrode a column, and all folders together chose its type."""

import re

import duckdb
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

SCHEMA = {"person": int, "x": int}


def written(path, rows="SELECT 7::BIGINT AS person, 2::BIGINT AS x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "parquet" if path.suffix == ".parquet" else "csv, HEADER"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT {kind})")
    return str(path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_folder_is_no_column_and_overrides_none(tmp_path, suffix):
    path = written(tmp_path / "person=1" / "region=1" / f"t.{suffix}")
    table = oc.tables.scan(duckdb.connect(), path, SCHEMA, "person")
    seven = table.space >> oc.t.then_where(oc.tables.col("person") == 7)
    assert (seven >> oc.t.then_distinct_units())(table) == 1
    with pytest.raises(InvalidValueError, match=re.escape("'region'")):
        oc.tables.scan(duckdb.connect(), path, {**SCHEMA, "region": int}, "person")


def test_duckdb_is_told_that_folders_are_no_columns_when_a_statement_runs(tmp_path):
    """Also in a session whose folders would be columns by default."""
    path = written(tmp_path / "region=1" / "t.parquet", "SELECT 7::BIGINT AS person, 5 AS region")
    table = oc.tables.scan(duckdb.connect(), path, {"person": int}, "person")
    engine, relation = table.engine(), table.relation
    stored = engine.store(relation)
    assert stored.engine.columns(stored.reference) == {"person": "BIGINT"}


def test_spark_guesses_no_type_from_folders(spark, tmp_path):
    """With the folder region=x, a column of integers was one of texts; 1 and 01 were one."""
    folder = tmp_path / "t.parquet"
    for place, name in enumerate(("region=1", "region=01", "region=x")):
        written(folder / name / "part.parquet", f"SELECT {place}::BIGINT AS person, 2::BIGINT AS x")
    schema = {"person": int, "x": int, "region": str}
    with pytest.raises(InvalidValueError, match="must be a column of the table"):
        oc.tables.scan(spark, str(folder), schema, "region")
    table = oc.tables.scan(spark, str(folder), SCHEMA, "person")
    assert (table.space >> oc.t.then_distinct_units())(table) == 3


def test_a_folder_overrides_no_column_on_spark(spark, tmp_path):
    folder = tmp_path / "t.parquet"
    written(folder / "x=1" / "part.parquet", "SELECT 7::BIGINT AS person, 5::BIGINT AS x")
    table = oc.tables.scan(spark, str(folder), SCHEMA, "person")
    total = table.space >> oc.t.then_truncate(1) >> oc.t.then_table_sum("x", (0, 9))
    assert total(table) == 5
