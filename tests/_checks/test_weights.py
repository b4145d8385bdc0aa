from fractions import Fraction

from opendp_concurrent._checks import weights


def test_weights_are_exact():
    assert weights(weights=[0.1, 0, 3]) == [Fraction(0.1), 0, 3]
