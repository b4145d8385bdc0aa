"""What is typed as a Decimal, a Fraction or a text is read exactly and rounded to the safe side."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.numerics.bracket import cap_and_shown, down, typed

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


class Lying(Fraction):
    def __lt__(self, other):
        return True


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


def test_a_class_of_another_package_is_not_read():
    assert type(typed(Lying(1, 3))) is Lying
    assert cap_and_shown(Lying(1, 3), 0.25) == (0.25, 0.25)


def test_a_fraction_next_to_the_ends_of_doubles():
    assert cap_and_shown(Fraction(1, 10**400), 0.0)[1] == 5e-324
    assert down(Fraction(1, 10**400)) == 0.0
    assert down(Fraction(LARGEST) + 1) == LARGEST
    assert cap_and_shown(Fraction(LARGEST) + 1, 0.0)[1] == inf
