"""What is scanned: tables, files, frames, their stored types, and the schema that is proposed."""

import copy
import dataclasses
import datetime as datetimes
import gc
import os
import pickle
import re
import shutil
import weakref
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import duckdb
import pytest
from opendp.mod import OpenDPException

import opendp_concurrent as oc
from opendp_concurrent.errors import ForkedError, InvalidTypeError, InvalidValueError
from opendp_concurrent.tables.domain import Tables, table_domain, tables_of, units
from opendp_concurrent.tables.schema import schema_of

from ..build import PURE
from .pipelines import rows_of

pl, pandas = map(pytest.importorskip, ("polars", "pandas"))
SCHEMA = {"person": int, "note": str}


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("CREATE TABLE notes (person INT, note TEXT)")
        opened.execute("INSERT INTO notes VALUES (1, 'a'), (1, 'b'), (2, NULL), (NULL, 'c')")
        yield opened


@pytest.fixture
def table(connection):
    return oc.tables.scan(connection, "notes", SCHEMA, "person")


def units_of(table):
    return (table.space >> oc.t.then_distinct_units())(table)


def test_a_table_shows_no_rows(table):
    assert repr(table) == 'Table("person": int, "note": str; unit "person")'
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InvalidTypeError, match="scan it again"):
            take(table)


def test_domains_and_metrics_are_equal_by_value(connection, table):
    other = oc.tables.scan(connection, "notes", SCHEMA, "person")
    assert (table.space, units()) == (other.space, units())
    for changed in (
        Tables(table.tables.schema, 3),
        Tables(schema_of({"person": str, "note": str}, "person")),
        Tables(schema_of(SCHEMA, "note")),
        Tables(schema_of({'person": int; unit "person': int, "note": str}, "note")),
    ):
        assert table_domain(changed) != table.space[0]
    assert table.space[0].member(table)
    assert not table.space[0].member([1, 2])
    assert tables_of(*table.space) == table.tables


def test_a_transformation_refuses_data_of_another_domain(connection, table):
    asked = table.space >> oc.t.then_truncate(5) >> oc.t.then_table_count()
    truncated = (table.space >> oc.t.then_truncate(1))(table)
    for wrong in (truncated, [1, 2], None, connection):
        with pytest.raises(Exception, match="arg must be Table"):
            asked(wrong)


def test_a_table_keeps_its_connection_until_it_is_freed(connection):
    table = oc.tables.scan(connection, "notes", SCHEMA, "person")
    freed, root = weakref.ref(table), oc.make_concurrent_odometer(*table.space, PURE)(table)
    del table
    gc.collect()
    assert freed() is not None
    del root
    gc.collect()
    assert freed() is None


def test_a_schema_picks_one_of_two_tables(connection):
    connection.execute("CREATE SCHEMA a; CREATE TABLE a.notes (person INT)")
    assert units_of(oc.tables.scan(connection, ("a", "notes"), {"person": int}, "person")) == 0


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
    assert units_of(table) == 2
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


def test_two_states_of_one_file_are_refused_together(tmp_path, connection):
    path, schema, states = str(tmp_path / "a.parquet"), {"person": int, "v": int}, []
    for rows in (5, 4):
        (tmp_path / "a.parquet").unlink(missing_ok=True)
        select = f"SELECT range AS person, range + {rows} AS v FROM range({rows})"
        connection.execute(f"COPY ({select}) TO '{path}'")
        states.append(oc.tables.scan(connection, path, schema, "person"))
    for one, other in (states, states[::-1]):
        both = one.with_tables(y=other)
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


# --- folders, whose names overrode columns and chose types ----------------------------------------

PAIR = {"person": int, "x": int}
FIVE = "SELECT 7::BIGINT AS person, 5::BIGINT AS x"


def copied(path, rows=FIVE):
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = "parquet" if path.suffix == ".parquet" else "csv, HEADER"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT {kind})")
    return path


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_folder_is_no_column_and_overrides_none(tmp_path, suffix):
    path = str(copied(tmp_path / "person=1" / "region=1" / f"t.{suffix}"))
    table = oc.tables.scan(duckdb.connect(), path, PAIR, "person")
    seven = table.space >> oc.t.then_where(oc.tables.col("person") == 7)
    assert (seven >> oc.t.then_distinct_units())(table) == 1
    with pytest.raises(InvalidValueError, match=re.escape("'region'")):
        oc.tables.scan(duckdb.connect(), path, {**PAIR, "region": int}, "person")


def test_duckdb_is_told_that_folders_are_no_columns_when_a_statement_runs(tmp_path):
    """Also in a session whose folders would be columns by default."""
    path = copied(tmp_path / "region=1" / "t.parquet", "SELECT 7::BIGINT AS person, 5 AS region")
    table = oc.tables.scan(duckdb.connect(), str(path), {"person": int}, "person")
    stored = table.engine().store(table.relation)
    assert stored.engine.columns(stored.reference) == {"person": "BIGINT"}


def test_spark_guesses_no_column_and_no_type_from_folders(spark, tmp_path):
    """With the folder region=x, a column of integers was one of texts; 1 and 01 were one."""
    folder = tmp_path / "t.parquet"
    for place, name in enumerate(("region=1", "region=01", "region=x")):
        copied(folder / name / "part.parquet", FIVE.replace("7", str(place)))
    with pytest.raises(InvalidValueError, match="must be a column of the table"):
        oc.tables.scan(spark, str(folder), {**PAIR, "region": str}, "region")
    assert units_of(oc.tables.scan(spark, str(folder), PAIR, "person")) == 3
    copied(tmp_path / "u.parquet" / "x=1" / "part.parquet")
    table = oc.tables.scan(spark, str(tmp_path / "u.parquet"), PAIR, "person")
    total = table.space >> oc.t.then_truncate(1) >> oc.t.then_table_sum("x", (0, 9))
    assert total(table) == 5


# --- stored types ---------------------------------------------------------------------------------

KINDS = {"person": int, "eur": oc.tables.Decimal(2), "key": str, "mood": str, "at": datetime}
KINDS |= {"local": datetime, "day": date}
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


def written(folder, name="a", kept="*"):
    select = f"SELECT {kept} FROM ({ROWS.format(mood=MOOD)})"
    return copied(folder / f"{name}.parquet", select)


def test_duckdb_reads_its_types():
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'Asia/Tokyo'; CREATE TABLE t AS {ROWS.format(mood=MOOD)}")
    found = values(oc.tables.scan(connection, "t", KINDS, "person"))
    assert found == {"person": [1, 2], **READ}


def test_postgres_reads_its_types(on_postgres):
    on_postgres.cursor.execute(b"DROP TABLE IF EXISTS kinds; DROP TYPE IF EXISTS mood")
    on_postgres.cursor.execute(f"CREATE TYPE mood AS {MOOD}".encode())
    on_postgres.cursor.execute(f"CREATE TABLE kinds AS {ROWS.format(mood='mood')}".encode())
    on_postgres.cursor.execute(b"ALTER TABLE kinds ALTER eur TYPE NUMERIC(9, 2)")
    on_postgres.cursor.execute(b"ALTER TABLE kinds ADD code CHAR(4), ADD wide NUMERIC")
    on_postgres.cursor.execute(b"UPDATE kinds SET code = 'a', wide = 1")
    schema = {**KINDS, "code": str}
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
    path, _ = (written(folder, name, "* EXCLUDE key") for name in "ab")
    schema = {k: KINDS[k] for k in KINDS if k != "key"}
    expected = {"person": [1, 2], **{name: READ[name] for name in READ if name != "key"}}
    assert values(oc.tables.scan(on_spark.connection, path, schema, "person")) == expected
    both = oc.tables.scan(on_spark.connection, sorted(folder.iterdir()), schema, "person")
    assert values(both)["person"] == [1, 1, 2, 2]
    assert '"eur": oc.tables.Decimal(2)' in oc.tables.describe_schema(on_spark.connection, path)
    with pytest.raises(InvalidValueError, match="Spark can read"):
        oc.tables.scan(on_spark.connection, written(tmp_path), KINDS, "person")


def test_files_need_no_connection(tmp_path):
    paths = [written(tmp_path, name) for name in ("visits-1", "visits-2")]
    assert values(oc.tables.scan(paths[0], KINDS, "person")) == {"person": [1, 2], **READ}
    for source in (paths, tmp_path / "visits-*.parquet", [str(path) for path in paths]):
        table = oc.tables.scan(source, schema=KINDS, unit="person")
        assert values(table)["eur"] == [-125, -125, 99999999, 99999999]
        stored = (table.space >> oc.t.then_truncate(1, materialize=True))(table)
        assert values(stored)["eur"] == [-125, 99999999]  # not shifted again
    with pytest.raises(InvalidValueError, match="unit"):
        oc.tables.scan(paths[0], KINDS, "nobody")


def test_each_file_is_read_under_the_same_types(tmp_path):
    path = written(tmp_path)
    other = written(tmp_path, "b", "* REPLACE (person::BIGINT AS person)")
    with pytest.raises(InvalidTypeError, match="same columns, in the same types"):
        oc.tables.scan([path, other], KINDS, "person")


def test_the_list_of_files_is_that_of_the_scan_and_each_is_watched(tmp_path):
    written(tmp_path, "a")
    last = written(tmp_path, "b")
    table = oc.tables.scan(tmp_path / "*.parquet", KINDS, "person")
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
    found = {"oc": oc, "datetime": datetimes}
    exec(code, found)
    assert found["schema"] == {**KINDS}
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


# --- frames ---------------------------------------------------------------------------------------

EAST = timezone(timedelta(hours=5))
COLUMNS = {
    "person": [3, 1, 2, 2, None],
    "small": pl.Series([1, 2, None, -128, 127], dtype=pl.Int8),
    "unsigned": pl.Series([2**32 - 1, 0, 1, 2, None], dtype=pl.UInt32),
    "single": pl.Series([0.1, None, float("nan"), float("-inf"), 2.0], dtype=pl.Float32),
    "double": [1e300, 5e-324, None, -0.0, float("nan")],
    "text": ["", "a", None, "Ä\n", "b"],
    "kind": pl.Series(["u", "v", None, "u", "v"], dtype=pl.Categorical),
    "mood": pl.Series(["u", "v", None, "u", "v"], dtype=pl.Enum(["v", "u"])),
    "flag": [True, False, None, True, False],
    "day": [date(1, 1, 1), date(9999, 12, 31), None, date(2024, 2, 29), date(1969, 7, 20)],
    "time": pl.Series(
        [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None, *[datetime.min] * 2],
        dtype=pl.Datetime("us"),
    ),
    "coarse": pl.Series([datetime(2024, 2, 29, 1), *[None] * 4], dtype=pl.Datetime("ms")),
    "zoned": pl.Series([datetime(2024, 2, 29, 1, tzinfo=EAST), *[None] * 4]),
    "eur": pl.Series([Decimal("1.25"), Decimal("-0.01"), None, *[Decimal(10**15)] * 2]).cast(
        pl.Decimal(18, 2)
    ),
}
IN_FRAME = {"person": int, "small": int, "unsigned": int, "single": float, "double": float}
IN_FRAME |= {"text": str, "kind": str, "mood": str, "flag": bool, "day": date, "time": datetime}
IN_FRAME |= {"coarse": datetime, "zoned": datetime, "eur": oc.tables.Decimal(2)}


def test_each_type_is_read_as_from_a_parquet_file(tmp_path):
    frame, path = pl.LazyFrame(COLUMNS), tmp_path / "rows.parquet"
    frame.collect().write_parquet(path)
    one, *others = (
        sorted(map(repr, rows_of(oc.tables.scan(source, IN_FRAME, unit="person"))))
        for source in (path, frame, frame.collect())
    )
    assert others == [one, one]
    assert len(one) == 4  # the row of nobody is left out


def test_the_schema_that_is_proposed_is_that_of_the_types():
    proposed = oc.tables.describe_schema(pl.LazyFrame(COLUMNS))
    scope = {"oc": oc, "datetime": datetimes}
    exec(proposed, scope)
    assert scope["schema"] == IN_FRAME
    unread = oc.tables.describe_schema(pl.LazyFrame({"a": [[1]], "b": [timedelta(1)]}))
    assert unread.count("which is not read") == 2


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pl.LazyFrame({"p": [1], "x": pl.Series([1], dtype=pl.UInt64)}), "UBIGINT"),
        (pl.LazyFrame({"p": [1], "x": ["1"]}), "schema"),
        (pl.LazyFrame({"p": [1]}), "must be a column"),
        (pl.LazyFrame({"p": ["1"], "x": [1]}), "schema"),
        (oc.uncollected(pl.LazyFrame({"p": [1], "x": [1]})), "collected"),
        (pl.LazyFrame({"p": [1], "x": [1]}).filter(pl.col("y") > 0), "plan"),
        (pl.DataFrame({"p": [1]}).to_pandas().rename(columns={"p": 0}), "connection.*pandas"),
    ],
)
def test_other_frames_are_refused_by_name(frame, reason):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=reason):
        oc.tables.scan(frame, {"p": int, "x": int}, unit="p")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_nanoseconds_are_read_if_they_are_microseconds_and_never_cut(library):
    """Those of pandas were cut, and those of Polars refused."""

    def scanned(nanoseconds):
        at = pl.Series([nanoseconds, None]).cast(pl.Datetime("ns"))
        frame = pl.DataFrame({"p": [1, 2], "x": at})
        given = frame if library == "polars" else frame.to_pandas()
        return oc.tables.scan(given, {"p": int, "x": datetime}, unit="p")

    exact = scanned(1_000_000_000_000_005_000)
    day = datetime(2001, 9, 9, 1, 46, 40, 5)
    counts = exact.space >> oc.t.then_truncate(1) >> oc.t.then_table_count("x", [day, None])
    assert counts(exact) == [1, 1]
    with pytest.raises(InvalidTypeError, match="TIMESTAMP_NS"):
        scanned(1_000_000_000_000_005_001)


def test_a_plan_that_fails_does_so_before_the_owner_and_shows_no_row():
    frame = pl.LazyFrame({"p": ["1", "secret"], "x": [1, 2]}).with_columns(
        pl.col("p").cast(pl.Int64)
    )
    with pytest.raises(InvalidValueError, match="its plan has failed") as caught:
        oc.tables.scan(frame, {"p": int, "x": int}, unit="p")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_name_that_polars_reads_as_a_pattern_is_that_of_a_column():
    frame = pl.LazyFrame({"^person$": [7] * 100, "person": range(100)})
    assert units_of(oc.tables.scan(frame, {"^person$": int}, "^person$")) == 1


def test_a_frame_of_pandas_is_copied_and_its_schema_proposed(capsys):
    frame = pandas.DataFrame(
        {
            "p": [1, 2, 3],
            "zone": ["n", None, "s"],
            "eur": [1.5, float("nan"), 2.0],
            "at": pandas.to_datetime(["2024-01-01T01:00:00.123456+01:00", None, None], utc=True),
            "many": pandas.array([4, None, 5], dtype="Int64"),
            "kind": pandas.Categorical(["u", "v", "u"]),
            "odd": [[1]] * 3,
        }
    )
    table = oc.tables.scan(frame, unit="p")
    lines = capsys.readouterr().out.splitlines()[1:-1]
    kinds = ["int", "str", "float", "datetime.datetime", "int", "str"]
    assert [line.partition(": ")[2].strip(",") for line in lines[:-1]] == kinds
    assert lines[-1].lstrip().startswith('# "odd"')
    bounded = table.space >> oc.t.then_truncate(1)
    for then, answer in {
        oc.t.then_table_count("zone", ["n", "s", None]): [1, 1, 1],
        oc.t.then_table_sum("eur", (0.0, 9.0), 0.5): 7,
        oc.t.then_table_count("at", [datetime(2024, 1, 1, 0, 0, 0, 123456), None]): [1, 2],
        oc.t.then_table_sum("many", (0, 9)): 9,
        oc.t.then_table_count("kind", ["u", "v"]): [2, 1],
    }.items():
        assert (bounded >> then)(table) == answer
