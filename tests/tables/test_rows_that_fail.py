"""One row that an engine's reader could not read made every launch raise, or vanished.

So one launch told neighbouring tables apart. What can fail on rows fails at scan, before the owner.
"""

import duckdb
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError, TableError

SECRET = "secret-7261"
SCHEMA = {"person": int, "zone": str, "hours": float}
HEADER = b"person,zone,hours\n"
GOOD = b"1,a,0.5\n2,b,1.5\n"


def scan(path, schema=SCHEMA):
    return oc.tables.scan(duckdb.connect(), str(path), schema, "person")


def count(table):
    asked = table.space >> oc.t.then_truncate(5) >> oc.t.then_table_count()
    return asked(table)


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
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + GOOD + line)
    with pytest.raises(InvalidValueError, match=told) as caught:
        scan(path)
    error = caught.value
    assert SECRET not in str(error)
    assert error.__context__ is None
    assert error.__cause__ is None
    for entry in caught.traceback:
        if "opendp_concurrent" in str(entry.path):
            assert SECRET not in repr(entry.locals)


READ = {
    "a quotation mark within a field": b'3,c"x,1\n',
    "NUL": b"3,c\0,1\n",
    "an empty line": b"\n3,c,1\n",
    "one more empty field": b"3,c,1,\n",
    "a quoted line break": b'3,"c\r\nd",1\n',
    "2 MB": b"3," + b"x" * 2_000_000 + b",1\n",
    "no end of the last line": b"3,c,1",
    "quotation marks": b'"3","c ""d"", e","1"\n',
}


@pytest.mark.parametrize("name", READ)
def test_a_record_is_read_whatever_it_holds(tmp_path, name):
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + READ[name])
    assert count(scan(path)) == 1
    path.write_bytes(HEADER + GOOD + READ[name])
    assert count(scan(path)) == 3


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"1,secret-7261,0.5\n",
        b"person,zone\n",
        b"person,zone,hours,Hours\n",
        b"person,zone,zone,hours\n",
        b"PERSON,zone,hours\n",
    ],
)
def test_a_header_has_each_column_once(tmp_path, header):
    path = tmp_path / "rows.csv"
    path.write_bytes(header + b"1,secret-7261,0.5\n")
    with pytest.raises(InvalidValueError, match="line 1") as caught:
        scan(path)
    assert SECRET not in str(caught.value)


def test_a_csv_file_that_changes_after_scan_does_not_matter(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(HEADER + GOOD)
    table = scan(path)
    path.write_bytes(b"3,secret-7261\xff,1,1")
    assert count(table) == 2
    path.unlink()
    assert count(table) == 2


def parquet(path, **columns):
    """A file whose writer leaves NaN out of its statistics, and checks no text."""
    arrow = pytest.importorskip("pyarrow")
    written = pytest.importorskip("pyarrow.parquet")
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
