"""Where OpenDP raises, or fails to, on a distance or a type that it does not expect."""

import opendp.prelude as dp
import pytest
from opendp.context import PartialChain
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import OpenDPException

PURE = dp.max_divergence()


class Sub(dp.Measurement):
    _type_ = dp.Measurement._type_


def with_map(space, measure, privacy_map):
    return dp.m.make_user_measurement(*space, measure, len, privacy_map)


# --- distances --------------------------------------------------------------------------------


def test_a_user_divergence_hands_back_its_descriptor_also_from_a_measurement(space):
    descriptor = object()
    measure = dp.user_divergence("mine", descriptor)
    assert measure.descriptor is descriptor
    assert with_map(space, measure, lambda d_in: 0.0).output_measure.descriptor is descriptor
    assert not hasattr(PURE, "descriptor")


# --- types ------------------------------------------------------------------------------------


def test_make_composition_takes_no_subclass_of_a_measurement(user):
    """Types of a list's elements are inferred by exact class, from the table of the next test."""
    plain, measurement = user(), user()
    assert dp.c.make_composition([plain, measurement])([1]) == [1, 1]
    measurement.__class__ = Sub
    with pytest.raises(TypeError, match="inferred type is CallbackFn, expected AnyMeasurementPtr"):
        dp.c.make_composition([plain, measurement])


def test_make_composition_takes_a_subclass_that_the_table_of_types_knows(user, monkeypatch):
    from opendp import typing

    measurement = user()
    measurement.__class__ = Sub
    monkeypatch.setitem(typing._ELEMENTARY_TYPES, Sub, "AnyMeasurementPtr")
    assert dp.c.make_composition([measurement, user()])([1]) == [1, 1]


# --- contexts ---------------------------------------------------------------------------------


@pytest.fixture
def query(space):
    def query(data=(1, 2), loss=(PURE, 0.5), **keywords):
        return dp.Context.compositor(
            list(data) if isinstance(data, tuple) else data,
            dp.unit_of(contributions=1),
            loss,
            split_evenly_over=1,
            **keywords,
        ).query()

    return query


def test_a_query_that_misses_a_number_has_a_chain_that_takes_it(query):
    made = query().count().laplace()
    assert isinstance(made._chain, PartialChain)
    assert made._chain(4.0).map(1) == 0.25
    assert made.resolve().param == 2.0


def test_queries_on_frames_have_these_parts(query):
    pl = pytest.importorskip("polars")
    made = query(pl.LazyFrame({"a": [1]}), margins=[dp.polars.Margin(by=(), max_length=9)])
    assert type(made) is LazyFrameQuery
    inner, plan = (object.__getattribute__(made, name) for name in ("_query", "polars_plan"))
    assert (inner._d_in, inner._d_out, inner._output_measure) == (1, 0.5, PURE)
    assert isinstance(plan, pl.LazyFrame)
    groups = made.group_by("a")
    assert type(groups) is LazyGroupByQuery
    assert groups._query is inner
    again = LazyGroupByQuery(groups._lgb_plan, inner).agg(dp.len(signed=True))
    assert type(again) is type(LazyFrameQuery(plan, inner).select("a")) is LazyFrameQuery


def test_a_threshold_of_the_largest_integer_adds_no_delta_to_speak_of(query):
    pl = pytest.importorskip("polars")
    loss = dp.loss_of(epsilon=1.0, delta=1e-7)
    made = query(pl.LazyFrame({"a": [1]}), loss, margins=[dp.polars.Margin(by=(), max_length=9)])
    plan = object.__getattribute__(made.group_by("a").agg(dp.len(signed=True)), "polars_plan")
    space = object.__getattribute__(made, "_query")._chain
    make = dp.m.make_private_lazyframe
    epsilon, delta = make(*space, loss[0], plan, 1.0, 2**32 - 1).map(1)
    assert (epsilon, delta) == (1.0, pytest.approx(0.0, abs=1e-15))
    with pytest.raises(dp.OpenDPException, match="key-set"):
        make(*space, loss[0], plan, 1.0)


pl = pytest.importorskip("polars")

SCHEMA = {"who": pl.Int64, "age": pl.Int64}
EMPTY = pl.LazyFrame(schema=SCHEMA)
DOMAIN = dp.domain_of(EMPTY, infer=True)
SYMMETRIC = dp.symmetric_distance()
ROWS = dp.frame_distance(SYMMETRIC)


def stable(metric, plan, output="MI"):
    return dp.t.make_stable_lazyframe(DOMAIN, metric, plan, MO=output)


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
