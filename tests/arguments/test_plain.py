from enum import IntEnum

import pytest

from opendp_concurrent.arguments.plain import plain


class Lying(float):
    def __float__(self):
        return 2.0


class Named(str):
    def __str__(self):
        return "other"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "expected"), [(Lying(1.0), 1.0), (Named("a"), "a"), (Number.ONE, 1), (True, True)]
)
def test_a_subclass_becomes_pythons_own_class(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


def test_other_values_stay_as_they_are():
    value = [1.0]
    assert plain(value) is value
