import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.numerics.bracket import halfway, split_squares


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_halving_by_number_ends_at_neighbours_within_64_steps(one, other):
    low, high = min(one, other) + 0.0, max(one, other) + 0.0  # without the sign of zero
    for _ in range(65):
        middle = halfway(low, high)
        assert low <= middle <= high
        if middle == low:
            break
        assert middle < high
        low, high = (middle, high) if middle < 0.1 else (low, middle)
    assert high <= math.nextafter(low, math.inf)


def test_as_many_doubles_are_below_the_middle_as_above():
    assert halfway(1.0, 2.0) == 1.5
    assert halfway(1.0, 4.0) == 2.0
    assert halfway(-4.0, -1.0) == -2.0
    assert halfway(-3.0, 3.0) == 0.0
    assert halfway(0.0, 5e-324) == 0.0
    assert halfway(-5e-324, 0.0) == -5e-324


@pytest.mark.parametrize("total", [1.0, 0.1, 3.7])
def test_shares_of_a_square_add_up_to_at_most_the_square(total):
    shares = split_squares(total, [Fraction(1), Fraction(2), Fraction(4)])
    assert sum(Fraction(one) ** 2 for one in shares) <= Fraction(total) ** 2
    assert shares[2] == pytest.approx(total * math.sqrt(4 / 7))
