"""Bounds on characteristic functions, against characteristic functions."""

import math

import numpy as np
import pytest

from opendp_concurrent.fdp import decay
from opendp_concurrent.fdp.subsampled import Subsampled


def test_a_density_on_an_interval_has_the_largest_sum_of_phases():
    """A uniform density on [0, 1]: V = 2, and |ρ| = |sin(ω/2)| / (ω/2)."""
    density = decay.Density(1.0, 2.0, 0.0)
    for omega in (0.1, 1.0, 3.0, 10.0, 100.0):
        bound = float(density.log_bound(np.array([omega]))[0])
        assert abs(math.sin(omega / 2) / (omega / 2)) <= math.exp(bound)
        highest = 1 / (2 * math.pi) + 1 / omega
        assert bound == pytest.approx(math.log(2 * highest * math.sin(1 / (2 * highest))))


@pytest.mark.parametrize("unit", ["removed", "added"])
@pytest.mark.parametrize("tau", [0.25, 3.36, 32.0])
@pytest.mark.parametrize(
    ("noise", "size", "rate"),
    [
        ("gaussian", 0.3, 0.01),
        ("gaussian", 1.0, 0.3),
        ("gaussian", 2.0, 0.9),
        ("laplace", 2.0, 0.1),
    ],
)
def test_the_bound_is_above_the_characteristic_function_from_there_on(noise, size, rate, tau, unit):
    factor = Subsampled(noise, size, rate, unit)
    scale = math.sqrt(factor.variance)
    step = 0.05 / scale
    values = np.abs(factor.transform(tau, step, 600).values)
    largest = np.maximum.accumulate(values[::-1])[::-1]
    omega = step * np.arange(1, 600)
    bounds = np.exp(factor.log_decay(tau, omega))
    assert np.all(largest[1:] <= bounds + 1e-12)
    assert np.all(np.diff(bounds) <= 1e-12)


def test_the_bound_has_part_of_the_curvature_at_small_frequencies():
    """Otherwise a thousand steps would need an endless path."""
    factor = Subsampled("gaussian", 1.0, 0.01, "removed")
    omega = np.array([0.3 / math.sqrt(factor.variance)])
    value = abs(factor.transform(4.0, float(omega[0]), 2).values[1])
    assert factor.log_decay(4.0, omega)[0] <= 0.03 * math.log(value) < 0.0


def test_numbers_beyond_the_doubles_give_no_bound():
    nothing = decay.Density(np.nan, np.nan, np.nan)
    assert nothing.log_bound(np.array([1.0]))[0] == 0.0
