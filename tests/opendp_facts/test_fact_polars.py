"""What OpenDP does with LazyFrames, and what Polars shows of a plan."""

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

pl = pytest.importorskip("polars")

SCHEMA = {"who": pl.Int64, "age": pl.Int64}
EMPTY = pl.LazyFrame(schema=SCHEMA)
DOMAIN = dp.domain_of(EMPTY, infer=True)
SYMMETRIC = dp.symmetric_distance()
ROWS = dp.frame_distance(SYMMETRIC)


def stable(metric, plan, output="MI"):
    return dp.t.make_stable_lazyframe(DOMAIN, metric, plan, MO=output)


def test_a_lazyframe_query_has_no_compositor():
    """If this fails, OpenDP has the method, and ours must have its arguments."""
    context = dp.Context.compositor(
        data=EMPTY, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    with pytest.raises(AttributeError):
        _ = context.query(epsilon=0.5).compositor


def test_an_aggregate_without_noise_has_no_certified_stability():
    """If this fails, sums can be asked without noise as counts are."""
    for plan in (EMPTY.select(pl.len()), EMPTY.select(pl.col("age").fill_null(0).clip(0, 9).sum())):
        with pytest.raises(OpenDPException, match="not recognized"):
            stable(SYMMETRIC, plan)


def test_an_identifier_is_bounded_by_a_truncation_only():
    unit, rows = dp.symmetric_id_distance(pl.col("who")), "FrameDistance<SymmetricDistance>"
    first = EMPTY.filter(pl.int_range(pl.len()).over("who") < 2)
    assert stable(unit, first, rows).output_metric == ROWS
    assert stable(unit, first, rows).map(3)[0].per_group == 6
    assert stable(unit, EMPTY).output_metric == dp.frame_distance(unit)
    with pytest.raises(OpenDPException):
        stable(unit, EMPTY, rows)
    with pytest.raises(OpenDPException):
        stable(SYMMETRIC, first)


def test_an_error_of_a_collected_frame_shows_a_row(tmp_path):
    """If this fails, ReleasedFrame may show errors of Polars."""
    path = tmp_path / "a.csv"
    path.write_text("who,age\n" + "1,2\n" * 500 + "3,SECRET\n")
    plan = EMPTY.filter(pl.col("age") > 5).select(dp.len(scale=1.0, signed=True))
    made = dp.m.make_private_lazyframe(DOMAIN, SYMMETRIC, dp.max_divergence(), plan)
    with pytest.raises(OpenDPException, match="SECRET"):
        made(pl.scan_csv(path)).collect()


def test_a_frame_is_read_when_it_is_collected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("who,age\n1,2\n")
    data = pl.scan_csv(path)
    plan = EMPTY.select(dp.len(scale=1.0, signed=True))
    made = dp.m.make_private_lazyframe(DOMAIN, SYMMETRIC, dp.max_divergence(), plan)
    path.unlink()
    frame = made(data)
    with pytest.raises(OpenDPException, match="NotFound"):
        frame.collect()


def test_columns_are_converted_by_their_elements_only():
    """NaN passes where the domain has none, and Arrow's integers do not pass."""
    no_nan = dp.vector_domain(dp.atom_domain(T=float, nan=False)), SYMMETRIC
    assert (no_nan >> dp.t.then_count())([1.0, float("nan")]) == 2
    whole = dp.vector_domain(dp.atom_domain(T=int)), SYMMETRIC
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(Exception, match="Int64Scalar"):
        (whole >> dp.t.then_count())(pa.array([1, 2]))


def test_polars_shows_the_files_of_a_plan(tmp_path):
    """Its nodes show CSV, Parquet and NDJSON; its printed plan the first file of each scan."""
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    several = pl.scan_parquet([path] * 3)
    assert several._ldf.visit().view_current_node().paths == [str(path)] * 3
    assert f"Parquet SCAN [{path}, ... 2 other sources]" in several.explain(optimized=False)
