"""Files: what a writer writes is read as it was, and what can fail on rows fails at scan.

One row that an engine's reader could not read made every launch raise, or vanished. So one launch
told neighbouring tables apart. The owner is also told which fields are no values.
"""

import csv
import gzip
import io
import warnings
from datetime import date, datetime
from math import inf

import duckdb
import opendp.prelude as dp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, ScanWarning, TableError
from opendp_concurrent.tables import Csv, csv_file
from opendp_concurrent.tables.csv_file import value_of

from .pipelines import rows_of

FIELDS = st.text(
    st.sampled_from('ab,"\r\n \t;é\u2028\x85\x0b\x1c😀')
    | st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
    max_size=6,
)
ENGINE = duckdb.connect()
LOST = "values of their types; they are NULL: "


def read(kind, text, scale=None):
    """What a text stands for."""
    if scale is not None:
        kind = oc.tables.Decimal(scale)
    asked = f"SELECT {value_of(Csv(), 'x', kind)} FROM (SELECT $1::VARCHAR AS x)"
    ((found,),) = ENGINE.execute(asked, [text]).fetchall()
    return found


# --- records --------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(FIELDS, min_size=width, max_size=width), min_size=1, max_size=4
        )
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from([",", ";", "\t"]),
    st.booleans(),
    st.booleans(),
)
def test_what_pythons_writer_writes_is_read_as_it_was(
    tmp_path_factory, given, end, quoting, separator, marked, packed
):
    if any("\r" in one for row in given for one in row):
        quoting = csv.QUOTE_ALL  # before Python 3.13, a lone carriage return is not quoted
    names = [f"n{at}" for at in range(len(given[0]))]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator=end, quoting=quoting, delimiter=separator)
    writer.writerows([["u", *names], *([f"u{at}", *row] for at, row in enumerate(given))])
    data = b"\xef\xbb\xbf" * marked + written.getvalue().encode()
    path = tmp_path_factory.mktemp("files") / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    schema = {"u": str, **dict.fromkeys(names, str)}
    found = rows_of(oc.tables.scan(path, schema, "u", csv=Csv(separator)))
    assert found == [(f"u{at}", *(one or None for one in row)) for at, row in enumerate(given)]


def test_texts_that_look_like_rows_are_texts_wherever_the_reader_begins(tmp_path, monkeypatch):
    """A reader of several threads begins within a text, and refuses it."""
    monkeypatch.setattr(csv_file, "LONGEST", 2**21)
    path, many = tmp_path / "a.csv", 10_000
    lines = ["b,9,x\n" * (at % 400) for at in range(many)]
    path.write_text("p,i,s\n" + "".join(f'a,1,"{one}"\n' for one in lines))
    table = oc.tables.scan(path, {"p": str, "i": int, "s": str}, oc.tables.ROW)
    total = table.space >> oc.t.then_table_sum("i", (0, 9))
    assert total(table) == many


def test_columns_are_found_by_their_names(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("a,x,b\n1,,0.5\n2,,\n")
    other.write_text("b,a\n2,3\n")
    table = oc.tables.scan([path, other], {"b": float, "a": int}, "a")
    assert rows_of(table) == [(0.5, 1), (None, 2), (2.0, 3)]


def test_how_a_file_is_written_can_be_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("1;2,5;é\n2;NA;-\n3;2.5;\n".encode("latin-1"))
    written = Csv(";", ",", ["p", "x", "t"], ["NA", "-"], "latin-1")
    with pytest.warns(ScanWarning, match=r"x \(float\): 1, the first in line 3"):
        table = oc.tables.scan(path, {"p": int, "x": float, "t": str}, "p", csv=written)
    assert rows_of(table) == [(1, 2.5, "é"), (2, None, None), (3, None, None)]
    path.write_text("p,t\n1,é\n", encoding="utf-16")
    table = oc.tables.scan(path, {"p": int, "t": str}, "p", csv=Csv(encoding="utf-16"))
    assert rows_of(table) == [(1, "é")]
    path.write_text("p;x\n1;0,5\n2;-7,0\n")
    code = oc.tables.describe_schema(path, csv=Csv(";", ","))
    assert '"p": int' in code
    assert '"x": float' in code


def test_a_text_in_a_statement_is_a_text(tmp_path):
    """A quotation mark in a path or among the nulls ended the text of SQL."""
    path = tmp_path / "it's.csv"
    path.write_text("p,x\n1,it's\n2,b\n")
    table = oc.tables.scan(path, {"p": int, "x": str}, "p", csv=Csv(nulls=["it's", "'); --"]))
    assert rows_of(table) == [(1, None), (2, "b")]


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("p,t\n1,é\n".encode("utf-16-le"))  # without a mark
    with pytest.raises(InvalidValueError, match="line 1 must have 'p'"):
        oc.tables.scan(path, {"p": int, "t": str}, "p", csv=Csv(encoding="utf-16"))
    path, packed = tmp_path / "a.csv.gz", gzip.compress(b"p\n1\n")
    for data in (b"p\n1\n", b"", packed[:-9]):
        path.write_bytes(data)
        with pytest.raises(InvalidValueError, match="line"):
            oc.tables.scan(path, {"p": int}, "p")
    for at in (0, 10, 12):  # in the head and in the data
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :])
        with pytest.raises(InvalidValueError, match="must be a CSV file"):
            oc.tables.scan(path, {"p": int}, "p")


@pytest.mark.parametrize("name", ["postgres", "spark"])
def test_other_engines_load_it_first(request, tmp_path, name):
    connection, path = request.getfixturevalue(f"on_{name}").connection, tmp_path / "a.csv"
    path.write_text("p\n1\n")
    for ask in (
        lambda: oc.tables.scan(connection, path, {"p": int}, "p"),
        lambda: oc.tables.describe_schema(connection, path),
    ):
        with pytest.raises(InvalidValueError, match="Load the file into the database first"):
            ask()


# --- rows that fail -------------------------------------------------------------------------------

SECRET = "secret-7261"
SCHEMA = {"person": int, "zone": str, "hours": float}
HEADER = b"person,zone,hours\n"
GOOD = b"1,a,0.5\n2,b,1.5\n"


def scan(path, schema=SCHEMA, connection=None):
    return oc.tables.scan(connection or duckdb.connect(), str(path), schema, "person")


def count(table):
    return (table.space >> oc.t.then_truncate(5) >> oc.t.then_table_count())(table)


REFUSED = {  # what one unit can have in its rows, and the line that the owner is told
    "one more comma": (b"3,secret-7261,1,1\n", "line 4"),
    "a missing field": (b"3,secret-7261\n", "line 4"),
    "text after a quoted field": (b'3,"secret-7261"x,1\n', "line 4"),
    "a quotation mark without its pair": (b'3,"secret-7261,1\n' + GOOD * 9, "line 4"),
    "a lone carriage return": (b"3,secret-7261\r,1\n", "line"),
    "Latin-1": (b"3,secret-7261 \xe9,1\n", "line 4"),
    "half of a pair of UTF-16": (b"3,secret-7261 \xed\xa0\x80,1\n", "line 4"),
    "another end of a line": (b"3,secret-7261,1\r\n", "line"),
    "33 MB": (b"3,secret-7261" + b"x" * 33_000_000 + b",1\n", "line 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_line_that_is_no_record_is_refused_at_scan_without_its_text(tmp_path, name):
    line, told = REFUSED[name]
    path, connection = tmp_path / "rows.csv", duckdb.connect()
    path.write_bytes(HEADER + GOOD + line)
    with pytest.raises(InvalidValueError, match=told) as caught:
        scan(path, connection=connection)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    for entry in caught.traceback:
        if "opendp_concurrent" in str(entry.path):
            assert SECRET not in repr(entry.locals)
    left = connection.execute("SELECT count(*) FROM duckdb_databases()").fetchone()
    assert left == duckdb.connect().execute("SELECT count(*) FROM duckdb_databases()").fetchone()


def test_a_record_is_read_whatever_it_holds(tmp_path):
    path = tmp_path / "rows.csv"
    for record in (
        b'3,c"x,1\n',
        b"3,c\0,1\n",
        b"\n3,c,1\n",
        b"3,c,1,\n",
        b'3,"c\r\nd",1\n',
        b"3," + b"x" * 2_000_000 + b",1\n",
        b"3,c,1",
        b'"3","c ""d"", e","1"\n',
    ):
        for before, rows in ((b"", 1), (GOOD, 3)):
            path.write_bytes(HEADER + before + record)
            assert count(scan(path)) == rows, record[:20]


def test_a_header_has_each_column_once(tmp_path):
    path = tmp_path / "rows.csv"
    for header in (
        *(b"", b"1,secret-7261,0.5\n", b"person,zone\n", b"PERSON,zone,hours\n"),
        *(b"person,zone,hours,Hours\n", b"person,zone,zone,hours\n"),
    ):
        path.write_bytes(header + b"1,secret-7261,0.5\n")
        with pytest.raises(InvalidValueError, match="line 1") as caught:
            scan(path)
        assert SECRET not in str(caught.value)


def test_a_csv_file_that_changes_after_scan_does_not_matter(tmp_path):
    path, stored = tmp_path / "rows.csv", str(tmp_path / "rows.db")
    path.write_bytes(HEADER + GOOD)
    duckdb.connect(stored).close()
    with duckdb.connect(stored, read_only=True) as connection:
        table = scan(path, connection=connection)
        path.write_bytes(b"3,secret-7261\xff,1,1")
        assert count(table) == 2
        path.unlink()
        assert count(table) == 2


def parquet(path, **columns):
    """A file whose writer leaves NaN out of its statistics, and checks no text."""
    arrow, written = map(pytest.importorskip, ("pyarrow", "pyarrow.parquet"))
    made = {}
    for name, values in columns.items():
        made[name] = one = arrow.array(values)
        if arrow.types.is_binary(one.type):
            made[name] = arrow.StringArray.from_buffers(len(one), *one.buffers()[1:])
    written.write_table(arrow.table(made), path)


def test_a_text_of_a_parquet_file_that_is_not_utf8_is_refused_at_scan(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet(path, person=[1, 2], zone=[b"a", b"secret-7261\xff"])
    with pytest.raises(InvalidValueError, match="UTF-8") as caught:
        scan(path, {"person": int, "zone": str})
    assert SECRET not in repr([caught.value, caught.value.__context__, caught.value.__cause__])
    parquet(path, person=[1, 2], zone=[b"a", b"b"])
    assert count(scan(path, {"person": int, "zone": str})) == 2


def test_nan_of_a_parquet_file_is_a_missing_value_and_no_error(tmp_path):
    """DuckDB took it for a number within the statistics of the file; its cast then failed."""
    path = tmp_path / "rows.parquet"
    parquet(path, person=[1, 2, 3], hours=[0.5, 1.0, float("nan")])
    table = scan(path, {"person": int, "hours": float})
    once = table.space >> oc.t.then_truncate(1)
    assert (once >> oc.t.then_table_sum("hours", (0.0, 2.0), 0.5))(table) == 3
    missing = once >> oc.t.then_where(oc.tables.col("hours").is_null())
    assert (missing >> oc.t.then_table_count())(table) == 1


def test_a_parquet_file_that_changes_after_scan_makes_launches_fail_whatever_its_rows(tmp_path):
    path = tmp_path / "rows.parquet"
    parquet(path, person=[1, 2], zone=[b"a", b"b"])
    table = scan(path, {"person": int, "zone": str})
    stored = (table.space >> oc.t.then_truncate(1, materialize=True))(table)
    root = (table.space >> oc.then_concurrent_odometer(dp.max_divergence()))(table)
    asked = table.space >> oc.t.then_distinct_units() >> dp.m.then_laplace(scale=1e-9)
    assert root(asked) == 2
    parquet(path, person=[1, 2, 3], zone=[b"a", b"b", b"c"])
    with pytest.raises(TableError):
        root(asked)
    assert (stored.space >> oc.t.then_table_count())(stored) == 2


# --- values ---------------------------------------------------------------------------------------


def whole_minute(value):
    return value.replace(second=0, microsecond=0)


WRITTEN = {  # values, and texts with what they stand for
    int: (st.integers(-(2**63), 2**63 - 1), lambda one: {str(one): one, f"{one}.0": one}),
    float: (
        st.floats(allow_nan=False) | st.sampled_from([5e-324, 1.7976931348623157e308]),
        lambda one: {repr(one): one},
    ),
    date: (st.dates(), lambda one: {one.isoformat(): one}),
    datetime: (
        st.datetimes(),
        lambda one: {
            **dict.fromkeys((one.isoformat(), str(one), f"{one.isoformat()}Z"), one),
            whole_minute(one).isoformat(" ", "minutes"): whole_minute(one),
        },
    ),
}


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda one: one.__name__)
@settings(deadline=None)
@given(st.data())
def test_each_value_is_read_from_the_texts_that_python_and_pandas_write(kind, data):
    values, texts = WRITTEN[kind]
    for text, value in texts(data.draw(values)).items():
        assert read(kind, text) == value


@settings(deadline=None)
@given(st.text(max_size=8) | st.from_regex(r"[-+0-9eE. _x]{1,24}", fullmatch=True))
@example("+1")
@example("01")
@example("1_0")
@example("1.5")
def test_a_text_that_is_an_integer_is_the_one_that_it_spells(text):
    found = read(int, text)
    assert found is None or str(found) == text.removesuffix(".0").replace("-0", "0")


@settings(deadline=None)
@given(st.integers(0, 18), st.integers(-(10**18) + 1, 10**18 - 1))
def test_each_decimal_is_exact(scale, steps):
    sign, digits = "-" * (steps < 0), f"{abs(steps):0{scale + 1}d}"
    text = f"{sign}{digits[: len(digits) - scale]}" + (f".{digits[-scale:]}" if scale else "")
    assert read(int, text, scale) == steps
    assert read(int, f"{text}1" if scale else f"{text}.1", scale) is None  # it is never rounded


LARGE = 2**63
SPELLED = {
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
    datetime: (
        "2024-01-01|2024-01-01 5:00|2024-01-01 24:00|5:00|2024-02-30 10:00:00|01/02/2013 10:00|"
        "2024-01-01 10:00:00+01|24-01-01 10:00:00|0000-01-01 10:00|2024-01-01 10:60|1357034400|"
        "2024-01-01T10:00:00ZZ|2024-01-01T10:00:00.1234567"
    ),
}


@pytest.mark.parametrize("kind", NOTHING, ids=lambda one: one.__name__)
def test_a_text_is_the_value_that_it_spells_or_null(kind):
    """Texts of units were rounded: 1, 1.4 and 0.6 were one unit; 1_0 and 0x1F were numbers."""
    for text, value in SPELLED.get(kind, {}).items():
        assert read(kind, text) == value, text
    for text in NOTHING[kind].split("|"):
        assert read(kind, text) is None, text


def test_the_owner_is_told_which_fields_are_no_values(tmp_path):
    """They were NULL, without a word: an integer column that pandas had written was empty."""
    path = tmp_path / "a.csv"
    path.write_text(
        "p,n,x,b,d,at,t\n1,11.0,1,t,2024-01-01,2013-01-01T10:00:00Z,secret\n"
        "2,secret,,yes,,01/02/2013 10:00,\nx,11.5,nan,,0,01/02/2013 10:00,\n"
    )
    schema = {"p": int, "n": int, "x": float, "b": bool, "d": date, "at": datetime, "t": str}
    with pytest.warns(ScanWarning) as caught:
        table = oc.tables.scan(path, schema, "p")
    (told,) = caught
    assert told.filename == __file__
    assert str(told.message).partition(LOST)[2] == (
        "p (int): 1, the first in line 4; n (int): 2, the first in line 3; "
        "x (float): 1, the first in line 4; b (bool): 1, the first in line 3; "
        "d (date): 1, the first in line 4; at (datetime): 2, the first in line 3. "
        "Timestamps are in ISO 8601, such as 2013-01-01T10:00:00Z"
    )
    assert [row[1] for row in rows_of(table)] == [11, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_text("p,n\n1,11.0\n,\n2,\n")
        assert rows_of(oc.tables.scan(path, {"p": int, "n": int}, "p")) == [(1, 11), (2, None)]


def test_whether_a_field_is_a_value_depends_on_this_field_only(tmp_path):
    """If one row decided how a column is read, one unit would change the rows of all others."""
    path, found = tmp_path / "a.csv", []
    for more in ("", "9,11.5\n", "9,secret\n", "9,007\n"):
        path.write_text(f"p,n\n1,11.0\n2,7\n{more}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(rows_of(oc.tables.scan(path, {"p": int, "n": int}, "p"))[:2])
    assert all(one == [(1, 11), (2, 7)] for one in found)
