"""What all accumulators share: counts of launches, and totals of two machines."""

import math
from fractions import Fraction

import pytest

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.measure import EvenlyDivisible, nearly_equal, times


def test_a_charge_is_at_least_one_launch():
    assert times(1) == 1
    assert times(10**30) == 10**30
    for count in (0, -1):
        with pytest.raises(InvalidValueError, match="^count"):
            times(count)
    for count in (1.0, True, "1", None):
        with pytest.raises(InvalidTypeError, match="^count"):
            times(count)


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        (1.0, 1.0 + 2**-45, True),
        (1.0, 1.0 + 2**-35, False),
        (0.0, 5e-324, False),
        (math.inf, math.inf, True),
        (math.inf, 1.0, False),
        (math.nan, math.nan, False),
        (3 * 2**2000, 3 * 2**2000 + 1, True),
    ],
)
def test_totals_that_differ_by_rounding_are_nearly_equal(one, other, near):
    assert nearly_equal(one, other) == nearly_equal(other, one) == near


def test_a_bound_is_divided_by_the_measure():
    weights = [Fraction(1), Fraction(1), Fraction(2)]
    assert EvenlyDivisible().shares(MAX_DIVERGENCE, 1.0, weights) == [0.25, 0.25, 0.5]
