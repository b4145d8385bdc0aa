import math

import pytest

from opendp_concurrent import _checks as checks
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


def test_an_integer_without_an_exact_double_is_refused():
    with pytest.raises(InvalidValueError, match="cannot be represented exactly as a double"):
        checks.non_negative(epsilon=2**53 + 1)


def test_numbers_pass_as_doubles():
    assert checks.non_negative(x=3) == 3.0
    assert isinstance(checks.non_negative(x=3), float)
    assert math.copysign(1.0, checks.non_negative(x=-0.0)) == 1.0
    assert checks.non_negative(x=math.inf) == math.inf


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


def test_orders_come_sorted_and_without_doubles():
    assert checks.orders(orders=[4, 2.0, 4.0]) == (2.0, 4.0)
