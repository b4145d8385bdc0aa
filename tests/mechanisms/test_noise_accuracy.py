"""Quantiles of noise on a grid, against exact tails."""

from math import ceil

import mpmath
import opendp.prelude as dp
import pytest

from opendp_concurrent.mechanisms.noise import gaussian_accuracy, laplace_accuracy

WHOLE, REAL = dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False)
BETAS = (0.9, 0.5, 0.05, 1e-6, 1e-100)


def laplace_above(steps, scale):
    """P(|noise| > steps) on the integers, exactly."""
    decay = mpmath.exp(-1 / mpmath.mpf(scale))
    return 2 * decay ** (steps + 1) / (1 + decay)


def gaussian_above(steps, scale):
    """P(|noise| > steps) on the integers, exactly."""
    last = steps + ceil(60 * scale) + 60
    weights = [
        mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(scale) ** 2)) for k in range(last)
    ]
    return 2 * sum(weights[steps + 1 :]) / (2 * sum(weights) - weights[0])


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 1234.5])
@pytest.mark.parametrize("beta", BETAS)
def test_laplace_noise_on_integers_has_the_least_bound(scale, beta):
    found = laplace_accuracy(WHOLE, scale, None).at(beta, None)
    assert found == int(found)
    assert laplace_above(int(found), scale) <= beta
    if found:
        assert laplace_above(int(found) - 1, scale) > beta


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("beta", BETAS[:4])
def test_gaussian_noise_on_integers_stays_within_the_bound(scale, beta):
    found = int(gaussian_accuracy(WHOLE, scale, None).at(beta, None))
    assert gaussian_above(found, scale) <= beta
    if found > 2:
        assert gaussian_above(found - 3, scale) > beta  # the bound is near


@pytest.mark.parametrize("k", [None, -10, 3])
def test_on_a_coarse_grid_of_floats_rounding_is_added(k):
    found = laplace_accuracy(REAL, 2.0, k).at(0.05, None)
    finest = laplace_accuracy(REAL, 2.0, None).at(0.05, None)
    assert finest == pytest.approx(2 * float(mpmath.log(20)), rel=1e-8)
    assert finest <= found + 1e-12 <= finest + 2 * (2.0**k if k is not None else 0) + 1e-9


def test_a_vector_has_as_many_answers_as_its_domain_says():
    sized = dp.vector_domain(WHOLE, size=10)
    assert laplace_accuracy(sized, 5.0, None).answers == 10
    assert laplace_accuracy(dp.vector_domain(WHOLE), 5.0, None).answers is None
    assert laplace_accuracy(WHOLE, 5.0, None).answers == 1
    assert laplace_accuracy(WHOLE, 0.0, None).at(0.5, None) == 0.0
