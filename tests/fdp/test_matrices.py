"""The norm of the columns that one unit moves."""

from fractions import Fraction
from itertools import combinations, pairwise
from math import inf, nextafter, sqrt

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.counters.factors.power import PowerFactor, coefficients
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.exact.participations import Participations
from opendp_concurrent.fdp.matrices import MOST_COLUMNS, column_mu

T = oc.TradeoffFunction


def square_root(steps):
    """C of prefix sums: A = C C [FHU23]."""
    c = np.cumprod([1.0, *(1 - 1 / (2 * k) for k in range(1, steps))])
    return np.array([[c[t - j] if t >= j else 0.0 for j in range(steps)] for t in range(steps)])


def largest(encoder, count, separation):
    """Over all sets of steps, and all signs of the contributions."""
    inner = np.abs(encoder.T @ encoder)
    sets = [
        some
        for size in range(1, count + 1)
        for some in combinations(range(encoder.shape[1]), size)
        if all(b - a >= separation for a, b in pairwise(some))
    ]
    return max(sum(inner[i, j] for i in some for j in some) for some in sets)


@pytest.mark.parametrize("sigma", [1.0, 3.0, 1e-200, 1e200])
def test_one_step_is_the_largest_column_rounded_up(sigma):
    encoder = np.array([[0.1, 0.7, 1e-200], [0.2, 0.0, 0.3], [0.3, 0.1, -0.6]])
    found = column_mu(encoder, Fraction(sigma), 1, 1)
    exact = max(sum(Fraction(x) ** 2 for x in column) for column in encoder.T.tolist())
    assert Fraction(found) ** 2 >= exact / Fraction(sigma) ** 2
    assert Fraction(nextafter(found, 0.0)) ** 2 < exact / Fraction(sigma) ** 2


def test_simple_encoders():
    assert T.gaussian_matrix(np.eye(100), 4.0) == T.gaussian(0.25)
    assert T.gaussian_matrix([[3], [4]], 10.0) == T.gaussian(0.5)
    assert T.gaussian_matrix(np.zeros((2, 3)), 1.0) == T.identity()
    # every step is new noise: a unit that takes part in four is in four Gaussian mechanisms
    together = T.gaussian_matrix(np.eye(100), 1.0, participations=4)
    assert together.mu == pytest.approx(2.0, rel=1e-12)
    assert together.mu >= 2.0
    assert T.gaussian_matrix(np.eye(9), 1.0, participations=9, separation=9) == T.gaussian(1.0)


def test_the_square_root_has_its_known_norm():
    """theory: mean RMSE of the square root at 1,023 steps is 3.109479."""
    c = np.cumprod([1.0, *(1 - 1 / (2 * k) for k in range(1, 1023))])
    norms = np.cumsum(c * c)
    mu = T.gaussian_matrix(c[:, None], 1.0).mu
    assert mu == pytest.approx(sqrt(norms[-1]), rel=1e-12)
    assert mu * sqrt(np.mean(norms)) == pytest.approx(3.109479, rel=1e-6)


@pytest.mark.parametrize(("count", "separation"), [(2, 1), (3, 2), (2, 5), (4, 3), (9, 1)])
def test_several_steps_are_never_below_all_sets(count, separation):
    generator = np.random.default_rng(count * 10 + separation)
    for encoder in (square_root(8), generator.normal(size=(6, 8)), generator.normal(size=(9, 9))):
        exact = largest(encoder, count, separation)
        found = column_mu(encoder, Fraction(1), count, separation) ** 2
        assert exact * (1 - 1e-13) <= found
        assert found <= encoder.shape[1] * max(1.0, exact)


def test_it_is_exact_for_columns_that_are_orthogonal_where_they_are_apart():
    band = np.tril(np.ones((12, 12))) - np.tril(np.ones((12, 12)), -3)
    for count in (1, 2, 4):
        exact = largest(band, count, 3)
        assert column_mu(band, Fraction(1), count, 3) ** 2 == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("count", "separation"), [(2, 1), (3, 2), (2, 5), (9, 1)])
def test_it_is_exact_for_columns_that_never_rise(count, separation):
    for encoder in (square_root(8), np.tril(np.ones((7, 7)))):
        exact = largest(encoder, count, separation)
        found = column_mu(encoder, Fraction(1), count, separation) ** 2
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-13)


def test_the_formula_is_not_used_for_a_column_that_rises():
    """It would be 4.46 for c = 1, 0.2, 0.9, and the truth is 5.5."""
    column = [1.0, 0.2, 0.9, 0.0, 0.0, 0.0, 0.0]
    encoder = np.array([[column[t - j] if t >= j else 0.0 for j in range(7)] for t in range(7)])
    assert column_mu(encoder, Fraction(1), 2, 1) ** 2 >= largest(encoder, 2, 1) > 5.4


def test_counters_have_the_same_sensitivity():
    factor, unit = PowerFactor(60, 40, 9), Participations(5, 7)
    column = coefficients(40, 9, factor.fine) * 2.0**-factor.fine
    steps = range(60)
    encoder = np.array([[column[t - j] if 0 <= t - j < 9 else 0.0 for j in steps] for t in steps])
    mu = T.gaussian_matrix(encoder, 1.0, participations=5, separation=7).mu
    assert mu**2 == pytest.approx(factor.norm_squared(50, unit) / 4**50, rel=1e-14)


def test_contributions_of_all_signs_are_bounded():
    """x moves by the same vector, or its opposite, in three steps."""
    encoder = square_root(6)
    mu = T.gaussian_matrix(encoder, 1.0, participations=3, separation=2).mu
    for signs in ((1, 1, 1), (1, -1, 1)):
        moved = np.zeros(6)
        moved[[0, 2, 4]] = signs
        assert np.linalg.norm(encoder @ moved) <= mu


def test_wrong_arguments_are_refused():
    for encoder in (np.ones(3), np.ones((2, 2, 2)), np.zeros((0, 2)), [[inf]], 1.0):
        with pytest.raises(InvalidValueError, match="encoder"):
            T.gaussian_matrix(encoder, 1.0)
    with pytest.raises(InvalidValueError, match="at most 4096 columns"):
        T.gaussian_matrix(np.ones((1, MOST_COLUMNS + 1)), 1.0, participations=2)
    with pytest.raises(InvalidValueError, match="participations"):
        T.gaussian_matrix(np.eye(2), 1.0, participations=0)
    with pytest.raises(InvalidValueError, match="separation"):
        T.gaussian_matrix(np.eye(2), 1.0, separation=0)
