"""Stored types, files without a connection, and schemas that are proposed from what is stored."""

import shutil
from datetime import date, datetime

import duckdb
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .pipelines import rows_of

SCHEMA = {"person": int, "eur": oc.tables.Decimal(2), "key": str, "mood": str, "at": datetime}
SCHEMA |= {"local": datetime, "day": date}
READ = {  # the integers that a sum or a part must give, of two rows
    "eur": [-125, 99999999],
    "key": ["6f1ab8d1-55b5-4b3c-8b0c-1f3c8e5e3b10", "6f1ab8d1-55b5-4b3c-8b0c-1f3c8e5e3b11"],
    "mood": ["sad", "glad"],
    "at": [datetime(2024, 2, 29, 8, 14, 15, 123456), datetime(1969, 12, 31, 23, 59, 59, 999999)],
    "local": [datetime(2024, 2, 29, 13, 14), datetime(1, 1, 1)],
    "day": [date(2024, 2, 29), date(9999, 12, 31)],
}
ROWS = """
    SELECT 1 AS person, CAST(-1.25 AS DECIMAL(9, 2)) AS eur,
        CAST('6F1AB8D1-55b5-4b3c-8b0c-1f3c8e5e3b10' AS UUID) AS key, CAST('sad' AS {mood}) AS mood,
        CAST('2024-02-29 13:14:15.123456+05' AS TIMESTAMPTZ) AS at,
        CAST('2024-02-29 13:14:00' AS TIMESTAMP) AS local, CAST('2024-02-29' AS DATE) AS day
    UNION ALL SELECT 2, CAST(999999.99 AS DECIMAL(9, 2)),
        CAST('6f1ab8d1-55b5-4b3c-8b0c-1f3c8e5e3b11' AS UUID), CAST('glad' AS {mood}),
        CAST('1969-12-31 23:59:59.999999+00' AS TIMESTAMPTZ),
        CAST('0001-01-01 00:00:00' AS TIMESTAMP), CAST('9999-12-31' AS DATE)
"""
MOOD = "ENUM ('sad', 'glad')"


def values(table):
    """The columns as they are read."""
    rows = sorted(rows_of(table))
    return dict(zip(table.tables.schema.names, map(list, zip(*rows, strict=True)), strict=True))


def written(folder, name="a"):
    path = folder / f"{name}.parquet"
    duckdb.connect().execute(f"COPY ({ROWS.format(mood=MOOD)}) TO '{path}' (FORMAT parquet)")
    return path


def test_duckdb_reads_its_types():
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'Asia/Tokyo'; CREATE TABLE t AS {ROWS.format(mood=MOOD)}")
    found = values(oc.tables.scan(connection, "t", SCHEMA, "person"))
    assert found == {"person": [1, 2], **READ}


def test_postgres_reads_its_types(on_postgres):
    on_postgres.cursor.execute(b"DROP TABLE IF EXISTS kinds; DROP TYPE IF EXISTS mood")
    on_postgres.cursor.execute(f"CREATE TYPE mood AS {MOOD}".encode())
    on_postgres.cursor.execute(f"CREATE TABLE kinds AS {ROWS.format(mood='mood')}".encode())
    on_postgres.cursor.execute(b"ALTER TABLE kinds ALTER eur TYPE NUMERIC(9, 2)")
    on_postgres.cursor.execute(b"ALTER TABLE kinds ADD code CHAR(4), ADD wide NUMERIC")
    on_postgres.cursor.execute(b"UPDATE kinds SET code = 'a', wide = 1")
    schema = {**SCHEMA, "code": str}
    found = values(oc.tables.scan(on_postgres.connection, "kinds", schema, "person"))
    assert found == {"person": [1, 2], **READ, "code": ["a", "a"]}  # without blanks at the end
    fixed = oc.tables.scan(on_postgres.connection, "kinds", schema, "person", snapshot=True)
    assert values(fixed) == found
    with pytest.raises(InvalidTypeError, match="could fail or round"):
        oc.tables.scan(on_postgres.connection, "kinds", {**schema, "wide": int}, "person")
    on_postgres.cursor.execute(b"UPDATE kinds SET eur = 'NaN' WHERE person = 1")
    table = oc.tables.scan(on_postgres.connection, "kinds", schema, "person")
    assert values(table)["eur"] == [None, 99999999]


def test_an_enum_whose_cast_is_a_function_of_a_user_is_refused(on_postgres):
    on_postgres.cursor.execute(
        b"DROP TABLE IF EXISTS moods; DROP TYPE IF EXISTS evil CASCADE;"
        b"CREATE TYPE evil AS ENUM ('a');"
        b"CREATE TABLE moods (person INT, mood evil);"
    )
    table = oc.tables.scan(on_postgres.connection, "moods", {"person": int, "mood": str}, "person")
    asked = table.space >> oc.t.then_truncate(1) >> oc.t.then_table_count()
    assert asked(table) == 0
    on_postgres.cursor.execute(
        b"CREATE FUNCTION told(evil) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT now()::text';"
        b"CREATE CAST (evil AS text) WITH FUNCTION told(evil)"
    )
    with pytest.raises(OpenDPException, match="TableError"):  # checked with each statement
        asked(table)


def test_spark_reads_its_types(on_spark, tmp_path):
    """A file with a UUID cannot be read by Spark."""
    folder = tmp_path / "files.parquet"
    folder.mkdir()
    query, schema = ROWS.format(mood=MOOD), {k: SCHEMA[k] for k in SCHEMA if k != "key"}
    for name in ("a", "b"):
        path = folder / f"{name}.parquet"
        statement = f"COPY (SELECT * EXCLUDE key FROM ({query})) TO '{path}' (FORMAT parquet)"
        duckdb.connect().execute(statement)
    expected = {"person": [1, 2], **{name: READ[name] for name in READ if name != "key"}}
    assert values(oc.tables.scan(on_spark.connection, path, schema, "person")) == expected
    both = oc.tables.scan(on_spark.connection, sorted(folder.iterdir()), schema, "person")
    assert values(both)["person"] == [1, 1, 2, 2]
    assert '"eur": oc.tables.Decimal(2)' in oc.tables.describe_schema(on_spark.connection, path)
    with pytest.raises(InvalidValueError, match="Spark can read"):
        oc.tables.scan(on_spark.connection, written(tmp_path), SCHEMA, "person")


def test_files_need_no_connection(tmp_path):
    paths = [written(tmp_path, name) for name in ("visits-1", "visits-2")]
    assert values(oc.tables.scan(paths[0], SCHEMA, "person")) == {"person": [1, 2], **READ}
    for source in (paths, tmp_path / "visits-*.parquet", [str(path) for path in paths]):
        table = oc.tables.scan(source, schema=SCHEMA, unit="person")
        assert values(table)["eur"] == [-125, -125, 99999999, 99999999]
        stored = (table.space >> oc.t.then_truncate(1, materialize=True))(table)
        assert values(stored)["eur"] == [-125, 99999999]  # not shifted again
    with pytest.raises(InvalidValueError, match="unit"):
        oc.tables.scan(paths[0], SCHEMA, "nobody")


def test_each_file_is_read_under_the_same_types(tmp_path):
    path, other = written(tmp_path), tmp_path / "b.parquet"
    statement = f"COPY (SELECT * REPLACE (person::BIGINT AS person) FROM '{path}') TO '{other}'"
    duckdb.connect().execute(statement)
    with pytest.raises(InvalidTypeError, match="same columns, in the same types"):
        oc.tables.scan([path, other], SCHEMA, "person")


def test_the_list_of_files_is_that_of_the_scan_and_each_is_watched(tmp_path):
    written(tmp_path, "a")
    last = written(tmp_path, "b")
    table = oc.tables.scan(tmp_path / "*.parquet", SCHEMA, "person")
    asked = table.space >> oc.t.then_truncate(9) >> oc.t.then_table_count()
    written(tmp_path, "c")
    assert asked(table) == 4
    shutil.copy(last, tmp_path / "d")
    (tmp_path / "d").replace(last)
    with pytest.raises(OpenDPException, match="TableError"):
        asked(table)


def test_a_schema_is_proposed_as_code(tmp_path):
    path = written(tmp_path)
    code = oc.tables.describe_schema(path)
    found = {"oc": oc, "datetime": __import__("datetime")}
    exec(code, found)
    assert found["schema"] == {**SCHEMA}
    connection = duckdb.connect().execute('CREATE TABLE t (a BLOB, "x\ny" INT, c DECIMAL(30, 2))')
    assert oc.tables.describe_schema(connection, "t") == (
        'schema = {\n    # "a": BLOB, which is not read\n    "x\\ny": int,\n'
        '    # "c": DECIMAL(30,2), which is not read\n}'
    )


def test_the_types_of_a_csv_file_are_those_of_all_of_its_texts(tmp_path):
    """Codes were floats, and so were integers that no double holds: units and joins merged them."""
    path = tmp_path / "a.csv"
    columns = {  # two texts, and the type
        "i": ("1", "2", "int"),
        "f": ("1.5", "3", "float"),
        "of_pandas": ("11.0", "-7.0", "int"),
        "b": ("t", "f", "bool"),
        "d": ("2024-01-01", "", "datetime.date"),
        "t": ("2024-01-01 10:00:00", "", "datetime.datetime"),
        "iso": ("2013-01-01T10:00:00Z", "2013-01-01T10:00", "datetime.datetime"),
        "s": ("x", "1", "str"),
        "empty": ("", "", "str"),
        "zip": ("01234", "99999", "str"),
        "phone": ("+0123", "1", "str"),
        "large": (f"{2**53}", "1", "int"),
        "larger": (f"{2**53 + 1}", "1", "str"),
        "largest": ("1" * 30, "1", "str"),
        "small": ("0.5", "-0.5e300", "float"),
    }
    rows = [",".join(one[at] for one in columns.values()) for at in (0, 1)]
    path.write_text("\n".join([",".join(columns), *rows]))
    lines = [f'    "{name}": {kind},' for name, (_, _, kind) in columns.items()]
    assert oc.tables.describe_schema(path) == "\n".join(["schema = {", *lines, "}"])
    path.write_text("a,b\nsecret\n")
    with pytest.raises(InvalidValueError, match="line 2 is no such record"):
        oc.tables.describe_schema(path)
    path.write_text("")
    with pytest.raises(InvalidValueError, match="it has no line"):
        oc.tables.describe_schema(path)


def test_columns_without_a_name_or_with_that_of_another_are_comments(tmp_path):
    """A nameless column, as pandas writes its index, was one of the schema."""
    path = tmp_path / "a.csv"
    path.write_text(",a,A,b\n1,2,3,4\n")
    assert oc.tables.describe_schema(path) == (
        "schema = {\n    # a column without a name, which is not read\n"
        '    # "a": columns of this name, of which none is read\n'
        '    # "A": columns of this name, of which none is read\n    "b": int,\n}'
    )
    oc.tables.scan(path, {"b": int}, "b")
    for name in ("a", "A", ""):
        with pytest.raises(InvalidValueError, match="line 1|name"):
            oc.tables.scan(path, {name: int}, name)
