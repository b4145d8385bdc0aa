"""A d_in belongs to what was built for it: changing it afterwards changes no price."""

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.extras.polars import Bound

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

PURE = dp.max_divergence()


@pytest.fixture
def frames():
    domain = dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T=int))])
    return dp.with_margin(domain, dp.polars.Margin(max_length=100)), dp.frame_distance(
        dp.symmetric_distance()
    )


def test_a_map_that_changes_its_argument_changes_nothing(frames):
    def nosy(d_in):
        loss = 0.1 * d_in[0].per_group
        d_in[0].per_group = 0
        return loss

    odometer = oc.make_concurrent_odometer(*frames, PURE)
    root = oc.make_concurrent_filter(odometer, [Bound(by=[], per_group=10)], 2.5)(
        pl.LazyFrame({"x": [1]})
    )
    root(measured(frames, nosy))
    root(measured(frames, nosy))
    with pytest.raises(BudgetExceededError):
        root(measured(frames, nosy))
    assert root.privacy_loss() == root.privacy_loss([Bound(by=[], per_group=10)]) == 2.0


def test_a_context_has_a_distance_of_its_own():
    bound = Bound(by=[], per_group=10)
    metric = dp.frame_distance(dp.symmetric_distance())
    domain = dp.with_margin(
        dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T=int))]),
        dp.polars.Margin(max_length=100),
    )
    context = oc.concurrent_context(
        pl.LazyFrame({"x": [1]}), (metric, [bound]), (PURE, 3.0), domain=domain
    )
    context(measured((domain, metric), lambda d: 0.1 * d[0].per_group))
    bound.per_group = 0
    assert context.current_privacy_loss() == context.queryable.privacy_loss() == 1.0


def measured(space, loss):
    return dp.m.make_user_measurement(*space, PURE, lambda rows: 0, loss)


@pytest.mark.parametrize("kind", ["filter", "compositor", "odometer"])
def test_a_bound_that_is_changed_later_is_not_the_bound(kind, frames):
    """With real bounds of frames: ten rows a person, then none."""
    bound = Bound(by=[], per_group=10)
    d_in = [bound]

    def cost():
        return measured(frames, lambda d: 0.1 * d[0].per_group)

    odometer = oc.make_concurrent_odometer(*frames, PURE)
    data = pl.LazyFrame({"x": [1, 2, 3]})
    if kind == "filter":
        root = oc.make_concurrent_filter(odometer, d_in, 3.0)(data)
    elif kind == "compositor":
        root = oc.make_concurrent_composition(*frames, PURE, d_in, [1.0] * 3)(data)
    else:
        root = odometer(data)
        assert root.privacy_loss(d_in) == 0.0
    root(cost())
    bound.per_group = 0
    root(cost())
    root(cost())
    if kind == "odometer":
        assert root.privacy_loss([Bound(by=[], per_group=10)]) == 3.0
        assert root.privacy_loss(d_in) == 0.0
    else:
        with pytest.raises((BudgetExceededError, dp.OpenDPException)):
            root(cost())
        assert root.privacy_loss() == 3.0
