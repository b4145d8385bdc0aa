from fractions import Fraction

import pytest

from opendp_concurrent._checks import weights
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


def test_weights_are_exact():
    assert weights(weights=[0.1, 0, 3]) == [Fraction(0.1), 0, 3]


@pytest.mark.parametrize("values", weights.refused)
def test_weights_that_split_nothing_are_refused(values):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="weights"):
        weights(weights=values)
