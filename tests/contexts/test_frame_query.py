"""Queries on LazyFrames, whose scale and threshold are left to be found."""

import opendp.extras.polars
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.contexts import frame_query
from opendp_concurrent.contexts.frame_query import (
    ConcurrentLazyFrameQuery,
    ConcurrentLazyGroupByQuery,
)
from opendp_concurrent.errors import InvalidTypeError

pl = pytest.importorskip("polars")

MOST = 100
UNIT = dp.unit_of(contributions=1)
PLANS = {
    "count": lambda query: query.select(dp.len(signed=True)),
    "sum": lambda query: query.select(pl.col("age").fill_null(0).dp.sum((0, 90))),
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

    monkeypatch.setattr(frame_query, "make_private_lazyframe", counted)
    monkeypatch.setattr(opendp.extras.polars, "make_private_lazyframe", counted)
    return made


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("loss", [{"epsilon": 0.7}, {"rho": 0.1}], ids=lambda loss: "".join(loss))
def test_the_scale_is_the_one_that_opendp_finds(context, builds, loss, plan):
    measure, d_out = dp.loss_of(**loss)
    found = PLANS[plan](context((measure, d_out), split_evenly_over=1).query()).resolve()
    ours = builds.copy()
    assert len(ours) <= MOST
    assert found.check(1, d_out)
    builds.clear()
    PLANS[plan](
        context((measure, d_out), dp.Context.compositor, split_evenly_over=1).query()
    ).resolve()
    assert ours[-1] == builds[-1]


@pytest.mark.parametrize(
    ("plan", "loss"),
    [("both", {"epsilon": 0.7, "delta": 1e-7}), ("known keys", {"rho": 0.1, "delta": 1e-7})],
)
def test_a_delta_changes_neither_scale_nor_epsilon(context, builds, loss, plan):
    measure, d_out = dp.loss_of(**loss)
    found = PLANS[plan](context((measure, d_out), split_evenly_over=1).query()).resolve()
    scale, threshold = builds[-1]
    assert len(builds) <= MOST
    assert threshold is None
    epsilon, delta = found.map(1)
    assert (1 - 1e-6) * d_out[0] <= epsilon <= d_out[0]
    assert delta == 0.0
    builds.clear()
    PLANS[plan](
        context((measure, d_out), dp.Context.compositor, split_evenly_over=1).query()
    ).resolve()
    assert builds[-1][0] * (1 - 1e-6) <= scale <= builds[-1][0]


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
    open_ = oc.concurrent_context(
        frame, changes, dp.loss_of(epsilon=1.0), margins=[margin], split_evenly_over=1
    )
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


def test_what_is_made_from_a_query_is_a_query_of_this_package(context):
    query = context(dp.loss_of(epsilon=1.0)).query(epsilon=0.5)
    groups = query.with_columns(pl.col("age")).filter(pl.col("age") > 1).group_by("age")
    assert type(groups) is ConcurrentLazyGroupByQuery
    counts = groups.agg(dp.len(signed=True))
    keyed = counts.with_keys(pl.LazyFrame({"age": [20, 30]}))
    for one in (query, counts, keyed):
        assert type(one) is ConcurrentLazyFrameQuery
    assert keyed.release().collect().shape == (2, 2)


def test_users_are_truncated(context):
    unit = dp.unit_of(contributions=2, identifier="who")
    query = context(dp.loss_of(epsilon=1.0), unit=unit).query(epsilon=0.5)
    kept = query.truncate_per_group(1).select(dp.len(signed=True))
    assert type(kept) is ConcurrentLazyFrameQuery
    assert kept.resolve().map(2) == 0.5


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
