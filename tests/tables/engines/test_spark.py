"""Spark: what is refused, errors, time, snapshots, and a session of our own."""

import gc
import logging
import re
from datetime import date

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    TableError,
)

from ..notes import ROWS, SECRET, count_of, notes, odometer_on


@pytest.fixture
def session(spark):
    spark.sql("CREATE TABLE notes (person INT, note STRING) USING parquet")
    spark.sql(f"INSERT INTO notes {ROWS}")
    yield spark
    spark.sql("DROP TABLE IF EXISTS notes")


def test_an_error_of_the_engine_is_constant_and_logged(spark, tmp_path, caplog):
    path, connection = str(tmp_path / "notes.parquet"), duckdb.connect()
    connection.execute(f"COPY (SELECT 1::INT AS person) TO '{path}' (FORMAT parquet)")
    table = oc.tables.scan(spark, path, {"person": int}, "person")
    asked, root = count_of(table), odometer_on(table)
    connection.execute(f"COPY (SELECT '{SECRET}' AS person) TO '{path}' (FORMAT parquet)")
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.tables"),
        pytest.raises(TableError) as caught,
    ):
        root(asked >> dp.m.then_laplace(scale=1.0))
    assert "column: [person]" in caplog.text  # for the owner: its type is another one now
    assert str(caught.value) == str(TableError())
    for linked in (caught.value.__context__, caught.value.__cause__):
        assert linked is None or SECRET not in repr(linked)
    assert root.privacy_loss(1) == 5.0  # it stays charged


def test_a_snapshot_does_not_change_and_is_dropped(session):
    still = notes(session, snapshot=True)
    session.sql("INSERT OVERWRITE notes VALUES (3, 'd')")
    again = notes(session)
    assert count_of(again)(again) == 1
    assert count_of(still)(still) == 3
    views = still._engine._session.catalog
    stored = still.relation.reference[1]
    assert stored in [one.name for one in views.listTables()]
    assert stored not in [one.name for one in session.catalog.listTables()]
    still = None
    gc.collect()
    assert stored not in [one.name for one in views.listTables()]


CHANGES = {
    "a view": "CREATE VIEW notes AS SELECT 1 AS person, CAST(count(*) OVER () AS STRING) AS note",
    "another type": "CREATE TABLE notes (person STRING, note STRING) USING parquet",
    "another format": "CREATE TABLE notes (person INT, note STRING) USING csv",
    "nothing": "SELECT 1",
}


@pytest.mark.parametrize(
    ("name", "parts"),
    [*((name, "") for name in CHANGES), ("another type", "PARTITIONED BY (note)")],
)
def test_a_table_of_another_kind_is_refused_afterwards(spark, name, parts):
    """Types and kinds were checked once. With parts, Spark lists the files anew."""
    spark.sql(f"CREATE TABLE notes (person INT, note STRING) USING parquet {parts}")
    try:
        table = notes(spark)
        assert count_of(table)(table) == 0
        spark.sql("DROP TABLE notes")
        spark.sql(CHANGES[name])
        root = odometer_on(table)
        with pytest.raises(TableError):
            root(count_of(table) >> dp.m.then_laplace(scale=1.0))
        with pytest.raises(TableError):
            table.materialized()
    finally:
        spark.sql("DROP VIEW IF EXISTS notes" if name == "a view" else "DROP TABLE IF EXISTS notes")


def test_settings_of_the_caller_do_not_change_a_statement(spark, tmp_path):
    path = str(tmp_path / "x.parquet")
    duckdb.connect().execute(
        'COPY (SELECT 1::INT AS person, 7::INT AS "a.*", 8::INT AS "aa", '
        f"DATE '1066-10-14' AS day) TO '{path}' (FORMAT parquet)"
    )
    schema = {"person": int, "a.*": int, "day": date}
    before = spark.conf.get("spark.sql.parser.quotedRegexColumnNames")
    try:
        spark.conf.set("spark.sql.parser.quotedRegexColumnNames", "true")
        table = oc.tables.scan(spark, path, schema, "person")
        once = table.space >> oc.t.then_truncate(1)
        assert (once >> oc.t.then_table_sum("a.*", (0, 99)))(table) == 7
        day = oc.t.then_where(oc.tables.col("day") == date(1066, 10, 14))
        assert (once >> day >> oc.t.then_table_count())(table) == 1
        own = table._engine._session
        assert own.conf.get("spark.sql.ansi.enabled") == "true"
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.parser.quotedRegexColumnNames", before)


def test_a_name_that_spark_would_replace_is_refused(spark, tmp_path):
    """Its values would be NULL: the settings of Hadoop are put into names of columns."""
    path = str(tmp_path / "x.parquet")
    duckdb.connect().execute(
        f"""COPY (SELECT 1 AS person, 2 AS "a${{spark.app.name}}") TO '{path}' (FORMAT parquet)"""
    )
    with pytest.raises(InvalidValueError, match="rename it"):
        oc.tables.scan(spark, path, {"person": int}, "person")


REFUSED = {
    "a view": ("CREATE VIEW {} AS SELECT 1 AS person", "view is refused"),
    "a temporary view": ("CREATE TEMP VIEW {} AS SELECT 1 AS person", "view is refused"),
    "nothing": ("SELECT 1", "found none"),
    "texts": ("CREATE TABLE {} (person INT) USING csv", "stored as csv"),
    "a decimal": ("CREATE TABLE {} (person DECIMAL(9, 0)) USING parquet", "could fail or round"),
    "a collation": (
        "CREATE TABLE {} (person STRING COLLATE UTF8_LCASE) USING parquet",
        "could fail or round",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_fail_or_change_is_refused(spark, name):
    statement, reason = REFUSED[name]
    stored = f"v_{list(REFUSED).index(name)}"
    spark.sql(statement.format(stored))
    with pytest.raises((InvalidTypeError, InvalidValueError), match=re.escape(reason)):
        oc.tables.scan(spark, stored, {"person": int}, "person")


@pytest.mark.parametrize("path", ["nowhere.parquet", "*.parquet"])
def test_a_path_must_be_one_that_can_be_read(spark, path):
    with pytest.raises(InvalidValueError, match="must be"):
        oc.tables.scan(spark, path, {"person": int}, "person")
