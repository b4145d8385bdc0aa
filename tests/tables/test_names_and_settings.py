"""In 0.2.0, macros of a DuckDB database and settings of a PostgreSQL session changed answers.

``CREATE MACRO floor(x) AS random()`` was called in place of ``floor``; the sensitivity that was
certified then meant nothing. With ``array_nulls = off`` a public NULL became the text 'NULL'.
"""

import gc
import subprocess
import sys
from datetime import date, datetime

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

duckdb = pytest.importorskip("duckdb")
SCHEMA = {"person": int, "zone": str, "hours": float, "age": int}
TABLE = (
    "CREATE TABLE visits (person INT, zone TEXT, hours DOUBLE PRECISION, age INT); "
    "INSERT INTO visits VALUES (1, 'a', 1.5, 30), (1, 'b', 2.5, 30), (2, 'a', 7.5, 41), "
    "(3, NULL, 0.5, NULL), (4, 'c', 3, 9)"
)


def scanned(connection, **options):
    return oc.tables.scan(connection, "visits", SCHEMA, "person", **options)


def queries(table):
    """Queries that together call everything that a statement may call."""
    col, space, order = oc.tables.col, table.space, ["age", "hours"]
    cut = space >> oc.t.then_truncate(1, order)
    kept = space >> oc.t.then_truncate(1, order, materialize=True)
    groups = space >> oc.t.then_group_truncate("zone", 1, 1) >> oc.t.then_truncate(2)
    towns = {"a": ("west", 2.5), "b": (None, 1.0), "c": ("east", None)}
    joined = cut >> oc.t.then_public_join("zone", {"town": str, "price": float}, towns)
    day = col("zone").cast(date).fill_null(date(2024, 2, 29))
    square = (col("age") * col("age") - 7) // (-col("age")).clip(1, 5)
    number = square + (col("hours") / 2 - 1.0).cast(int) + col("zone").cast(int).fill_null(3)
    week = day.cast(datetime).dt.week() + day.dt.weekday() + day.cast(str).cut(["2"])
    derived = cut >> oc.t.then_with_columns({"number": number, "week": week})
    either = space >> oc.t.then_where((col("age") >= 18) | ~col("zone").is_in(["b", "x"]))
    return [
        cut >> oc.t.then_table_count(),
        kept >> oc.t.then_table_count(),
        cut >> oc.t.then_table_sum("hours", (-1.0, 5.0), 0.5),
        kept >> oc.t.then_table_sum("age", (-1, 35)),
        derived >> oc.t.then_table_sum("number", (-(10**6), 10**6)),
        derived >> oc.t.then_table_count("week", range(20)),
        cut >> oc.t.then_table_count("zone", ["a", "b", "z"]),
        groups >> oc.t.then_table_sum("hours", (0.0, 5.0), 0.5, "zone", ["a", "b", "c"]),
        joined >> oc.t.then_table_count("town", ["east", "west", "NULL"]),
        joined >> oc.t.then_table_sum("price", (0.0, 9.0), 0.5),
        cut >> oc.t.then_table_histogram("age", [0, 18, 35]),
        either >> oc.t.then_distinct_units(),
        space >> oc.t.then_where(col("zone") == "a") >> oc.t.then_distinct_units(),
        cut >> oc.t.then_quantile_scores("age", [0, 30, 60], 0.5),
    ]


def answers(table):
    return [query(table) for query in queries(table)]


# --- DuckDB ---------------------------------------------------------------------------------------

OPERATORS = ('"*"(a, b)', '"+"(a, b)', '"-"(a, b)', '"/"(a, b)', '"//"(a, b)')
FUNCTIONS = ("date_part(a, b)", "epoch_us(a)", "count(x)", "count_star()", "sum(x)", "unnest(x)")
CALLED = [  # macros with the names of what a statement may call
    "floor(x) AS random()",
    *(f"{one} AS 99" for one in OPERATORS + FUNCTIONS),
    *("regexp_matches(a, b) AS true", '"<"(a, b) AS true', "nullif(a, b) AS a"),
    *("make_timestamp(a) AS TIMESTAMP '2024-01-01'", "list_value(a) AS [a]"),
    *("row_number() AS 1", "dense_rank() AS 1", "current_setting(x) AS 'nocase'"),
    "current_database() AS 'elsewhere'",
    "duckdb_tables() AS TABLE SELECT 'memory' AS database_name, 'main' AS schema_name, "
    "'visits' AS table_name, '' AS sql FROM range(2)",
    "duckdb_columns() AS TABLE SELECT 'memory' AS database_name, 'main' AS schema_name, "
    "'visits' AS table_name, 'person' AS column_name, 'INTEGER' AS data_type",
]


@pytest.fixture(scope="module")
def expected():
    with duckdb.connect() as opened:
        opened.execute(TABLE)
        return answers(scanned(opened))


def shadowing(kind="", where=""):
    return [f"CREATE {kind} MACRO {where}{macro}" for macro in CALLED]


EVIL_SCHEMA = ["CREATE SCHEMA evil", *shadowing(where="evil."), "SET search_path = 'evil,main'"]
CHANGED = {  # what is done after the scan
    "macros": shadowing(),
    "temporary macros": shadowing("TEMPORARY"),
    "macros of another schema in the search path": EVIL_SCHEMA,
    "orders": [
        "SET GLOBAL default_null_order = 'nulls_first'",
        "SET GLOBAL default_order = 'desc'",
    ],
}


@pytest.mark.parametrize("name", CHANGED)
def test_macros_and_settings_of_duckdb_change_no_answer(tmp_path, expected, name):
    path, file = str(tmp_path / "visits.db"), str(tmp_path / "visits.parquet")
    with duckdb.connect(path) as opened:
        opened.execute(TABLE)
        opened.execute(f"COPY visits TO '{file}'")
        opened.execute("CREATE MACRO read_parquet(x) AS TABLE SELECT * FROM visits, range(9)")
        table = scanned(opened)
        for statement in CHANGED[name]:
            opened.execute(statement)
        assert answers(table) == answers(scanned(opened)) == expected
        assert answers(oc.tables.scan(opened, file, SCHEMA, "person")) == expected
        if CHANGED[name] is EVIL_SCHEMA:
            found = "SELECT system.main.current_setting('search_path')"
            assert opened.execute(found).fetchone() == ("evil,main",)
    with duckdb.connect(path, read_only=True) as opened:
        assert answers(scanned(opened)) == expected


def test_texts_are_compared_by_bytes_whatever_is_set_after_the_scan(expected):
    with duckdb.connect() as opened:
        opened.execute(TABLE)
        opened.execute("INSERT INTO visits VALUES (9, 'A', 1, 30)")
        table = scanned(opened)
        before = answers(table)
        opened.execute("SET GLOBAL default_collation = 'nocase'")
        assert answers(table) == before != expected


# --- PostgreSQL -----------------------------------------------------------------------------------

psycopg = pytest.importorskip("psycopg")
SETTINGS = [
    *("array_nulls = off", "quote_all_identifiers = on", "standard_conforming_strings = off"),
    *("transform_null_equals = on", "DateStyle = 'German'", "TimeZone = 'Asia/Kolkata'"),
    *("extra_float_digits = -15", "bytea_output = 'escape'", "IntervalStyle = 'sql_standard'"),
    "default_transaction_isolation = 'serializable'",
    "search_path = evil, pg_catalog, public",
]
EVIL = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.floor(float8) RETURNS float8 LANGUAGE sql AS 'SELECT random()';
CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT ''UTF8''';
CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR evil.= (FUNCTION = evil.equal, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION evil.below(float8, float8) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR evil.< (FUNCTION = evil.below, LEFTARG = float8, RIGHTARG = float8);
CREATE FUNCTION evil.times(float8, float8) RETURNS float8 LANGUAGE sql AS 'SELECT 99.0::float8';
CREATE OPERATOR evil.* (FUNCTION = evil.times, LEFTARG = float8, RIGHTARG = float8);
CREATE FUNCTION evil.minus(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 99';
CREATE OPERATOR evil.- (FUNCTION = evil.minus, LEFTARG = numeric, RIGHTARG = numeric);
CREATE FUNCTION evil.slash(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 99';
CREATE OPERATOR evil./ (FUNCTION = evil.slash, LEFTARG = bigint, RIGHTARG = bigint);
CREATE FUNCTION evil.matches(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR evil.~ (FUNCTION = evil.matches, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION evil.extract(text, date) RETURNS numeric LANGUAGE sql AS 'SELECT 99';
CREATE AGGREGATE evil.sum(bigint) (SFUNC = int8pl, STYPE = bigint, INITCOND = '7');
CREATE FUNCTION evil.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE sql AS 'SELECT NULL';
CREATE VIEW evil.pg_settings AS SELECT 'none' AS name;
"""


def test_settings_functions_and_operators_of_users_change_no_answer(own_database):
    with own_database() as opened:
        opened.execute(TABLE)
        expected = answers(scanned(opened))
        for setting in SETTINGS:
            opened.execute(f"ALTER DATABASE {own_database.name} SET {setting}")
    with own_database() as opened:  # as a login has it from now on
        assert answers(scanned(opened)) == expected
        opened.execute(EVIL)
        assert answers(scanned(opened)) == expected
    with own_database() as opened:
        assert opened.execute("SELECT floor(1.5::float8) < 1").fetchone() == (True,)  # it is found
        assert answers(scanned(opened)) == expected


def test_rows_that_a_policy_hides_are_an_error_and_no_table_to_scan(own_database):
    opened = own_database()
    opened.execute(TABLE)
    opened.execute("CREATE ROLE one_who_reads LOGIN; GRANT SELECT ON visits TO one_who_reads")
    told = {**opened.info.get_parameters(), "user": "one_who_reads"}
    try:
        with psycopg.connect(**told, autocommit=True) as reader:
            table = scanned(reader)
            count = queries(table)[0]
            assert count(table) == 4
            opened.execute("CREATE POLICY half ON visits USING (random() < 0.5)")
            opened.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
            with pytest.raises(dp.OpenDPException, match="the engine could not answer"):
                count(table)
            with pytest.raises(InvalidValueError, match="found 0 tables"):
                scanned(reader)
    finally:
        table = count = None
        gc.collect()
        opened.execute("DROP OWNED BY one_who_reads; DROP ROLE one_who_reads")


def test_settings_of_the_caller_do_not_change_a_statement_of_spark(spark, tmp_path):
    path, pattern = str(tmp_path / "x.parquet"), "spark.sql.parser.quotedRegexColumnNames"
    duckdb.connect().execute(
        'COPY (SELECT 1::INT AS person, 7::INT AS "a.*", 8::INT AS "aa", '
        f"DATE '1066-10-14' AS day) TO '{path}' (FORMAT parquet)"
    )
    before = spark.conf.get(pattern)
    try:
        spark.conf.set(pattern, "true")
        table = oc.tables.scan(spark, path, {"person": int, "a.*": int, "day": date}, "person")
        once = table.space >> oc.t.then_truncate(1)
        assert (once >> oc.t.then_table_sum("a.*", (0, 99)))(table) == 7
        day = oc.t.then_where(oc.tables.col("day") == date(1066, 10, 14))
        assert (once >> day >> oc.t.then_table_count())(table) == 1
        sessions = table._engine._session, spark
        assert [one.conf.get("spark.sql.ansi.enabled") for one in sessions] == ["true", "false"]
    finally:
        spark.conf.set(pattern, before)


# --- imports --------------------------------------------------------------------------------------

CASE = """
import signal, sys
sys.modules["sklearn"] = None  # which takes seconds, and which OpenDP would import
import duckdb
import opendp.prelude as dp
import opendp_concurrent as oc
dp.enable_features("contrib", "honest-but-curious")

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("sqlglot", "opendp_concurrent.tables.render")):
            found.append(name)
            signal.raise_signal(signal.SIGINT)

found = []
sys.meta_path.insert(0, Interrupting())
connection = duckdb.connect()
connection.execute("CREATE TABLE v AS SELECT i % 40 AS person, i % 60 AS week FROM range(90) t(i)")

def scan():
    return oc.tables.scan(connection, "v", {"person": int, "week": int}, unit="person")

assert not found and "sqlglot" not in sys.modules
table = None
while table is None:
    try:
        table = scan()
    except KeyboardInterrupt:
        print("interrupted")
assert "sqlglot" in found
found.clear()
pipeline = table.space >> oc.t.then_truncate(per_unit=3)
root = oc.make_concurrent_filter(
    oc.make_concurrent_odometer(*table.space, dp.max_divergence()), 1, 1e6
)(table)
root(pipeline >> oc.t.then_table_count() >> dp.m.then_laplace(scale=6.0))
root(pipeline >> oc.t.then_table_count("week", [1, 2]) >> dp.m.then_laplace(scale=6.0))
print("then", found)
"""


def test_an_interrupt_leaves_nothing_imported_in_part_and_no_launch_imports():
    done = subprocess.run([sys.executable, "-c", CASE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(done.stdout.splitlines()) == {"interrupted", "then []"}
