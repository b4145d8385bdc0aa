"""0.1.0 said lower ends that were above the truth, and raised raw errors for some products."""

from fractions import Fraction
from math import e, inf, pi, sqrt

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures.tradeoffs import TRADEOFF_DIVERGENCE

T = oc.TradeoffFunction


UPPER_ONLY = [
    T.mixture([1, 1], [T.gaussian(1.0)] * 2),
    T.gaussian(1.0).compose(T.laplace(1.0)).group(2),
    T.finite([0.2, 0.7, 0.1], [0.5, 0.3, 0.2]).symmetrised(),
]


def test_an_infinite_mass_that_is_rounding_is_not_certain():
    losses = T.from_loss_distribution([1.0, -1.0], [e / (1 + e), 1 / (1 + e)])
    low, high = losses.inverse().epsilon_bounds(0.0)
    assert low <= 1.0 <= high


@pytest.mark.parametrize("f", UPPER_ONLY)
def test_upper_bounds_say_nothing_below(f):
    assert f.upper_only
    smooth = [f.compose(T.laplace(0.1))] if f is UPPER_ONLY[-1] else []  # the others take long
    for one in (f, f.inverse(), f.compose(T.pure(0.1)), *smooth):
        assert one.upper_only
        assert one.delta_bounds(0.5).lower == 0.0 < one.delta(0.5)
        assert one.epsilon_bounds(1e-3).lower == 0.0 < one.epsilon(1e-3)
        assert one.epsilon_bounds(0.0).lower == 0.0
        assert one.beta_bounds(0.25).upper >= 0.75 > one.beta(0.25)
        with pytest.raises(InvalidValueError, match="d_out .* upper bound"):
            TRADEOFF_DIVERGENCE.validate_budget("d_out", one)
    assert not T.pure(1e-3) <= f
    assert f <= f
    assert f <= T.worst()


def test_an_upper_bound_of_a_gaussian_is_not_above_it_for_certain():
    assert not T.gaussian(1.0) <= UPPER_ONLY[0]
    assert T.gaussian(1.0).delta_bounds(0.5).upper <= UPPER_ONLY[0].delta(0.5)


def test_upper_bounds_of_different_things_are_never_equal():
    two = [T.mixture([1, w], [T.gaussian(1.0), T.laplace(1.0)]) for w in (1.0, 1.0 + 2**-52)]
    assert not two[0] <= two[1]
    assert two[0] == T.mixture([1, 1], [T.gaussian(1.0), T.laplace(1.0)])


def test_exact_functions_stay_budgets():
    for f in (T.mixture([1, 1], [T.pure(1.0), T.pure(0.1)]), T.pure(1.0).group(2)):
        assert not f.upper_only
        assert TRADEOFF_DIVERGENCE.validate_budget("d_out", f) == f


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7, 1 / 3, 1e-17])
def test_a_tiny_gaussian_is_not_below_the_upper_end(alpha):
    low, high = T.gaussian(1e-17).beta_bounds(alpha)
    exact = 1 - Fraction(alpha) - Fraction(1e-17) * Fraction(1 / sqrt(2 * pi))
    assert low <= exact <= high


def test_what_raised_raw_errors_answers():
    asked = T.laplace(0.1).compose(T.gaussian(0.1))
    asked.epsilon(1e-6)
    assert asked.compose(T.worst()).delta(3.0) == 1.0
    assert T.worst().compose(asked) == T.worst()
    twice = T.approximate(1.0, 1 - 2**-53).power(2)
    assert twice.epsilon_bounds(1 - 1e-9) == (inf, inf)
    assert twice.delta(0.5) == 1.0
    for f in (T.gaussian(1.0), T.pure(1.0), T.gaussian(1.0).compose(T.laplace(0.5))):
        assert 1.0 - 1e-12 <= f.beta(5e-324) <= 1.0
    assert T.pure(1e7).power(2).delta(0.0) == 1.0
    assert T.gaussian(1e149).power(2**53).delta(1.0) == 1.0


def test_a_largest_loss_below_the_doubles_is_not_halved_to_nothing():
    assert T.laplace(5e-324).delta(0.0) > 0.0
    assert T.laplace(5e-324, 2.0).delta(0.0) > 0.0
    assert T.pure(5e-324).gaussian_bound > 0.0
