"""Frames are read and checked when they arrive, where an error is the owner's and no answer.

And the files behind a LazyFrame, and launches after they have gone.
"""

import logging

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.data.kind import as_lazyframe, files_of, kind_of
from opendp_concurrent.errors import (
    DataSourceError,
    InvalidTypeError,
    InvalidValueError,
    MechanismError,
)

pl = pytest.importorskip("polars")

dp.enable_features("contrib", "honest-but-curious")
UNIT, LOSS, PURE = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), dp.max_divergence()
TYPES = {"who": pl.Int64, "age": pl.Int64}
NAN = float("nan")


def csv(folder, row):
    path = folder / "visits.csv"
    path.write_bytes(b"who,age\n1,20\n2,30\n" + row)
    return pl.scan_csv(path, schema=TYPES)


def json_lines(folder, row):
    path = folder / "visits.ndjson"
    path.write_text('{"who": 1, "age": 20}\n' + row)
    return pl.scan_ndjson(path, schema=TYPES)


def strict(frame):
    return frame.with_columns(pl.col("age").cast(pl.Int64, strict=True))


def python(frame):
    return frame.with_columns(pl.col("age").map_elements(lambda age: 1 // int(age), pl.Int64))


def texts(ages):
    return pl.LazyFrame({"who": list(range(len(ages))), "age": ages})


NEIGHBOURS = {  # one row more; it makes the plan fail
    "a word": (csv, b"", b"3,seven\n"),
    "a quote": (csv, b"", b'3,"7\n4,8"9\n'),
    "a field too many": (csv, b"", b"3,7,9\n"),
    "json": (json_lines, "", '{"who": 3, "age": {"a"\n'),
    "a cast": (lambda _, rows: strict(texts(["1", "2", *rows])), [], ["x"]),
    "a function": (lambda _, rows: python(texts([1, 2, *rows])), [], [0]),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_row_that_cannot_be_read_is_an_error_to_the_owner(tmp_path, caplog, name):
    make, without, row = NEIGHBOURS[name]
    count = oc.concurrent_context(make(tmp_path, without), UNIT, LOSS).query(epsilon=0.5)
    assert count.select(dp.len(signed=True)).release().collect().shape == (1, 1)
    with (
        caplog.at_level(logging.ERROR, "opendp_concurrent.data"),
        pytest.raises(InvalidValueError, match="its plan has failed") as refusal,
    ):
        oc.concurrent_context(make(tmp_path, row), UNIT, LOSS)
    assert "seven" not in str(refusal.value)
    assert refusal.value.__context__ is refusal.value.__cause__ is None
    assert len(caplog.records) == 1  # for the owner


def test_what_arrived_stays_as_it_was(tmp_path):
    """Also if the file changes, is damaged or disappears."""
    context = oc.concurrent_context(csv(tmp_path, b""), UNIT, dp.loss_of(epsilon=1e6))
    query = context.query(epsilon=1e5).select(dp.len(signed=True))
    csv(tmp_path, b"3,seven\n")
    assert query.release().collect().item() == 2
    (tmp_path / "visits.csv").unlink()
    assert query.release().collect().item() == 2


def test_an_owner_may_leave_a_frame_where_it_is(tmp_path):
    context = oc.concurrent_context(oc.uncollected(csv(tmp_path, b"3,seven\n")), UNIT, LOSS)
    adults = context.query(epsilon=0.5).filter(pl.col("age") > 17)
    with pytest.raises(MechanismError):
        adults.select(dp.len(signed=True)).release().collect()
    with pytest.raises(InvalidTypeError, match="frame must be a Polars LazyFrame, found list"):
        oc.uncollected([1])


def test_rows_in_memory_are_not_copied():
    rows = pl.DataFrame({"age": range(1000)})
    domain = dp.domain_of(rows.lazy(), infer=True)
    for data in (rows, rows.lazy()):
        found = kind_of(domain).accepted(data, domain).collect()
        assert found["age"]._get_buffer_info() == rows["age"]._get_buffer_info()


def frames_of(nullable, nan):
    atom = dp.atom_domain(T=float, nan=nan)
    column = dp.series_domain("age", dp.option_domain(atom) if nullable else atom)
    return dp.lazyframe_domain([column]), dp.symmetric_distance()


ALLOWED = [(False, False), (False, True), (True, False), (True, True)]
ROWS = {"a number": 2.5, "NaN": NAN, "a missing value": None}


@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("nullable", "nan"), ALLOWED)
def test_columns_have_only_what_their_domain_has(kind, row, nullable, nan):
    odometer = oc.make_concurrent_odometer(*frames_of(nullable, nan), PURE)
    data = kind({"age": [1.5, ROWS[row]]}, schema={"age": pl.Float64})
    if row == "a number" or (row == "NaN" and nan) or (row == "a missing value" and nullable):
        assert odometer(data)
        return
    with pytest.raises(InvalidValueError, match="data has .* in the column 'age'") as refusal:
        odometer(data)
    assert "1.5" not in str(refusal.value)


@pytest.mark.parametrize("kind", [dp.categorical_domain(), dp.enum_domain(pl.Series(["a", "b"]))])
@pytest.mark.parametrize("value", [NAN, "a"])
def test_columns_of_categories_are_left_to_opendp(kind, value):
    domain = dp.lazyframe_domain([dp.series_domain("kind", kind)])
    odometer = oc.make_concurrent_odometer(domain, dp.symmetric_distance(), PURE)
    assert odometer(pl.LazyFrame({"kind": [value]}))


# --- the files behind a LazyFrame ---

PEOPLE = pl.DataFrame({"who": [1, 2, 3], "age": [20, 30, 40]})
WRITERS = {
    "csv": (pl.DataFrame.write_csv, pl.scan_csv),
    "parquet": (pl.DataFrame.write_parquet, pl.scan_parquet),
    "ndjson": (pl.DataFrame.write_ndjson, pl.scan_ndjson),
    "ipc": (pl.DataFrame.write_ipc, pl.scan_ipc),
}


def scanned(path, kind="csv"):
    write, scan = WRITERS[kind]
    write(PEOPLE, path)
    return scan(path)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_scanned_file_is_found_in_each_plan(tmp_path, kind):
    path = tmp_path / "a, b].data"
    one = scanned(path, kind)
    for plan in (
        one,
        one.filter(pl.col("age") > 1).with_columns(pl.col("age") + 1),
        pl.concat([PEOPLE.lazy(), one]),
        one.join(PEOPLE.lazy(), on="who"),
    ):
        assert files_of(plan) == (str(path),)


def test_of_several_files_the_first_is_found(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(5)]
    for path in paths:
        PEOPLE.write_parquet(path)
    assert files_of(pl.scan_parquet(paths)) == (str(paths[0]),)


def test_a_missing_file_is_an_error_when_the_data_are_opened(tmp_path):
    path = tmp_path / "a.csv"
    data = scanned(path)
    path.unlink()
    with pytest.raises(DataSourceError):
        oc.concurrent_context(data, UNIT, LOSS)
    with pytest.raises(DataSourceError):
        files_of(pl.scan_csv(tmp_path / "b.csv"))


@pytest.fixture
def opened(tmp_path):
    path = tmp_path / "a.csv"
    context = oc.concurrent_context(oc.uncollected(scanned(path)), UNIT, LOSS)
    return path, context


def test_a_launch_whose_file_has_gone_is_refused_and_not_charged(opened):
    path, context = opened
    query = context.query(epsilon=0.25).select(dp.len(signed=True))
    query.release()
    path.unlink()
    with pytest.raises(DataSourceError, match="nothing was charged") as refusal:
        query.release()
    assert str(path) not in str(refusal.value)
    assert context.current_privacy_loss() == 0.25
    path.write_text("who,age\n1,2\n")
    assert query.release().collect().shape == (1, 1)
    assert context.current_privacy_loss() == 0.5


@pytest.mark.parametrize(
    "child",
    [
        lambda query: query.compositor().release(),
        lambda query: query.filter(pl.col("age") > 1).compositor().release(),
    ],
    ids=["compositor", "on a plan"],
)
def test_children_are_refused_likewise(opened, child):
    path, context = opened
    nested = child(context.query(epsilon=0.5))
    path.unlink()
    with pytest.raises(DataSourceError):
        nested.query(epsilon=0.25).select(dp.len(signed=True)).release()
    assert nested.remaining_privacy_loss() == 0.5


def test_a_dataframe_of_polars_is_a_lazyframe():
    found = as_lazyframe(PEOPLE)
    assert type(found) is pl.LazyFrame
    context = oc.concurrent_context(PEOPLE, UNIT, LOSS)
    assert context.query(epsilon=0.5).select(dp.len(signed=True)).release().collect().shape == (
        1,
        1,
    )


@pytest.mark.parametrize("domain", [None, dp.domain_of(PEOPLE.lazy(), infer=True)])
@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_other_tables_are_refused_with_what_to_write(domain, package):
    pytest.importorskip("pandas")
    data = PEOPLE.to_pandas() if package == "pandas" else PEOPLE.to_arrow()
    convert = "from_pandas" if package == "pandas" else "from_arrow"
    with pytest.raises(InvalidTypeError, match=rf"pass pl.{convert}\(frame\).lazy\(\)$"):
        oc.concurrent_context(data, UNIT, LOSS, domain=domain)
