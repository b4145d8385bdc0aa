"""Texts of units were rounded: 1, 1.4 and 0.6 were one unit; 1_0 and 0x1F were numbers."""

from datetime import date
from math import inf

import duckdb
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

LARGE = 2**63
VALUES = {
    int: {"1": 1, "-7": -7, "0": 0, f"{LARGE - 1}": LARGE - 1, f"-{LARGE}": -LARGE},
    float: {
        **{"1": 1.0, "30.7": 30.7, "-.5": -0.5, "1.": 1.0, "+2e-3": 0.002, "1e308": 1e308},
        **{"007": 7.0, "inf": inf, "-Infinity": -inf, "1e-999": 0.0},
    },
    bool: {
        **dict.fromkeys(("true", "True", "TRUE", "t"), True),
        **dict.fromkeys(("false", "False", "FALSE", "f"), False),
    },
    date: {
        "2024-02-29": date(2024, 2, 29),
        "0001-01-01": date(1, 1, 1),
        "9999-12-31": date(9999, 12, 31),
    },
}
NOTHING = {  # texts that stand for no value, between bars
    int: (
        "1.4|0.6|30.7|1.00|1_0|0x1F|0b1|01|+1|1e3|9223372036854775808|-9223372036854775809|1,0|"
        "\uff11|\u0661|NaN|inf|true|-|--1|1.| 1|1 |1\n|\t1|1'000||\ufeff1|" + "9" * 5000
    ),
    float: (
        "1_0|0x1F|0x1p3|\uff11|\u0661|1e999|-1e999|e5|.|1e|1e+|1.5f|true|NaN|nan|1,5| 1|1 |\xa01|"
        "infinit|+-1||1\n"
    ),
    bool: "1|0|yes|no|on|off|y|n|tRUE|T|\uff54|true | true||NULL",
    date: (
        "2024-02-30|2023-02-29|2024-2-9|20240229|2024-W01-1|2024/02/29|29.02.2024|0000-01-01|"
        "10000-01-01|-0001-01-01|2024-02-29T00:00|2024-02-29Z|infinity|epoch|today||"
        "\uff12024-02-29| 2024-02-29|2024-02-29 |2024-02-29\n"
    ),
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda one: one.__name__)
def test_a_text_is_the_value_that_it_spells_or_null(tmp_path, kind):
    values, nothing = VALUES[kind], NOTHING[kind].split("|")
    path = tmp_path / "texts.csv"
    texts = [*values, *nothing]
    lines = (f'{place},"{text}"\n' for place, text in enumerate(texts))
    path.write_text("person,x\n" + "".join(lines), encoding="utf-8", newline="")
    table = oc.tables.scan(duckdb.connect(), str(path), {"person": int, "x": kind}, "person")
    once = table.space >> oc.t.then_truncate(1)
    column, counted = oc.tables.col("x"), oc.t.then_table_count()
    for place, (text, value) in enumerate(values.items()):
        own = once >> oc.t.then_where((oc.tables.col("person") == place) & column.is_null())
        assert (own >> counted)(table) == 0, text
        if value != -LARGE:  # which no constant may be
            same = (oc.tables.col("person") == place) & (column == value)
            assert (once >> oc.t.then_where(same) >> counted)(table) == 1, text
    missing = once >> oc.t.then_where(column.is_null()) >> counted
    assert missing(table) == len(nothing)


def test_a_text_that_is_no_integer_is_no_unit(tmp_path):
    path = tmp_path / "units.csv"
    path.write_text("person\n1\n1.4\n0.6\n01\n+1\n1.00\n 1\n1e0\n2.0\n")
    table = oc.tables.scan(duckdb.connect(), str(path), {"person": int}, "person")
    assert (table.space >> oc.t.then_truncate(99) >> oc.t.then_table_count())(table) == 2
    texts = oc.tables.scan(duckdb.connect(), str(path), {"person": str}, "person")
    assert (texts.space >> oc.t.then_distinct_units())(texts) == 9


def test_no_engine_casts_a_stored_text_or_rounds(on_engine):
    """A column is read in its own type only: the same on each engine."""
    connection, table = on_engine
    for kind in (int, float, bool, date):
        with pytest.raises(InvalidTypeError, match="could fail or round"):
            oc.tables.scan(connection, table, {"person": int, "zone": kind}, "person")
    for kind in (str, float, bool):
        with pytest.raises(InvalidTypeError, match="could fail or round"):
            oc.tables.scan(connection, table, {"person": kind, "zone": str}, "zone")
    oc.tables.scan(connection, table, {"person": int, "zone": str}, "zone")


@pytest.fixture(params=["duckdb", "parquet", "postgres", "spark"])
def on_engine(request, tmp_path):
    """A connection to an engine, and a table with texts on it."""
    rows = "SELECT 1::BIGINT AS person, '1'::TEXT AS zone"
    if request.param == "postgres":
        psycopg = pytest.importorskip("psycopg")
        address = request.getfixturevalue("server").url.replace("+psycopg", "")
        with psycopg.connect(address, autocommit=True) as opened:
            opened.execute(f"CREATE TABLE casts AS {rows}")
            yield opened, "casts"
            opened.execute("DROP TABLE casts")
        return
    path = str(tmp_path / "rows.parquet")
    with duckdb.connect() as opened:
        opened.execute(f"CREATE TABLE casts AS {rows}")
        opened.execute(f"COPY casts TO '{path}' (FORMAT parquet)")
        if request.param == "spark":
            yield request.getfixturevalue("spark"), path
        else:
            yield opened, "casts" if request.param == "duckdb" else path
