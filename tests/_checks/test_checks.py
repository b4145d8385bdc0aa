"""Guards: what passes, and as what; what is refused, by the name of the argument."""

import math
from fractions import Fraction

import pytest

from opendp_concurrent import _checks as checks
from opendp_concurrent._checks import check_key, hashable, weights, with_method
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


def test_an_integer_without_an_exact_double_is_refused():
    with pytest.raises(InvalidValueError, match="cannot be represented exactly as a double"):
        checks.non_negative(epsilon=2**53 + 1)


def test_numbers_pass_as_doubles():
    assert checks.non_negative(x=3) == 3.0
    assert isinstance(checks.non_negative(x=3), float)
    assert math.copysign(1.0, checks.non_negative(x=-0.0)) == 1.0
    assert checks.non_negative(x=math.inf) == math.inf


def test_the_components_of_a_loss_are_named():
    assert checks.epsilon_delta(d_mid=(1, 0)) == (1.0, 0.0)
    with pytest.raises(InvalidValueError, match=r"^d_mid\[0\] \(-1"):
        checks.epsilon_delta(d_mid=(-1.0, 0.0))
    with pytest.raises(InvalidValueError, match=r"^d_mid\[1\] \(nan"):
        checks.epsilon_delta(d_mid=(1.0, math.nan))


def test_orders_come_sorted_and_without_doubles():
    assert checks.orders(orders=[4, 2.0, 4.0]) == (2.0, 4.0)


def test_weights_are_exact():
    assert weights(weights=[0.1, 0, 3]) == [Fraction(0.1), 0, 3]


@pytest.mark.parametrize("key", ["a", 1, None, ("a", 1), (1, (2.5, b"x"))], ids=repr)
def test_what_is_hashable_and_equals_itself_is_a_key(key):
    check_key("keys", key)


@pytest.mark.parametrize("key", [math.nan, ("a", math.nan), (1, (2, math.nan))], ids=repr)
def test_what_does_not_equal_itself_is_none(key):
    with pytest.raises(InvalidValueError, match="^keys has .*does not equal itself"):
        check_key("keys", key)


@pytest.mark.parametrize("key", [[1], ("a", [1]), {}], ids=repr)
def test_what_has_no_hash_is_none(key):
    with pytest.raises(InvalidTypeError, match="^keys has .*is not hashable"):
        check_key("keys", key)


class Unhashable:
    __hash__ = None


class Opens:
    def open(self):
        return self


@pytest.mark.parametrize("value", [[], {}, ([],), Unhashable()])
def test_what_has_no_hash_is_refused_by_name(value):
    with pytest.raises(InvalidTypeError, match="^state must be hashable, found"):
        hashable(state=value)
    assert hashable(state=(1, "a")) == (1, "a")


def test_a_method_of_the_class_is_needed():
    opens = with_method("open", "have open()")
    door = Opens()
    assert opens(door=door) is door
    lying = Unhashable()
    lying.open = lambda: None
    for wrong in (lying, None, "open"):
        with pytest.raises(InvalidTypeError, match=r"^door must have open\(\), found"):
            opens(door=wrong)
