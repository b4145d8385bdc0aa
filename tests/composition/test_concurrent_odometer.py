"""Losses of real mechanisms against closed forms, at d_in = 1, 2 and 3."""

import math
from fractions import Fraction

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.extras.polars import Bound

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

from ..build import PURE, RENYI, ZCDP, costing

SCALE = 8.0
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def renyi_gaussian():
    """A Gaussian as a Rényi mechanism: alpha d^2 / (2 scale^2) [BS16, Lemma 2.4]."""
    return costing(
        lambda d_in: lambda alpha: alpha * d_in**2 / (2 * SCALE**2),
        dp.m.make_gaussian(*REAL, scale=SCALE).function,
        RENYI,
        REAL,
    )


CASES = {
    # measure: a measurement, and its loss in closed form
    "pure": (dp.m.make_laplace(*INTEGER, SCALE), lambda d: (d / SCALE,)),
    "approximate": (
        dp.c.make_approximate(dp.m.make_laplace(*INTEGER, SCALE)),
        lambda d: (d / SCALE, 0.0),
    ),
    "zCDP": (dp.m.make_gaussian(*INTEGER, SCALE), lambda d: (d**2 / (2 * SCALE**2),)),
    "approximate zCDP": (
        dp.c.make_approximate(dp.m.make_gaussian(*INTEGER, SCALE)),
        lambda d: (d**2 / (2 * SCALE**2), 0.0),
    ),
}


def parts(loss):
    return loss if isinstance(loss, tuple) else (loss,)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("d_in", [1, 2, 3])
def test_an_odometer_says_the_closed_form(name, d_in):
    measurement, closed = CASES[name]
    odometer = oc.make_concurrent_odometer(*measurement.input_space, measurement.output_measure)
    root = odometer(10)
    for launches in range(1, 6):
        root(measurement)
        for found, exact in zip(parts(root.privacy_loss(d_in)), closed(d_in), strict=True):
            assert found == pytest.approx(launches * exact, rel=1e-14)
            assert Fraction(found) >= launches * Fraction(exact)


@pytest.mark.parametrize("d_in", [1.0, 2.0, 3.0])
def test_renyi_odometers_sum_at_every_order(d_in):
    measurement = renyi_gaussian()
    root = oc.make_concurrent_odometer(*REAL, RENYI)(1.0)
    for _ in range(7):
        root(measurement)
    loss = root.privacy_loss(d_in)
    for alpha in (1.5, 2.0, 10.0, 1024.0):
        assert loss(alpha) == pytest.approx(7 * alpha * d_in**2 / 128, rel=1e-14)
    assert loss(10.5) == loss(11.0)  # in between, the value at the larger order
    assert loss(1e6) == math.inf
    assert "1 distinct curves" in repr(loss)
    assert root.loss_after([measurement] * 3, d_in)(2.0) == pytest.approx(10 * d_in**2 / 64)


def test_stability_enters_before_the_privacy_map():
    twice = dp.t.make_user_transformation(
        *INTEGER, *INTEGER, function=lambda x: 2 * x, stability_map=lambda d_in: 2 * d_in
    )
    gaussian = dp.m.make_gaussian(*INTEGER, SCALE)
    odometer = oc.make_concurrent_odometer(*INTEGER, ZCDP)
    chained = (twice >> odometer)(5)
    chained(gaussian)
    nested = odometer(5)
    nested(twice >> odometer)(gaussian)
    for root in (chained, nested):
        for d_in in (1, 2, 3):
            assert root.privacy_loss(d_in) == pytest.approx((2 * d_in) ** 2 / (2 * SCALE**2))


@pytest.mark.parametrize("kind", ["filter", "compositor", "context", "odometer"])
def test_a_bound_that_is_changed_later_is_not_the_bound(kind):
    """With real bounds of frames: ten rows a person, then none."""
    domain = dp.lazyframe_domain([dp.series_domain("x", dp.atom_domain(T=int))])
    domain = dp.with_margin(domain, dp.polars.Margin(max_length=100))
    frames, bound = (domain, dp.frame_distance(dp.symmetric_distance())), Bound(by=[], per_group=10)
    d_in = [bound]

    def privacy_map(d_in):
        loss = 0.1 * d_in[0].per_group
        d_in[0].per_group = 0  # a map that changes its argument changes nothing
        return loss

    cost = costing(privacy_map, lambda rows: 0, space=frames)
    odometer = oc.make_concurrent_odometer(*frames, PURE)
    data = pl.LazyFrame({"x": [1, 2, 3]})
    if kind == "filter":
        root = oc.make_concurrent_filter(odometer, d_in, 3.0)(data)
    elif kind == "compositor":
        root = oc.make_concurrent_composition(*frames, PURE, d_in, [1.0] * 3)(data)
    elif kind == "context":
        root = oc.concurrent_context(data, (frames[1], d_in), (PURE, 3.0), domain=frames[0])
    else:
        root = odometer(data)
        assert root.privacy_loss(d_in) == 0.0
    root(cost)
    bound.per_group = 0
    root(cost)
    root(cost)
    if kind == "odometer":
        assert root.privacy_loss([Bound(by=[], per_group=10)]) == 3.0
        assert root.privacy_loss(d_in) == 0.0
    else:
        with pytest.raises((BudgetExceededError, dp.OpenDPException)):
            root(cost)
        assert getattr(root, "queryable", root).privacy_loss() == 3.0
