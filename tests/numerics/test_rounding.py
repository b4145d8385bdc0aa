"""Numbers that are rounded in a stated direction, and doubles read as decimals that people type."""

import math
from decimal import Decimal
from fractions import Fraction
from math import inf, nan, nextafter
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from opendp_concurrent.measures.shapes import PairSum, ScalarSum, SquareSum
from opendp_concurrent.numerics.bracket import (
    LARGE,
    SMALLEST,
    cap_and_shown,
    down,
    from_units_down,
    from_units_up,
    halfway,
    largest_double,
    least_double,
    reciprocal_down,
    split,
    split_squares,
    sqrt_down,
    sqrt_up,
    to_enforce,
    to_spend,
    to_units,
    twice_quantile,
    typed,
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


def least_above(threshold, near):
    """What a search finds, and how often it asks; about finite doubles, and once for each."""
    asked = []

    def holds(value):
        assert math.isfinite(value)
        assert value not in asked
        asked.append(value)
        return value >= threshold

    return least_double(holds, near), len(asked)


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
    found, asked = least_above(1.0, near)
    assert found == 1.0
    assert asked <= most


@pytest.mark.parametrize("near", [0.0, 5e-324, 1e-300, 1e-3, 7.0, 1e300, math.inf])
def test_a_search_asks_little_from_anywhere(near):
    for threshold in (0.0, 5e-324, 1e-10, 1.0, 1e10, 1.7976931348623157e308, math.inf):
        found, asked = least_above(threshold, near)
        assert found == threshold
        assert asked <= 85


@pytest.mark.parametrize(
    ("near", "threshold"), [(8 * 5e-324, 0.0), (after(math.inf, -9), math.inf)]
)
def test_a_search_whose_steps_meet_its_ends_asks_about_finite_doubles_only(near, threshold):
    """From eight doubles away the second step lands on the end itself."""
    assert least_above(threshold, near)[0] == threshold


@pytest.mark.parametrize("total", [1.0, 0.1, 3.7])
def test_even_shares_can_all_be_spent_and_no_more(total):
    for k in (*range(1, 150), *range(150, 1001, 9)):
        share, *others = split(total, [Fraction(1)] * k)
        assert all(other == share for other in others)
        assert k * Fraction(share) <= Fraction(total) < (k + 1) * Fraction(share)


@given(st.fractions(min_value=0, max_value=10**300))
def test_units_of_a_fraction_are_rounded_down(value):
    assert to_units(value) == value // UNIT


# --- test_doubles --------------------------------------------------------------------------------


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


@pytest.mark.parametrize("total", [1.0, 0.1, 3.7])
def test_shares_of_a_square_add_up_to_at_most_the_square(total):
    shares = split_squares(total, [Fraction(1), Fraction(2), Fraction(4)])
    assert sum(Fraction(one) ** 2 for one in shares) <= Fraction(total) ** 2
    assert shares[2] == pytest.approx(total * math.sqrt(4 / 7))


# --- the quantile at given odds, against mpmath --------------------------------------------------


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


def test_the_ends():
    assert (twice_quantile(0.0), twice_quantile(math.inf)) == (0.0, math.inf)
    assert twice_quantile(2 * LARGE) == pytest.approx(math.sqrt(16 * LARGE), rel=1e-12)


# --- decimals ------------------------------------------------------------------------------------


LARGEST = nextafter(inf, 0.0)
fractions = st.fractions(min_value=0, max_value=10**300)


@given(fractions)
def test_the_two_roundings_are_the_doubles_around_a_fraction(value):
    low, (cap, high) = down(value), cap_and_shown(value, 0.25)
    assert cap == value
    assert type(low) is type(high) is float
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, nextafter(low, inf))
    assert (low == high) == (Fraction(low) == value)


@given(st.floats())
def test_a_double_means_the_double(value):
    assert typed(value) is down(value) is value
    assert cap_and_shown(value, 0.25) == (0.25, 0.25)  # what a guard made of it


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        ("1e-7", Fraction(1, 10**7)),
        (Decimal("0.70"), Fraction(7, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_what_is_typed_is_read_exactly(value, exact):
    assert typed(value) == exact
    cap, shown = cap_and_shown(value, 0.25)
    assert cap == exact
    assert cap_and_shown((value, 0.5), (0.25, 0.5)) == ((cap, 0.5), (shown, 0.5))
    assert down((value, 0.5)) == (down(exact), 0.5)


@pytest.mark.parametrize(
    "value",
    [None, "", "a tenth", "nan", "inf", "1e999999999", "1e400", Decimal("-inf"), Decimal("1e-500")],
)
def test_what_is_no_number_is_left_to_the_guards(value):
    assert typed(value) is value
    assert cap_and_shown(value, 0.25) == (0.25, 0.25)


def test_a_fraction_beyond_all_doubles_is_refused_by_every_guard():
    for value in (Fraction(10**400), -Fraction(10**400)):
        assert typed(value) != typed(value)  # NaN
        assert down(value) != down(value)


def test_a_fraction_next_to_the_ends_of_doubles():
    assert cap_and_shown(Fraction(1, 10**400), 0.0)[1] == 5e-324
    assert down(Fraction(1, 10**400)) == 0.0
    assert down(Fraction(LARGEST) + 1) == LARGEST
    assert cap_and_shown(Fraction(LARGEST) + 1, 0.0)[1] == inf


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


@given(st.floats(5e-324, 1e308))
def test_the_noise_multiplier_is_never_above_the_exact_one(loss):
    found = reciprocal_down(loss)
    assert 0 < Fraction(found) * Fraction(loss) <= 1
    if 1e-300 < loss < 1e300:
        assert found == pytest.approx(1 / loss, rel=1e-15)
