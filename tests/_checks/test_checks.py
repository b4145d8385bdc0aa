import math
from fractions import Fraction

import pytest

from opendp_concurrent import _checks as checks
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
    with pytest.raises(InvalidValueError, match="cannot be represented exactly as a double"):
        checks.non_negative(epsilon=2**53 + 1)


def test_numbers_pass_as_doubles():
    assert checks.non_negative(x=3) == 3.0
    assert isinstance(checks.non_negative(x=3), float)
    assert math.copysign(1.0, checks.non_negative(x=-0.0)) == 1.0
    assert checks.non_negative(x=math.inf) == math.inf


@pytest.mark.parametrize("guard", [checks.finite, checks.positive])
def test_infinity_is_not_finite(guard):
    with pytest.raises(InvalidValueError, match=r"^d_out \(inf\) must be finite"):
        guard(d_out=math.inf)


@pytest.mark.parametrize("guard", [checks.finite, checks.positive, checks.real, checks.order])
def test_nan_is_nothing(guard):
    with pytest.raises(InvalidValueError, match=r"^d_out \(nan\)"):
        guard(d_out=math.nan)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0])
def test_what_is_positive_is_above_zero(value):
    with pytest.raises(InvalidValueError, match=r"^scale \("):
        checks.positive(scale=value)
    assert checks.positive(scale=5e-324) == 5e-324


@pytest.mark.parametrize("value", [None, 0.5, [0.5, 0.0], (0.5,), (0.5, 0.0, 0.0), "ab"])
def test_a_pair_is_a_tuple_of_two(value):
    for guard in (checks.pair, checks.epsilon_delta):
        with pytest.raises(InvalidTypeError, match="^d_mid must be a pair of numbers, found"):
            guard(d_mid=value)


def test_the_components_of_a_loss_are_named():
    assert checks.epsilon_delta(d_mid=(1, 0)) == (1.0, 0.0)
    with pytest.raises(InvalidValueError, match=r"^d_mid\[0\] \(-1"):
        checks.epsilon_delta(d_mid=(-1.0, 0.0))
    with pytest.raises(InvalidValueError, match=r"^d_mid\[1\] \(nan"):
        checks.epsilon_delta(d_mid=(1.0, math.nan))


@pytest.mark.parametrize("value", [[], (), "12", b"12", None, 2.0, {1.0}])
def test_a_sequence_is_not_empty_and_no_text(value):
    with pytest.raises(InvalidTypeError, match="^typical must be a nonempty sequence of losses"):
        checks.sequence("losses", typical=value)


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


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_a_whole_number_is_at_least_zero(value, error):
    assert checks.whole(count=0) == 0
    with pytest.raises(error, match="^count"):
        checks.whole(count=value)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-3, ValueError), (2.0, TypeError)])
def test_a_count_is_a_positive_integer(value, error):
    with pytest.raises(error, match="^split_evenly_over") as caught:
        checks.count(split_evenly_over=value)
    assert isinstance(caught.value, ConcurrentError)


def test_what_must_be_positive_is_told_so_at_once():
    for value in (-1.0, 0.0, math.inf, math.nan):
        with pytest.raises(InvalidValueError, match=r"^scale .* must be finite and above 0"):
            checks.positive(scale=value)
