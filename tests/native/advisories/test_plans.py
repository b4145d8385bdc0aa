"""Which Polars plans are refused, and which pass: redefined columns, NaN, nulls, codes, margins."""

import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import AdvisoryError, PrivacyMapError
from opendp_concurrent.native.opendp import measurement_map, transformation_map

pl = pytest.importorskip("polars")

ZCDP, PURE = dp.zero_concentrated_divergence(), dp.max_divergence()
SCHEMA = {"id": pl.Int64, "g": pl.Int64, "h": pl.Int64, "x": pl.Float64, "s": pl.String}
ROWS, G, H, X = pl.LazyFrame(schema=SCHEMA), pl.col("g"), pl.col("h"), pl.col("x")
SYMMETRIC, PEOPLE = dp.symmetric_distance(), dp.symmetric_id_distance(pl.col("id"))


def domain(*margins, optional=()):
    series = []
    for name, kind in SCHEMA.items():
        T = {pl.Int64: "i64", pl.Float64: float, pl.String: str}[kind]
        atom = dp.atom_domain(T=T, nan=False) if T is float else dp.atom_domain(T=T)
        series.append(dp.series_domain(name, dp.option_domain(atom) if name in optional else atom))
    made = dp.lazyframe_domain(series)
    for margin in margins:
        made = dp.with_margin(made, margin)
    return made


DOMAIN = domain()


def truncated(frame=ROWS, by=("g",)):
    each = frame.filter(pl.int_range(pl.len()).over("id", *by) < 1)
    return each.filter(pl.struct(*by).rank("dense").over("id") < 101)


def count(frame, by="g", keys=None):
    grouped = frame.group_by(by).agg(dp.len(scale=1.0, signed=True))
    keys = pl.LazyFrame({"g": [0]}) if keys is None else keys
    return keys.join(grouped, on=keys.collect_schema().names(), how="left")


def private(plan, metric=PEOPLE, measure=ZCDP, domain=DOMAIN, scale=None):
    return dp.m.make_private_lazyframe(domain, metric, measure, plan, scale)


ONE = pl.lit(0, dtype=pl.Int64)
REDEFINED = {
    "literal": truncated().with_columns(g=ONE),
    "alias": truncated().with_columns(H.alias("g")),
    "first name of an expression": truncated().with_columns(G * 0),
    "cast, filled": truncated().with_columns(G.cast(pl.Int64).fill_null(0)),
    "selected": truncated().select("id", (H * 2).alias("g")),
    "dropped and made again": truncated().select("id", "h").with_columns(g=H),
    "later step": truncated().with_columns(z=H).filter(H > 1).with_columns(g=pl.col("z")),
    "twice": truncated(ROWS.with_columns(g=H)).with_columns(g=ONE),
    "by two, one of them": truncated(by=("g", "h")).with_columns(h=ONE),
    "one truncation of rows": ROWS.filter(pl.int_range(pl.len()).over("id", "g") < 1)
    .filter(G.rank("dense").over("id") < 3)
    .with_columns(g=ONE),
}
HARMLESS = {
    "before": truncated(ROWS.with_columns(g=ONE)),
    "no redefinition": truncated(),
    "itself": truncated().with_columns(G),
    "itself by alias": truncated().with_columns(G.alias("g")),
    "selected by name": truncated().select("id", "g"),
    "another column": truncated().with_columns(h=G * 2),
    "a new column": truncated().with_columns(z=G * 2),
    "filtered": truncated().filter(G > 1),
}


def keys_of(name):
    if "by two" in name:
        return {"by": ["g", "h"], "keys": pl.LazyFrame({"g": [0], "h": [0]})}
    return {}


@pytest.mark.parametrize("name", REDEFINED)
def test_a_grouping_column_that_is_redefined_after_a_truncation_is_refused(name):
    made = private(count(REDEFINED[name], **keys_of(name)))
    assert made.map(1) > 0.0  # OpenDP makes it
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(made, 1)


@pytest.mark.parametrize("name", HARMLESS)
def test_other_plans_with_a_truncation_pass(name):
    made = private(count(HARMLESS[name]))
    assert measurement_map(made, 1) == made.map(1)


def test_a_truncation_over_all_rows_of_a_person_bounds_no_groups():
    plan = ROWS.filter(pl.int_range(pl.len()).over("id") < 3).with_columns(g=ONE)
    made = private(count(plan))
    assert measurement_map(made, 1) == made.map(1)


def test_bounds_of_the_unit_are_bounds_too():
    """Without any truncation: the unit has at most one row in each g, and g is redefined."""
    metric = dp.frame_distance(SYMMETRIC)
    by_g = [dp.polars.Bound(by=["g"], per_group=1, num_groups=100), dp.polars.Bound(per_group=100)]
    bad = private(count(ROWS.with_columns(g=ONE)), metric)
    assert bad.map(by_g) <= 50.0  # the truth is 5,000: one group of 100 rows
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(bad, by_g)
    rows = [dp.polars.Bound(per_group=100)]
    assert measurement_map(bad, rows) == bad.map(rows) == 5000.0
    assert measurement_map(private(count(ROWS), metric), by_g) <= 50.0


def test_a_truncation_in_a_transformation_before_the_measurement_counts():
    rows = "FrameDistance<SymmetricDistance>"
    stable = dp.t.make_stable_lazyframe(DOMAIN, PEOPLE, truncated(), MO=rows)
    space = stable.output_domain, stable.output_metric
    plan = count(ROWS.with_columns(g=ONE))
    later = dp.m.make_private_lazyframe(*space, ZCDP, plan)
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(stable >> later, 1)
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(later, transformation_map(stable, 1))  # as a query of an odometer behind it
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(dp.c.make_composition([stable >> later] * 2), 1)


def test_bounds_that_a_function_of_python_promises_are_not_known():
    metric = dp.frame_distance(SYMMETRIC)
    by_g = [dp.polars.Bound(by=["g"], per_group=1, num_groups=100), dp.polars.Bound(per_group=100)]
    promised = dp.t.make_user_transformation(
        DOMAIN, metric, DOMAIN, metric, lambda frame: frame, lambda d_in: by_g
    )
    rows = [dp.polars.Bound(per_group=1)]
    assert measurement_map(promised >> private(count(ROWS), metric), rows) <= 50.0
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(promised >> private(count(ROWS.with_columns(g=ONE)), metric), rows)


def test_the_identifier_itself_cannot_be_redefined():
    """OpenDP refuses it; if this fails, the fence must."""
    for plan in (truncated(ROWS.with_columns(id=G)), truncated(ROWS.select(G.alias("id"), "g"))):
        with pytest.raises(dp.OpenDPException, match="may not be modified"):
            private(count(plan))


def test_a_margin_by_an_expression_outlives_its_column():
    by = domain(dp.polars.Margin(by=[G % 2], max_groups=2, invariant="keys"))

    def counted(frame):
        plan = frame.group_by(G % 2).agg(dp.len(scale=1.0, signed=True))
        return private(plan, SYMMETRIC, PURE, by)

    assert measurement_map(counted(ROWS), 1) == 1.0
    with pytest.raises(AdvisoryError, match="opendp#2949"):
        measurement_map(counted(ROWS.with_columns(g=H)), 1)


def test_a_plan_that_cannot_be_read_is_refused(monkeypatch):
    """With Polars' error and its text left out: it may have data."""

    def fail(frame):
        raise pl.exceptions.ComputeError("SECRET")

    monkeypatch.setattr("opendp_concurrent.native.advisories.fence.read", fail)
    with pytest.raises(PrivacyMapError, match=r"known faults \(ComputeError\)") as caught:
        measurement_map(private(count(truncated())), 1)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


# --- values -----------------------------------------------------------------------------------

LENGTHS = domain(dp.polars.Margin(max_length=16, invariant="lengths"), optional=("x", "h"))


def total(expression):
    return ROWS.select(expression.clip(0, 1).sum().dp.noise(scale=1.0))


def tally(expression, frame=ROWS):
    return frame.select(expression.count().dp.noise(scale=1.0))


FILLED = X.fill_null(0.0)
VALUES = {
    "NaN": (2936, total(X.fill_null(float("nan")))),
    "a column": (2936, tally(X.fill_null(G))),
    "cast": (2938, tally(FILLED.cast(pl.Int64))),
    "cast of a text": (2938, tally(pl.col("s").cast(pl.Int64))),
    "cast in a column": (2938, tally(pl.col("z"), ROWS.with_columns(z=FILLED.cast(pl.Int64)))),
    "cast, then more": (2938, tally(FILLED.cast(pl.Int64) + 1)),
    "cut": (2939, tally(FILLED.cut([0.5]))),
    "remainder": (2940, tally(G % H.fill_null(1))),
    "remainder of 0": (2940, tally(G % 0)),
    "Float32": (2941, total(FILLED.cast(pl.Float32).fill_nan(0.0).fill_null(0.0))),
    "codes": (2944, total(FILLED.cut([0.5]).to_physical().fill_null(0))),
}
FINE = {
    "filled": total(FILLED),
    "filled after the cast": total(FILLED.cast(pl.Int64).fill_null(0)),
    "filled after a column": tally(
        pl.col("z").fill_null(0), ROWS.with_columns(z=FILLED.cast(pl.Int64))
    ),
    "remainder by a number": tally(G % 10),
    "fill_nan": total(FILLED.fill_nan(0.5)),
    "cast that is not counted": tally(G, ROWS.with_columns(z=FILLED.cast(pl.Int64))),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_that_opendp_does_not_expect_are_refused(name):
    issue, plan = VALUES[name]
    made = private(plan, dp.frame_distance(SYMMETRIC), PURE, LENGTHS)
    with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
        measurement_map(made, [dp.polars.Bound(per_group=2)])


@pytest.mark.parametrize("name", FINE)
def test_ordinary_expressions_pass(name):
    made = private(FINE[name], dp.frame_distance(SYMMETRIC), PURE, LENGTHS)
    rows = [dp.polars.Bound(per_group=2)]
    assert measurement_map(made, rows) == made.map(rows)


def test_keys_may_be_cut_and_cast():
    """As dp-wizard does: a key that is null is a group like others."""
    plan = ROWS.with_columns(z=FILLED.cut([0.5]).cast(pl.String)).group_by("z")
    keys = pl.LazyFrame({"z": ["a"]})
    counted = keys.join(plan.agg(dp.len(1.0, signed=True)), on="z", how="left")
    made = private(counted, SYMMETRIC, PURE, domain(optional=("x",)))
    assert measurement_map(made, 1) == made.map(1) == 1.0


# --- margins ----------------------------------------------------------------------------------


def summed(max_length, metric=SYMMETRIC, frame=ROWS):
    by = domain(dp.polars.Margin(by=["g"], max_length=max_length, max_groups=5, invariant="keys"))
    sums = frame.group_by("g").agg(H.alias("total").dp.sum((-10, 10), scale=30.0))
    return private(pl.LazyFrame({"g": [0]}).join(sums, on="g", how="left"), metric, PURE, by)


def test_a_margin_that_bounds_the_change_is_refused():
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(summed(3), 6)
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(summed(5, dp.change_one_distance()), 3)
    assert measurement_map(summed(6), 6) == summed(6).map(6)
    assert measurement_map(summed(6, dp.change_one_distance()), 3) > 0.0
    by_person = ROWS.filter(pl.int_range(pl.len()).over("id") < 4)
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(summed(3, PEOPLE, by_person), 1)
    assert measurement_map(summed(5, PEOPLE, by_person), 1) > 0.0


def test_margins_of_a_derived_domain_are_read():
    by = domain(dp.polars.Margin(by=["g"], max_length=3, max_groups=5))
    stable = dp.t.make_stable_lazyframe(by, SYMMETRIC, ROWS.filter(H > 1))
    plan = count(ROWS)
    made = dp.m.make_private_lazyframe(stable.output_domain, stable.output_metric, PURE, plan)
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(made, [dp.polars.Bound(per_group=6)])
