"""A double is read as the decimal that people typed, and sums of decimals fit exactly."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nan, nextafter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.measures.shapes import PairSum, ScalarSum, SquareSum
from opendp_concurrent.numerics.bracket import cap_and_shown, down, to_enforce, to_spend


def enforced(cap):
    """The bound as a filter reads it."""
    return cap_and_shown(to_enforce(cap), cap)[0]


HUNDREDTHS = [(a, b) for a in range(1, 100) for b in range(a, 100 - a)]
numbers = st.floats(min_value=0.0, allow_infinity=False)


@given(numbers)
def test_what_is_spent_is_at_most_the_decimal_and_the_double(value):
    spent, shown = to_spend(value), Fraction(Decimal(repr(value)))
    assert type(spent) is float
    assert Fraction(spent) <= min(shown, Fraction(value))
    assert spent in (value, nextafter(value, -inf))
    assert spent == value or shown < Fraction(value)


@given(numbers)
def test_what_is_enforced_is_the_larger_of_the_double_and_the_decimal(value):
    enforced = Fraction(to_enforce(value))
    assert enforced == max(Fraction(value), Fraction(Decimal(repr(value))))
    assert cap_and_shown(to_enforce(value), value)[0] == enforced


def test_nan_stays_nan_for_the_guards():
    for read in (to_spend, to_enforce):
        (found,) = read((nan,))
        assert found != found


class Distance(NamedTuple):
    """A distance of a measure of another package."""

    epsilon: float


def test_a_distance_of_another_class_stays_what_it_is():
    value = Distance(0.1)
    assert to_spend(value) is to_enforce(value) is down(value) is value


def test_pairs_are_read_part_by_part():
    assert to_spend((0.1, "0.1")) == (nextafter(0.1, 0.0), nextafter(0.1, 0.0))
    assert to_enforce((0.7, 0.8)) == ("0.7", 0.8)


@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_every_decimal_share_of_one_fits(digits):
    whole = 10**digits
    for share in (one for one in range(1, whole + 1) if whole % one == 0):
        total = ScalarSum().after(to_spend(share / whole), whole // share)
        assert total.within(enforced(1.0))
        doubles = ScalarSum().after(share / whole, whole // share)
        assert total.units <= doubles.units


@pytest.mark.parametrize("sum_", [ScalarSum, lambda: PairSum(), lambda: SquareSum()])
def test_all_sums_of_two_hundredths_fit_in_their_sum(sum_):
    pairs = type(sum_()) is PairSum
    for a, b in HUNDREDTHS:
        first, second = ((one / 100, one / 100) if pairs else one / 100 for one in (a, b))
        cap = ((a + b) / 100,) * 2 if pairs else (a + b) / 100
        total = sum_().after(to_spend(first)).after(to_spend(second))
        assert total.within(enforced(cap)), (a, b)


def test_an_exact_square_is_not_cut_off():
    """Nine squares of a double below a third: their sum is a square of a fraction."""
    third = to_spend(Fraction(1, 3))
    cap = 3 * Fraction(third)
    assert SquareSum().after(third, 9).within(cap)
    assert not SquareSum().after(third, 9).within(cap - Fraction(1, 2**1074))
    root = Fraction(665857, 470832)  # just above the root of two
    assert SquareSum().after(1.0, 2).within(root)
    assert not SquareSum().after(1.0, 2).within(1 / root * 2)


@pytest.mark.parametrize("sum_", [ScalarSum(), SquareSum()])
def test_the_double_after_the_largest_that_fits_does_not(sum_):
    cap = Fraction(7, 10)
    spent = sum_.after(to_spend(0.6))
    left = spent.remaining(cap)
    assert spent.after(left).within(cap)
    assert not spent.after(nextafter(left, inf)).within(cap)
    power = 1 if type(sum_) is ScalarSum else 2
    assert Fraction(spent.after(left).units, 2 ** (1074 * power)) <= cap**power


def test_the_square_of_a_bound_is_rounded_down_once():
    (limit,) = SquareSum().limits(Fraction(7, 10))
    assert limit == Fraction(49, 100) * 2**2148 // 1
