import math
from fractions import Fraction

import pytest

from opendp_concurrent import checks
from opendp_concurrent.errors import ConcurrentError, InvalidTypeError, InvalidValueError


@pytest.mark.parametrize("value", [-1.0, -1, math.nan, -math.inf, -5e-324])
def test_what_is_not_at_least_zero_is_refused_by_name(value):
    with pytest.raises(InvalidValueError, match=r"^epsilon \("):
        checks.non_negative(epsilon=value)


@pytest.mark.parametrize("value", ["1", None, True, [1.0], (1.0,), 1j, Fraction(1, 2)])
def test_what_is_not_a_number_is_refused_by_name(value):
    with pytest.raises(InvalidTypeError, match="^epsilon must be a number, found"):
        checks.non_negative(epsilon=value)


def test_an_integer_without_an_exact_double_is_refused():
    with pytest.raises(InvalidValueError, match="no exact double"):
        checks.non_negative(epsilon=2**53 + 1)


def test_numbers_pass_as_doubles():
    assert checks.non_negative(x=3) == 3.0
    assert isinstance(checks.non_negative(x=3), float)
    assert math.copysign(1.0, checks.non_negative(x=-0.0)) == 1.0
    assert checks.non_negative(x=math.inf) == math.inf


def test_infinity_is_not_finite():
    with pytest.raises(InvalidValueError, match=r"^d_out \(inf\) must be finite"):
        checks.finite(d_out=math.inf)


@pytest.mark.parametrize("value", [1.0 + 2**-52, 2, math.inf])
def test_a_probability_is_at_most_one(value):
    with pytest.raises(InvalidValueError, match=r"^delta \(.*at most 1"):
        checks.probability(delta=value)


def test_orders_come_sorted_and_without_doubles():
    assert checks.orders(orders=[4, 2.0, 4.0]) == (2.0, 4.0)


@pytest.mark.parametrize("value", [[], "12", 2.0, None])
def test_orders_must_be_a_nonempty_sequence(value):
    with pytest.raises(InvalidTypeError, match="^orders must be"):
        checks.orders(orders=value)


@pytest.mark.parametrize("value", [[1.0], [2.0, math.nan], [0.5], [math.inf]])
def test_orders_must_be_finite_and_above_one(value):
    with pytest.raises(InvalidValueError, match=r"^orders \("):
        checks.orders(orders=value)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-3, ValueError), (2.0, TypeError)])
def test_a_count_is_a_positive_integer(value, error):
    with pytest.raises(error, match="^split_evenly_over") as caught:
        checks.count(split_evenly_over=value)
    assert isinstance(caught.value, ConcurrentError)
