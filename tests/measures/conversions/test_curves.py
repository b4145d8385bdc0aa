"""Curves of a theorem's formula are known; any other function is a program of its author."""

import pytest

from opendp_concurrent.measures.conversion import KnownCurve, known, pure_to_renyi, zcdp_to_renyi


class Changing(float):
    """A distance that changes after it was read."""


@pytest.mark.parametrize("formula", [pure_to_renyi, zcdp_to_renyi])
def test_a_known_curve_is_copied(formula):
    curve = KnownCurve(formula, Changing(0.5))
    copy = known(curve)
    assert copy is not curve
    assert type(copy.distance) is float
    assert copy(3.0) == formula(0.5, 3.0)


def test_other_functions_are_not_known():
    class Below(KnownCurve):
        pass

    assert known(KnownCurve(max, 0.5)) is None
    assert known(Below(pure_to_renyi, 0.5)) is None
    assert known(lambda alpha: alpha) is None
