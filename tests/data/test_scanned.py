"""The files behind a LazyFrame, and launches after they have gone."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.data.kind import as_lazyframe, files_of
from opendp_concurrent.errors import DataSourceError, InvalidTypeError

pl = pytest.importorskip("polars")

UNIT, LOSS = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
ROWS = pl.DataFrame({"who": [1, 2, 3], "age": [20, 30, 40]})
WRITERS = {
    "csv": (pl.DataFrame.write_csv, pl.scan_csv),
    "parquet": (pl.DataFrame.write_parquet, pl.scan_parquet),
    "ndjson": (pl.DataFrame.write_ndjson, pl.scan_ndjson),
    "ipc": (pl.DataFrame.write_ipc, pl.scan_ipc),
}


def scanned(path, kind="csv"):
    write, scan = WRITERS[kind]
    write(ROWS, path)
    return scan(path)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_scanned_file_is_found_in_each_plan(tmp_path, kind):
    path = tmp_path / "a, b].data"
    one = scanned(path, kind)
    for plan in (
        one,
        one.filter(pl.col("age") > 1).with_columns(pl.col("age") + 1),
        pl.concat([ROWS.lazy(), one]),
        one.join(ROWS.lazy(), on="who"),
    ):
        assert files_of(plan) == (str(path),)


def test_of_several_files_the_first_is_found(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(5)]
    for path in paths:
        ROWS.write_parquet(path)
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
    found = as_lazyframe(ROWS)
    assert type(found) is pl.LazyFrame
    context = oc.concurrent_context(ROWS, UNIT, LOSS)
    assert context.query(epsilon=0.5).select(dp.len(signed=True)).release().collect().shape == (
        1,
        1,
    )


@pytest.mark.parametrize("domain", [None, dp.domain_of(ROWS.lazy(), infer=True)])
@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_other_tables_are_refused_with_what_to_write(domain, package):
    pytest.importorskip("pandas")
    data = ROWS.to_pandas() if package == "pandas" else ROWS.to_arrow()
    convert = "from_pandas" if package == "pandas" else "from_arrow"
    with pytest.raises(InvalidTypeError, match=rf"pass pl.{convert}\(frame\).lazy\(\)$"):
        oc.concurrent_context(data, UNIT, LOSS, domain=domain)
