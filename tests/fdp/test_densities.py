"""Densities on the line against the closed forms of their pairs."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from opendp_concurrent.fdp.function import TradeoffFunction as T

EPSILONS = [-2.0, -0.5, 0.0, 0.3, 0.8, 1.5, 3.0]


def normal(mean):
    return lambda x: np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def laplace(centre, scale):
    return lambda x: np.exp(-np.abs(x - centre) / scale) / (2 * scale)


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("cells", [64, 256])
def test_a_gaussian_is_rounded_outward_and_close(mu, cells):
    made = T.from_densities(normal(0.0), normal(mu), [-10.0, 10.0 + mu], cells)
    for epsilon in EPSILONS:
        exact = T.gaussian(mu).delta_bounds(epsilon)
        found = made.delta_bounds(epsilon)
        assert found.upper >= exact.lower
        assert found.upper <= exact.upper + 40 * mu / cells**2 * 10
        back = made.inverse().delta_bounds(epsilon)
        assert back.upper >= exact.lower


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_laplace_is_rounded_outward_and_close(epsilon):
    made = T.from_densities(
        laplace(0.0, 1.0), laplace(epsilon, 1.0), [-40.0, 0.0, epsilon, 40.0 + epsilon], 200
    )
    for at in EPSILONS:
        exact = T.laplace(epsilon).delta_bounds(at)
        assert exact.lower <= made.delta(at) <= exact.upper + 1e-4 * epsilon**2 + 1e-12


def test_the_sides_of_the_pair_are_kept():
    """P on (0, 1) with density 2x against Q uniform: a test for x > 1 - α has power 1 - (1-α)²."""

    def rising(x):
        return 2 * x + 1e-9

    def uniform(x):
        return np.ones_like(x)

    made = T.from_densities(uniform, rising, [1e-9, 1.0], 400)
    for alpha in (0.05, 0.3, 0.7):
        assert made.beta(alpha) == pytest.approx((1 - alpha) ** 2, abs=1e-4)
        assert made.beta(alpha) <= (1 - alpha) ** 2 + 1e-8
        assert made.inverse().beta(alpha) == pytest.approx(1 - math.sqrt(alpha), abs=1e-4)
    # δ of the first against the second: of x above e^ε / 2
    for epsilon in (-0.3, 0.0, 0.4):
        assert made.delta(epsilon) == pytest.approx((1 - math.exp(epsilon) / 2) ** 2, abs=1e-4)


def test_what_is_outside_the_breakpoints_is_an_infinite_loss():
    made = T.from_densities(normal(0.0), normal(1.0), [-2.0, 2.0], 64)
    outside = 1.0 - (ndtr(1.0) - ndtr(-3.0))
    assert made.delta_bounds(50.0).upper == pytest.approx(outside, rel=1e-6)
    assert made.delta_bounds(50.0).upper >= outside * (1 - 1e-12)
    back = 1.0 - (ndtr(2.0) - ndtr(-2.0))
    assert made.inverse().delta(50.0) == pytest.approx(back, rel=1e-6)
    assert made.epsilon(0.0) == math.inf


def test_equal_densities_lose_hardly_anything():
    made = T.from_densities(normal(0.0), normal(0.0), [-9.0, 9.0], 32)
    assert made.delta(0.0) <= 1e-10
    assert made.delta(-1.0) == pytest.approx(1 - math.exp(-1.0), abs=1e-10)


def test_products_of_densities_are_rounded_outward():
    made = T.from_densities(normal(0.0), normal(0.5), [-10.0, 10.5], 128).power(2)
    for epsilon in (0.0, 0.5, 1.0):
        exact = T.gaussian(math.sqrt(0.5)).delta_bounds(epsilon)
        assert exact.lower <= made.delta(epsilon) <= exact.upper * 1.02


def test_more_cells_lose_less():
    exact = T.gaussian(1.0).delta(0.5)
    gaps = [
        T.from_densities(normal(0.0), normal(1.0), [-10.0, 11.0], cells).delta(0.5) - exact
        for cells in (16, 32, 64, 128)
    ]
    assert all(0.0 < after < 0.5 * before for before, after in pairwise(gaps))
