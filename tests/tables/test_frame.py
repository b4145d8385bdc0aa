"""LazyFrames as tables: the same rows as those of a Parquet file, in all types and verbs."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from .pipelines import rows_of

pl = pytest.importorskip("polars")
col = oc.tables.col
EAST = timezone(timedelta(hours=5))
ROWS = {
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
SCHEMA = {"person": int, "small": int, "unsigned": int, "single": float, "double": float}
SCHEMA |= {"text": str, "kind": str, "mood": str, "flag": bool, "day": date, "time": datetime}
SCHEMA |= {"coarse": datetime, "zoned": datetime, "eur": oc.tables.Decimal(2)}


def values(table):
    """The columns as they are read."""
    return sorted(map(repr, rows_of(table)))


def test_each_type_is_read_as_from_a_parquet_file(tmp_path):
    frame = pl.LazyFrame(ROWS)
    path = tmp_path / "rows.parquet"
    frame.collect().write_parquet(path)
    found = values(oc.tables.scan(frame, SCHEMA, unit="person"))
    assert found == values(oc.tables.scan(path, SCHEMA, unit="person"))
    assert found == values(oc.tables.scan(frame.collect(), SCHEMA, unit="person"))
    assert len(found) == 4  # the row of nobody is left out


def test_the_schema_that_is_proposed_is_that_of_the_types():
    proposed = oc.tables.describe_schema(pl.LazyFrame(ROWS))
    scope = {"oc": oc, "datetime": __import__("datetime")}
    exec(proposed, scope)
    assert scope["schema"] == SCHEMA
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
    frame = pl.LazyFrame({"^person$": [7] * 100, "person": range(100), "k": "a"})
    people = oc.tables.scan(frame, {"^person$": int, "k": str}, "^person$")
    counts = (
        people.space
        >> oc.t.then_truncate(1)
        >> oc.t.then_table_count(["k"], ["a"])
        >> dp.m.then_laplace(scale=1.0)
    )
    assert abs(counts(people)[0] - 1) < 40  # all rows are of the unit 7, and 100 would be counted


def test_a_frame_of_pandas_is_copied_and_its_schema_proposed(capsys):
    pandas = pytest.importorskip("pandas")
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
