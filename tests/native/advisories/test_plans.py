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


def domain(*margins, optional=(), nan=False):
    series = []
    for name, kind in SCHEMA.items():
        T = {pl.Int64: "i64", pl.Float64: float, pl.String: str}[kind]
        atom = dp.atom_domain(T=T, nan=nan) if T is float else dp.atom_domain(T=T)
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


def total(expression, frame=ROWS):
    return frame.select(expression.clip(0, 1).sum().dp.noise(scale=1.0))


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


# --- rows and groups that can change ----------------------------------------------------------

BY = dp.frame_distance(SYMMETRIC)
Bound = dp.polars.Bound
KEYS = pl.LazyFrame({"g": [0]})


def each(*by, rows):
    return ROWS.filter(pl.int_range(pl.len()).over("id", *by) < rows)


def groups(frame, *by, most):
    return frame.filter(pl.struct(*by).rank("dense").over("id") < most + 1)


def by_g(**about):
    return domain(dp.polars.Margin(by=["g"], **about))


FIVE = by_g(max_length=5, max_groups=9, invariant="keys")
CHANGE = {  # the plan, the metric, the distance, and whether more than 5 rows of a group can change
    "a bound on groups": (ROWS, BY, [Bound(by=["g"], num_groups=1)], True),
    "rows of a group": (ROWS, BY, [Bound(by=["g"], per_group=5, num_groups=1)], False),
    "too many rows": (ROWS, BY, [Bound(by=["g"], per_group=6, num_groups=1)], True),
    "the smaller one": (ROWS, BY, [Bound(by=["g"], num_groups=1), Bound(per_group=5)], False),
    "of other groups": (ROWS, BY, [Bound(by=["h"], per_group=5), Bound(per_group=9)], True),
    "of few of them": (ROWS, BY, [Bound(by=["h"], per_group=2, num_groups=2)], False),
    "by an expression": (ROWS, BY, [Bound(by=[G % 2], per_group=1), Bound(per_group=9)], True),
    "groups of a person": (groups(ROWS, "g", most=1), PEOPLE, 1, True),
    "rows of a person": (each("g", rows=5), PEOPLE, 1, False),
    "rows of two": (each("g", rows=5), PEOPLE, 2, True),
    "at most, not below": (
        ROWS.filter(pl.int_range(pl.len()).over("id", "g") <= 5),
        PEOPLE,
        1,
        True,
    ),
    "the other way round": (
        ROWS.filter(pl.lit(5) > pl.int_range(pl.len()).over("id", "g")),
        PEOPLE,
        1,
        False,
    ),
    "rows of other groups": (each("h", rows=1), PEOPLE, 1, True),
    "few other groups": (groups(each("h", rows=1), "h", most=4), PEOPLE, 1, False),
    "more other groups": (groups(each("h", rows=1), "h", most=6), PEOPLE, 1, True),
    "by a group-by": (ROWS.group_by("id", "g").agg(H.max()), PEOPLE, 5, False),
    "groups as rows": (ROWS.group_by("g", "s").agg(H.max()), SYMMETRIC, 2, False),
    "three groups as rows": (ROWS.group_by("g", "s").agg(H.max()), SYMMETRIC, 3, True),
}


@pytest.mark.parametrize("name", CHANGE)
def test_a_margin_bounds_no_more_than_what_it_says(name):
    plan, metric, d_in, wrong = CHANGE[name]
    made = private(count(plan), metric, PURE, FIVE)
    made.map(d_in)  # OpenDP knows a bound
    if wrong:
        with pytest.raises(AdvisoryError, match="opendp#2945"):
            measurement_map(made, d_in)
    else:
        assert measurement_map(made, d_in) == made.map(d_in)


def test_a_margin_bounds_the_groups_of_one_dataset_only():
    """One group leaves and another comes: two groups change, each dataset has one."""
    two = [Bound(by=["g"], per_group=1, num_groups=2)]
    plan = ROWS.group_by("g").agg(dp.len(scale=1.0, signed=True))
    measure = dp.approximate(PURE)

    def counted(margins, plan=plan, measure=measure, threshold=20):
        return dp.m.make_private_lazyframe(margins, BY, measure, plan, 1.0, threshold)

    assert counted(by_g(max_groups=1)).map(two)[0] == 1.0
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(counted(by_g(max_groups=1)), two)
    right = (
        counted(by_g(max_groups=2)),
        counted(by_g(max_groups=1, invariant="keys"), measure=PURE, threshold=None),
        counted(by_g(max_groups=1), count(ROWS), PURE, None),
    )
    for made in right:
        assert measurement_map(made, two) == made.map(two)


def test_a_function_of_python_may_change_more_rows():
    many = dp.t.make_user_transformation(
        FIVE, SYMMETRIC, FIVE, SYMMETRIC, lambda frame: frame, lambda d_in: 99 * d_in
    )
    with pytest.raises(AdvisoryError, match="opendp#2945"):
        measurement_map(many >> private(count(ROWS), SYMMETRIC, PURE, FIVE), 1)


def test_margins_are_read_from_the_domain_itself():
    """OpenDP's record of it may have none."""
    one = private(count(ROWS), SYMMETRIC, PURE, FIVE)
    for made in (one, dp.c.make_composition([one])):
        with pytest.raises(AdvisoryError, match="opendp#2945"):
            measurement_map(private(count(ROWS), SYMMETRIC, PURE, made.input_domain), 6)


def test_an_expression_alone_is_not_read():
    """It could hide each fault, and its answer has the data."""
    whole = dp.polars.Margin(by=[], max_length=9, max_groups=1, invariant="lengths")
    column = dp.series_domain("x", dp.atom_domain(T=float, nan=False))
    made = dp.m.make_private_expr(
        dp.wild_expr_domain([column], margin=whole),
        dp.l01inf_distance(SYMMETRIC),
        PURE,
        X.fill_null(float("nan")).clip(0.0, 1.0).sum().dp.noise(scale=1.0),
    )
    with pytest.raises(PrivacyMapError, match="make_private_lazyframe"):
        measurement_map(made, (1, 1, 1))


# --- plans in two parts -----------------------------------------------------------------------

MORE = [Bound(by=["g"], per_group=1, num_groups=9), Bound(per_group=9)]
MIXED = domain(dp.polars.Margin(by=[G % 2], max_groups=2, invariant="keys"))
SPLIT = {  # what is above handles; what is below is not known
    "redefined": (2949, DOMAIN, PEOPLE, truncated().with_columns(g=ONE), 1),
    "redefined, by the unit": (2949, DOMAIN, BY, ROWS.with_columns(g=ONE), MORE),
    "by an expression": (2949, MIXED, BY, ROWS.with_columns(g=H), [Bound(per_group=1)]),
    "cast": (2938, LENGTHS, BY, ROWS.with_columns(z=FILLED.cast(pl.Int64)), MORE),
    "cut": (2939, LENGTHS, BY, ROWS.with_columns(z=FILLED.cut([0.5])), MORE),
    "remainder": (2940, LENGTHS, BY, ROWS.with_columns(z=G % H.fill_null(1)), MORE),
    "NaN": (2936, LENGTHS, BY, ROWS.with_columns(z=X.fill_null(float("nan"))), MORE),
}
WHOLE = {
    "redefined before": (DOMAIN, PEOPLE, truncated(ROWS.with_columns(g=ONE)), 1),
    "another column": (DOMAIN, BY, ROWS.with_columns(h=H * 2), MORE),
    "no bound by it": (DOMAIN, BY, ROWS.with_columns(g=ONE), [Bound(per_group=9)]),
    "cast, filled": (LENGTHS, BY, ROWS.with_columns(z=FILLED.cast(pl.Int64).fill_null(0)), MORE),
    "a margin that is not reached": (FIVE, BY, ROWS.filter(G > 1), [Bound(per_group=99)]),
}


def stable(domain, metric, plan):
    return dp.t.make_stable_lazyframe(domain, metric, plan, MO="FrameDistance<SymmetricDistance>")


@pytest.mark.parametrize("name", SPLIT)
def test_a_fault_of_the_first_part_is_refused_where_the_second_is_not_seen(name):
    issue, space, metric, plan, d_in = SPLIT[name]
    first = stable(space, metric, plan)
    below = first.output_space
    native = dp.c.make_adaptive_composition(*below, ZCDP, first.map(d_in), [0.5])
    python = dp.m.make_user_measurement(*below, ZCDP, lambda frame: frame, lambda d_in: 0.0)
    with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
        transformation_map(first, d_in)
    for second in (native, native >> str, dp.c.make_composition([native]), python):
        with pytest.raises(AdvisoryError, match=f"opendp#{issue}"):
            measurement_map(first >> second, d_in)


@pytest.mark.parametrize("name", WHOLE)
def test_a_first_part_without_a_fault_passes(name):
    space, metric, plan, d_in = WHOLE[name]
    first = stable(space, metric, plan)
    bounds = transformation_map(first, d_in)
    native = dp.c.make_adaptive_composition(*first.output_space, ZCDP, bounds, [0.5])
    assert measurement_map(first >> native, d_in) == 0.5


def of_a_user(output):
    return dp.t.make_user_transformation(
        DOMAIN, SYMMETRIC, output, SYMMETRIC, lambda frame: frame, lambda d_in: d_in
    )


def test_frames_of_a_function_may_have_nan():
    """Only where the domain has none, and a plan reads them."""
    first, read = of_a_user(DOMAIN), ROWS.with_columns(z=X.fill_null(0.0))
    loose = domain(optional=("x",), nan=True)
    whole = domain(dp.polars.Margin(max_length=99))
    for plan in (total(X), total(X.fill_null(0.0)), total(pl.col("z"), read)):
        made = of_a_user(whole) >> private(plan, SYMMETRIC, PURE, whole)
        with pytest.raises(AdvisoryError, match="opendp#2935"):
            measurement_map(made, 1)
    with pytest.raises(AdvisoryError, match="opendp#2935"):
        transformation_map(first, 1)
    for made in (
        first >> private(count(ROWS), SYMMETRIC),
        of_a_user(whole)
        >> private(ROWS.select(H.dp.sum((0, 1), scale=1.0)), SYMMETRIC, PURE, whole),
        of_a_user(loose) >> private(tally(FILLED.fill_nan(0.5)), SYMMETRIC, PURE, loose),
    ):
        assert measurement_map(made, 1) == made.map(1)
    assert transformation_map(of_a_user(loose), 1) == 1
