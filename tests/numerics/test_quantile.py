"""The quantile at given odds, against mpmath."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from opendp_concurrent.numerics.normal import LARGE, twice_quantile

GRID = [
    *(5e-324, 1e-310, 1e-300, 1e-20, 1e-8, 1e-3, 0.1, 0.999, 1.0, 1.001, 5.0, 37.0),
    *(300.0, 700.0, 745.0, 1000.0),
]


def is_covered(double, epsilon):
    """Whether Φ(double / 2) is at least e^ε / (1 + e^ε), in 60 digits beyond those that cancel."""
    with mp.workdps(60 + int(0.44 * epsilon)):
        x, e = mpf(double) / 2, mpf(epsilon)
        if epsilon < 1.0:
            return mp.erf(x / mp.sqrt(2)) >= mp.tanh(e / 2)
        return mp.erfc(x / mp.sqrt(2)) / 2 <= 1 / (1 + mp.exp(e))


@pytest.mark.parametrize("epsilon", GRID)
def test_the_bound_is_the_least_double_that_covers(epsilon):
    found = twice_quantile(epsilon)
    assert is_covered(found, epsilon)
    assert not is_covered(math.nextafter(found, 0.0), epsilon)


@given(st.floats(1e-6, 60.0), st.floats(1.0, 1.01))
def test_it_increases(epsilon, factor):
    assert twice_quantile(epsilon) <= twice_quantile(epsilon * factor)


def test_the_ends():
    assert (twice_quantile(0.0), twice_quantile(math.inf)) == (0.0, math.inf)
    assert twice_quantile(2 * LARGE) == pytest.approx(math.sqrt(16 * LARGE), rel=1e-12)
