"""Which public keys can be looked up."""

import math

import pytest

from opendp_concurrent._checks import check_key
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


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
