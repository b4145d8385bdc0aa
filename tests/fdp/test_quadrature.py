"""The rules themselves: nodes and weights, losses, and steps."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp import quadrature


@pytest.mark.parametrize("count", [12, 20])
def test_nodes_and_weights_are_as_accurate_as_assumed(count):
    """Against the roots of the Legendre polynomials, to 40 digits."""
    points, weights = np.polynomial.legendre.leggauss(count)
    with mp.workdps(40):
        for point, weight in zip(points, weights, strict=True):
            ends = mpf(point) - mpf("1e-9"), mpf(point) + mpf("1e-9")
            root = mp.findroot(lambda x: mp.legendre(count, x), ends, solver="anderson", tol=1e-60)
            slope = count * (root * mp.legendre(count, root) - mp.legendre(count - 1, root))
            exact = 2 * (1 - root**2) / slope**2
            assert abs(root - mpf(point)) <= quadrature._RULE
            assert abs(exact / mpf(weight) - 1) <= quadrature._WEIGHT


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.5, 1 - 1e-9])
def test_losses_are_within_their_errors(rate):
    u = np.concatenate([np.linspace(-60.0, 60.0, 241), [1e-12, -1e-12, 30.0, 31.0, 300.0]])
    values, errors, slopes = quadrature.losses(u, np.zeros(len(u)), rate)
    with mp.workdps(60):
        for one, value, error, slope in zip(u, values, errors, slopes, strict=True):
            q, power = mpf(rate), mp.exp(mpf(one))
            exact = mp.log(1 - q + q * power)
            assert abs(exact - mpf(value)) <= error
            assert abs(q * power / (1 - q + q * power) - mpf(slope)) <= 1e-12 * mpf(slope)


@pytest.mark.parametrize("omega", [0.0, 30.0, 300.0])
@pytest.mark.parametrize("low", [1.5, 20.0, -0.5, -12.0])
def test_half_the_step_changes_a_sum_by_no_more_than_the_bound(low, omega):
    """The step is as long as the proof allows: twice as many nodes give the same number."""
    mu, rate = 0.8, 0.1
    h, relative = quadrature.strip_step(mu, rate, low, omega)
    assert relative <= 1e-17
    left, right = quadrature.gaussian_window(mu, rate, low, low)
    sums, whole = [], 0.0
    for step in (h, h / 2):
        x = step * np.arange(math.floor(left / step), math.ceil(right / step))
        losses, _, _ = quadrature.gaussian_losses(mu, rate, x)
        terms = step * np.exp(low * losses - x * x / 2)
        sums.append(np.sum(terms * np.exp(1j * omega * losses)))
        whole = np.sum(terms)
    assert abs(sums[0] - sums[1]) <= 1e-13 * whole
