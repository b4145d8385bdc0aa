"""Losses of real mechanisms against closed forms, at d_in = 1, 2 and 3."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")
SCALE = 8.0
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
INTEGER = dp.atom_domain(T=int), dp.absolute_distance(T=int)


def renyi_gaussian():
    """A Gaussian as a Rényi mechanism: alpha d^2 / (2 scale^2) [BS16, Lemma 2.4]."""
    gaussian = dp.m.make_gaussian(*REAL, scale=SCALE)
    return dp.m.make_user_measurement(
        *REAL,
        dp.renyi_divergence(),
        gaussian.function,
        lambda d_in: lambda alpha: alpha * d_in**2 / (2 * SCALE**2),
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
    root = oc.make_concurrent_odometer(*REAL, dp.renyi_divergence())(1.0)
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
    odometer = oc.make_concurrent_odometer(*INTEGER, dp.zero_concentrated_divergence())
    chained = (twice >> odometer)(5)
    chained(gaussian)
    nested = odometer(5)
    nested(twice >> odometer)(gaussian)
    for root in (chained, nested):
        for d_in in (1, 2, 3):
            assert root.privacy_loss(d_in) == pytest.approx((2 * d_in) ** 2 / (2 * SCALE**2))
