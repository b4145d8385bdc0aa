"""The norm of the column that one unit moves."""

from fractions import Fraction
from math import inf, nextafter, sqrt

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.matrices import column_mu

T = oc.TradeoffFunction


@pytest.mark.parametrize("sigma", [1.0, 3.0, 1e-200, 1e200])
def test_one_step_is_the_largest_column_rounded_up(sigma):
    encoder = np.array([[0.1, 0.7, 1e-200], [0.2, 0.0, 0.3], [0.3, 0.1, -0.6]])
    found = column_mu(encoder, Fraction(sigma))
    exact = max(sum(Fraction(x) ** 2 for x in column) for column in encoder.T.tolist())
    assert Fraction(found) ** 2 >= exact / Fraction(sigma) ** 2
    assert Fraction(nextafter(found, 0.0)) ** 2 < exact / Fraction(sigma) ** 2


def test_simple_encoders():
    assert T.gaussian_matrix(np.eye(100), 4.0) == T.gaussian(0.25)
    assert T.gaussian_matrix([[3], [4]], 10.0) == T.gaussian(0.5)
    assert T.gaussian_matrix(np.zeros((2, 3)), 1.0) == T.identity()


def test_the_square_root_has_its_known_norm():
    """theory: mean RMSE of the square root at 1,023 steps is 3.109479."""
    c = np.cumprod([1.0, *(1 - 1 / (2 * k) for k in range(1, 1023))])
    norms = np.cumsum(c * c)
    mu = T.gaussian_matrix(c[:, None], 1.0).mu
    assert mu == pytest.approx(sqrt(norms[-1]), rel=1e-12)
    assert mu * sqrt(np.mean(norms)) == pytest.approx(3.109479, rel=1e-6)


def test_wrong_arguments_are_refused():
    for encoder in (np.ones(3), np.ones((2, 2, 2)), np.zeros((0, 2)), [[inf]], 1.0):
        with pytest.raises(InvalidValueError, match="encoder"):
            T.gaussian_matrix(encoder, 1.0)
