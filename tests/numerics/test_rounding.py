import math
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.numerics.bracket import (
    SMALLEST,
    from_units_down,
    from_units_up,
    largest_double,
    least_double,
    split,
    sqrt_down,
    sqrt_up,
    to_units,
)

UNIT = Fraction(1, 2**1074)
doubles = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)


@given(doubles)
def test_units_are_exact(value):
    assert to_units(value) * UNIT == Fraction(value)


@given(doubles)
def test_a_double_survives_both_roundings(value):
    units = to_units(value)
    assert from_units_up(units) == from_units_down(units) == value


@given(st.lists(doubles, min_size=1, max_size=20))
def test_rounded_sums_bracket_the_exact_sum_within_one_ulp(values):
    exact = sum(map(Fraction, values))
    units = sum(map(to_units, values))
    up, down = from_units_up(units), from_units_down(units)
    assert Fraction(down) <= exact
    if math.isfinite(up):
        assert exact <= Fraction(up)
        assert up in (down, math.nextafter(down, math.inf))
    else:
        assert exact > Fraction(math.nextafter(math.inf, 0.0))
        assert down == math.nextafter(math.inf, 0.0)


def test_just_above_the_largest_double_rounds_up_to_infinity():
    largest = math.nextafter(math.inf, 0.0)
    assert from_units_up(to_units(largest)) == largest
    assert from_units_up(to_units(largest) + 1) == math.inf
    assert from_units_down(to_units(largest) + 1) == largest


@pytest.mark.parametrize("more", [1, 2, 3])
def test_a_sum_of_one_bit_more_than_a_double_has_is_rounded_outward(more):
    units = 2**53 + more  # the nearest double of 2**53 + 1 is below, that of 2**53 + 3 above
    assert to_units(from_units_down(units)) == units - units % 2
    assert to_units(from_units_up(units)) == units + units % 2


@given(doubles, st.lists(st.fractions(min_value=0, max_value=100), min_size=1, max_size=30))
def test_shares_never_exceed_the_whole(total, weights):
    if not sum(weights):
        return
    shares = split(total, weights)
    assert sum(map(Fraction, shares)) <= Fraction(total)
    whole = sum(weights)
    for share, weight in zip(shares, weights, strict=True):
        exact = Fraction(total) * weight / whole
        assert Fraction(share) <= exact
        above = math.nextafter(share, math.inf)
        assert above == math.inf or Fraction(above) > exact


@given(st.integers(0, 2**4000))
def test_roots_are_rounded_outward(units):
    up, down = sqrt_up(units), sqrt_down(units)
    exact = Fraction(units, 2 ** (2 * SMALLEST))
    assert Fraction(down) ** 2 <= exact <= Fraction(up) ** 2
    if units:
        assert Fraction(math.nextafter(up, 0.0)) ** 2 < exact
        assert Fraction(math.nextafter(down, math.inf)) ** 2 > exact


@given(st.floats(0.0, allow_infinity=True), st.floats(0.0, allow_infinity=True))
def test_searches_find_the_threshold_from_anywhere(threshold, near):
    assert least_double(lambda value: value >= threshold, near) == threshold
    largest = 1.7976931348623157e308
    assert largest_double(lambda value: value <= threshold, near) == min(threshold, largest)


def test_searches_that_find_nothing():
    assert least_double(lambda value: False) == math.inf
    assert largest_double(lambda value: False) == 0.0


class Counted:
    """A threshold that counts how often it is asked; about finite doubles, and once for each."""

    def __init__(self, threshold):
        self.threshold, self.known = threshold, set()

    def __call__(self, value):
        assert math.isfinite(value)
        assert value not in self.known
        self.known.add(value)
        return value >= self.threshold

    @property
    def asked(self):
        return len(self.known)


def after(value, steps):
    for _ in range(abs(steps)):
        value = math.nextafter(value, math.copysign(math.inf, steps))
    return value


@pytest.mark.parametrize(
    ("near", "most"),
    [
        (1.0, 2),
        (after(1.0, 1), 6),
        (after(1.0, -1), 2),
        (after(1.0, 30), 10),
        (after(1.0, -30), 10),
    ],
)
def test_a_search_asks_little_near_its_threshold(near, most):
    holds = Counted(1.0)
    assert least_double(holds, near) == 1.0
    assert holds.asked <= most


@pytest.mark.parametrize("near", [0.0, 5e-324, 1e-300, 1e-3, 7.0, 1e300, math.inf])
def test_a_search_asks_little_from_anywhere(near):
    for threshold in (0.0, 5e-324, 1e-10, 1.0, 1e10, 1.7976931348623157e308, math.inf):
        holds = Counted(threshold)
        assert least_double(holds, near) == threshold
        assert holds.asked <= 85


def test_a_search_begins_at_one():
    for threshold in (1.0, after(1.0, 3), after(1.0, -3)):
        least, largest = Counted(threshold), Counted(threshold)
        assert least_double(least) == threshold
        assert largest_double(partial(_fails, largest)) == after(threshold, -1)
        assert max(least.asked, largest.asked) <= 6


def _fails(holds, value):
    return not holds(value)


@pytest.mark.parametrize("near", [0.0, 5e-324, 1.0, after(math.inf, -2), after(math.inf, -1)])
def test_a_search_asks_where_it_is_told_to_look_first(near):
    asked = []
    least_double(lambda value: asked.append(value) or value >= 1.0, near)
    assert asked[0] == near


@pytest.mark.parametrize(
    ("near", "threshold"), [(8 * 5e-324, 0.0), (after(math.inf, -9), math.inf)]
)
def test_a_search_whose_steps_meet_its_ends_asks_about_finite_doubles_only(near, threshold):
    """From eight doubles away the second step lands on the end itself."""
    assert least_double(Counted(threshold), near) == threshold


@pytest.mark.parametrize("total", [1.0, 0.1, 3.7])
def test_even_shares_can_all_be_spent_and_no_more(total):
    for k in (*range(1, 150), *range(150, 1001, 9)):
        share, *others = split(total, [Fraction(1)] * k)
        assert all(other == share for other in others)
        assert k * Fraction(share) <= Fraction(total) < (k + 1) * Fraction(share)


@given(st.fractions(min_value=0, max_value=10**300))
def test_units_of_a_fraction_are_rounded_down(value):
    assert to_units(value) == value // UNIT
