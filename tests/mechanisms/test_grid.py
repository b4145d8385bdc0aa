"""The grid on which OpenDP samples noise: its step over the scale, rounded up."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.mechanisms.noise import atom_type, grid_exponent, grid_step, is_vector

DOUBLE = dp.atom_domain(T=float, nan=False)
SINGLE = dp.atom_domain(T="f32", nan=False)
WHOLE = dp.atom_domain(T=int)


def test_domains_are_told_apart():
    domains = [DOUBLE, SINGLE, WHOLE, dp.vector_domain(DOUBLE), dp.vector_domain(WHOLE)]
    assert [atom_type(one) for one in domains] == ["f64", "f32", "i32", "f64", "i32"]
    assert [is_vector(one) for one in domains] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("domain", "k", "step"),
    [
        (WHOLE, None, Fraction(1)),
        (WHOLE, 5, Fraction(1)),  # integers have a grid of their own
        (DOUBLE, None, Fraction(2) ** -1074),
        (SINGLE, None, Fraction(2) ** -149),
        (DOUBLE, -3, Fraction(1, 8)),
        (DOUBLE, 7, Fraction(128)),
    ],
)
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0, 1e6])
def test_the_step_is_that_of_the_grid_over_the_scale_rounded_up(domain, k, step, scale):
    found, exact = grid_step(domain, scale, k), step / Fraction(scale)
    assert Fraction(found) >= exact
    assert found <= max(float(exact) * (1 + 1e-14), 1e-323)


def test_no_noise_has_an_infinite_step():
    assert grid_step(WHOLE, 0.0, None) == math.inf


def test_exponents_are_those_of_doubles():
    assert [grid_exponent(k=k) for k in (-1074, 0, 1023)] == [-1074, 0, 1023]
    for k in (-1075, 1024):
        with pytest.raises(InvalidValueError, match=r"^k .* from -1074 to 1023"):
            grid_exponent(k=k)
    with pytest.raises(InvalidTypeError, match="^k "):
        grid_exponent(k=0.5)
