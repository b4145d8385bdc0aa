"""Queries on LazyFrames, whose scale and threshold are left to be found."""

import opendp.context
import opendp.extras.polars
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from ..build import PURE

pl = pytest.importorskip("polars")
MOST = 100
UNIT = dp.unit_of(contributions=1)
PLANS = {
    "count": lambda query: query.select(dp.len(signed=True)),
    "both": lambda query: query.select(
        dp.len(signed=True), pl.col("age").fill_null(0).dp.sum((0, 90))
    ),
    "filtered": lambda query: query.filter(pl.col("age") > 25).select(dp.len(signed=True)),
    "known keys": lambda query: (
        query.group_by("age").agg(dp.len(signed=True)).with_keys(pl.LazyFrame({"age": [20, 30]}))
    ),
}


@pytest.fixture
def frame():
    return pl.LazyFrame({"age": [20, 30, 40] * 50, "who": list(range(75)) * 2})


@pytest.fixture
def context(frame):
    def context(loss, make=oc.concurrent_context, unit=UNIT, **keywords):
        margins = [dp.polars.Margin(by=(), max_length=1000)]
        return make(frame, unit, loss, margins=margins, **keywords)

    return context


@pytest.fixture
def builds(monkeypatch):
    """Every scale and threshold for which a measurement is built."""
    made, make = [], dp.m.make_private_lazyframe

    def counted(*args, global_scale=None, threshold=None, **kwargs):
        *space, scale, limit = args if len(args) == 6 else (*args, global_scale, threshold)
        made.append((scale, limit))
        return make(*space, **kwargs, global_scale=scale, threshold=limit)

    monkeypatch.setattr(dp.m, "make_private_lazyframe", counted)
    monkeypatch.setattr(opendp.extras.polars, "make_private_lazyframe", counted)
    return made


@pytest.mark.parametrize(
    ("plan", "loss"),
    [("count", {"epsilon": 0.7}), ("known keys", {"epsilon": 0.7}), ("both", {"rho": 0.1})],
)
def test_the_scale_is_the_one_that_opendp_finds(context, builds, loss, plan):
    measure, d_out = dp.loss_of(**loss)
    found = PLANS[plan](context((measure, d_out), split_evenly_over=1).query()).resolve()
    ours = builds.copy()
    assert len(ours) <= MOST
    assert found.check(1, d_out)
    builds.clear()
    theirs = context((measure, d_out), dp.Context.compositor, split_evenly_over=1)
    PLANS[plan](theirs.query()).resolve()
    assert ours[-1] == builds[-1]


@pytest.mark.parametrize("loss", [{"epsilon": 0.7, "delta": 1e-7}, {"rho": 0.1, "delta": 1e-7}])
def test_a_threshold_is_found_for_keys_that_are_private(context, builds, loss):
    measure, d_out = dp.loss_of(**loss)
    query = context((measure, d_out), split_evenly_over=1).query()
    found = query.group_by("age").agg(dp.len(signed=True)).resolve()
    scale, threshold = builds[-1]
    assert len(builds) <= MOST
    assert all(one <= most for one, most in zip(found.map(1), d_out, strict=True))
    builds.clear()
    theirs = context((measure, d_out), dp.Context.compositor, split_evenly_over=1).query()
    theirs.group_by("age").agg(dp.len(signed=True)).resolve()
    assert builds[-1][0] * (1 - 1e-6) <= scale <= builds[-1][0]
    assert threshold == builds[-1][1]


def test_all_of_epsilon_and_delta_may_be_spent(context, builds):
    def resolved(loss):
        query = context(dp.loss_of(**loss), split_evenly_over=1).query()
        return query.group_by("age").agg(dp.len(signed=True)).resolve()

    first = resolved({"epsilon": 1.0, "delta": 1e-7})
    _, threshold = builds[-1]
    spent = first.map(1)
    assert spent[0] == 1.0  # OpenDP stays below by one ulp
    again = resolved({"epsilon": 1.0, "delta": spent[1]})
    assert builds[-1] == (1.0, threshold)
    assert again.map(1) == spent


def test_what_needs_no_noise_gets_none(context, builds, frame):
    margin = dp.polars.Margin(by=(), max_length=1000, invariant="lengths")
    changes = dp.unit_of(changes=1)
    terms = {"margins": [margin], "split_evenly_over": 1}
    open_ = oc.concurrent_context(frame, changes, dp.loss_of(epsilon=1.0), **terms)
    assert open_.query().select(dp.len(signed=True)).resolve().map(1) == 0.0
    assert builds == [(0.0, None)]


def test_a_scale_in_the_plan_needs_no_loss(context):
    open_ = context(dp.loss_of(epsilon=1.0))
    count = dp.len(scale=4.0, signed=True)
    assert open_.query().select(count).release().collect().shape == (1, 1)
    assert open_.current_privacy_loss() == 0.25
    with pytest.raises(InvalidTypeError, match="^the query has neither a privacy loss nor a scale"):
        open_.query().select(dp.len(signed=True)).release()
    assert open_.current_privacy_loss() == 0.25


def test_the_rest_of_a_query_is_opendps(context):
    open_ = context(dp.loss_of(epsilon=1.0), split_evenly_over=1)
    query = open_.query()
    assert dict(query.collect_schema()) == {"age": pl.Int64, "who": pl.Int64}
    with pytest.raises(ValueError, match="release"):
        query.collect()
    summary = query.select(dp.len(signed=True)).summarize(alpha=0.05)
    assert summary.get_column("scale").to_list() == [1.0]
    plan = query.select(dp.len(signed=True)).polars_plan.serialize()
    again = open_.deserialize_polars_plan(plan)
    assert again.resolve().map(1) == 1.0


# --- the mechanisms of this package ----------------------------------------------------------


def test_each_constructor_of_vectors_is_a_method_on_a_frame(context):
    """Polars itself has four of the names, for its own methods."""
    vectors = oc.concurrent_context([1, 2], UNIT, dp.loss_of(epsilon=1.0)).query()
    names = {name for name in dir(vectors) if name in opendp.context.constructors}
    assert names >= {"sparse_vector", "guess_and_check", "concurrent_odometer", "frame_count"}
    query = context(dp.loss_of(epsilon=1.0)).query(epsilon=0.5)
    for name in [*names - {"where"}, "compositor", "parallel_composition"]:
        assert callable(getattr(query, name)), name
    ambiguous = {name for name in names if hasattr(pl.LazyFrame, name)}
    assert ambiguous == {"cast", "count", "mean", "sum", "with_columns"}
    with pytest.raises(AttributeError, match="no attribute 'sparse_vektor'"):
        _ = query.sparse_vektor


def test_children_on_one_frame_interleave(context):
    open_ = context(dp.loss_of(epsilon=40.0))
    search = open_.query(epsilon=10.0).sparse_vector(PURE, 1, threshold=75, max_hits=2).release()
    one, other = (open_.query(epsilon=10.0).compositor(2).release() for _ in range(2))
    older = open_.query().filter(pl.col("age") > 25)
    assert search(older.select(pl.len()))  # 100
    one.query().select(dp.len(signed=True)).release()
    assert not search(older.filter(pl.col("age") > 35).select(pl.len()))  # 50
    other.query().select(dp.len(signed=True)).release()
    assert search(open_.query().select(pl.len().alias("rows")))  # 150
    one.query().select(dp.len(signed=True)).release()
    assert search(older.frame_count()).outcome is oc.handles.Outcome.EXHAUSTED
    assert open_.current_privacy_loss() <= 30.0


def test_a_query_that_is_no_count_is_refused_with_the_reason(context):
    open_ = context(dp.loss_of(epsilon=1.0))
    search = open_.query(epsilon=0.5).above_threshold(PURE, 1, threshold=10).release()
    query = open_.query()
    reason = r"certifies no sensitivity.*select\(pl.len\(\)\)"
    selected = (
        pl.col("age").sum(),
        dp.len(signed=True),
        [pl.len(), pl.col("age").sum()],
        pl.len() * 2,
    )
    for one in (query, query.filter(pl.col("age") > 25), *map(query.select, selected)):
        with pytest.raises(InvalidTypeError, match=reason):
            search(one)
    with pytest.raises(InvalidTypeError, match="^the query is a count without noise"):
        open_.query(epsilon=0.1).select(pl.len()).release()
    with pytest.raises(InvalidValueError, match="whose stability OpenDP certifies"):
        search(query.head(5).select(pl.len()))
    assert 0.5 - 1e-15 < open_.current_privacy_loss() <= 0.5


def test_a_plan_of_another_sensitivity_is_refused(context):
    unit = dp.unit_of(contributions=1, identifier=pl.col("who"))
    open_ = context(dp.loss_of(epsilon=1.0), unit=unit)
    search = open_.query(epsilon=0.5).above_threshold(PURE, 1, threshold=1).release()
    with pytest.raises(InvalidValueError, match=r"^the sensitivity of the query \(2\)"):
        search(open_.query().truncate_per_group(2).select(pl.len()))
    with pytest.raises(InvalidValueError, match="truncate first"):
        search(open_.query().select(pl.len()))
    assert search(open_.query().truncate_per_group(1).select(pl.len())).outcome


def test_a_plan_from_elsewhere_is_no_longer_the_whole_frame(context):
    open_ = context(dp.loss_of(epsilon=100.0))
    plan = open_.query().filter(pl.col("age") > 25).polars_plan.serialize()
    nested = open_.deserialize_polars_plan(plan)
    assert abs(nested.frame_count().laplace(scale=0.02).release() - 100) <= 4
    bounds = [dp.polars.Bound(per_group=1)]
    spaced = open_.deserialize_polars_plan(plan).concurrent_composition(PURE, bounds, [1.0])
    assert spaced.resolve().map(1) == 1.0  # by way of the plan


# --- measures of this package ----------------------------------------------------------------

OWN = {"count": {"mu": 0.5}, "both": {"epsilon": 0.5, "alpha": 4.0}}
OWN["filtered"] = {"rho": 0.5, "omega": 20.0}


@pytest.mark.parametrize("plan", OWN)
def test_a_measure_of_this_package_gets_noise_of_opendp(context, builds, plan):
    measure, d_out = oc.loss_of(**OWN[plan])
    query = PLANS[plan](context((measure, d_out)).query(**OWN[plan]))
    found = query.resolve()
    assert len(builds) <= MOST
    assert found.output_measure == measure
    assert found.check(1, d_out)
    assert not found.check(1, oc.loss_of(**{**OWN[plan], next(iter(OWN[plan])): 0.499})[1])
    assert query.release().collect().height == 1


def test_scales_in_the_plan_are_enough_under_each_measure(context):
    open_ = context((oc.gaussian_tradeoff(), 1.0))
    open_.query().select(dp.len(scale=4.0, signed=True)).release()
    noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 4.0)
    cast = oc.c.cast(noise, oc.gaussian_tradeoff())
    assert open_.current_privacy_loss() == cast.map(1)
    curves = (dp.renyi_divergence(), lambda alpha: alpha)
    open_ = context(curves, split_evenly_over=2, orders=[2.0, 4.0])
    with pytest.raises(InvalidTypeError, match="^the scale must be given"):
        open_.query().select(dp.len(signed=True)).release()
    open_.query().select(dp.len(scale=20.0, signed=True)).release()


@pytest.mark.parametrize("unit", ["changes", "invariant"])
def test_a_count_that_no_neighbour_changes_is_answered_without_noise(unit):
    """OpenDP answers it; it was refused as a count without noise."""
    margins = [dp.polars.Margin(invariant="lengths")] if unit == "invariant" else []
    unit, frame = UNIT if margins else dp.unit_of(changes=1), pl.LazyFrame({"a": [1, 2, 3]})
    terms = {"margins": margins, "split_evenly_over": 1}
    context = oc.concurrent_context(frame, unit, dp.loss_of(epsilon=1.0), **terms)
    assert context.query().select(pl.len()).release().collect().item() == 3


@pytest.mark.parametrize(
    "kind", [pl.Null, pl.List(pl.Int64), pl.Decimal(9, 2), pl.Int8, pl.Duration("us")]
)
def test_a_column_of_a_type_that_opendp_does_not_read_is_refused_by_its_type(kind):
    """It was refused as data that are no LazyFrame."""
    frame = pl.LazyFrame({"a": [1], "odd": pl.Series([None], dtype=kind)})
    with pytest.raises(InvalidTypeError, match=r"leave out: odd \(") as caught:
        oc.concurrent_context(frame, UNIT, dp.loss_of(epsilon=1.0), split_evenly_over=1)
    assert str(kind) in str(caught.value)
    assert "a (Int64)" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"age": ["20", "30"]}, "datatypes of join keys don't match"),
        ({"aeg": [20]}, "unable to find column"),
        ({"age": [20], "who": [1]}, "unable to find column"),
        ({"age": pl.Series([], dtype=pl.Int64)}, "at least one row"),
    ],
)
@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"mu": 1.0}])
def test_keys_that_fit_no_data_are_refused_and_cost_nothing(context, keys, reason, loss):
    made = context(oc.loss_of(**loss))
    counts = made.query(**loss).group_by("age").agg(dp.len(signed=True))
    with pytest.raises(InvalidValueError, match=reason):
        counts.with_keys(pl.DataFrame(keys)).release()
    assert made.current_privacy_loss() == 0.0


@pytest.mark.parametrize("loss", [{"epsilon": 0.5}, {}])
def test_a_plan_that_opendp_refuses_is_tried_at_few_scales(context, builds, loss):
    query = context(dp.loss_of(epsilon=1.0)).query(**loss)
    query = query.select(pl.col("height").dp.sum((0, 9)))
    with pytest.raises(dp.OpenDPException, match="unrecognized column 'height'"):
        query.release()
    assert len(builds) == 2
