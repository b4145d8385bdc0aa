"""What is made of functions, against its definition; and what they are as Python objects."""

import math

import numpy as np
import pytest

from opendp_concurrent.fdp.exchange import (
    FUNCTION_KEYS,
    function_parts,
    make_function,
    make_pair,
    original,
    pair_parts,
)
from opendp_concurrent.fdp.finite import Finite
from opendp_concurrent.fdp.function import TradeoffFunction as T

EPSILONS = [-2.0, -0.5, 0.0, 0.2, 0.7, 1.3, 4.0]
ASYMMETRIC = [
    T.finite((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    T.finite((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)),
    T.finite([0.1, 0.4, 0.5], [0.0, 0.2, 0.8]),
    T.from_loss_distribution([-1.0, 0.5, 2.0], [0.1, 0.7, 0.2]),
]


def test_symmetric_functions_are_their_own_symmetrised():
    symmetric = T.identity(), T.pure(1.0), T.from_profile([0.0, 1.0], [0.3, 0.01])
    for f in (*symmetric, T.gaussian(1.0).compose(T.laplace(0.5, 4))):
        assert f.symmetrised() is f
        assert f.inverse() == f


def convex_hull(t, heights):
    hull = []
    for point in zip(t, heights, strict=True):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (point[0] - hull[-1][0]) >= (
            point[1] - hull[-1][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append(point)
    return np.interp(t, *np.array(hull).T)


@pytest.mark.parametrize("f", ASYMMETRIC)
def test_symmetrised_is_the_largest_convex_function_below_both(f):
    """[DRS22, Proposition 2.4]: max(f, f⁻¹), whose profile is the convex hull of the smaller δ."""
    both = f.symmetrised()
    grid = np.unique(
        np.concatenate(
            [
                np.linspace(-3.0, 3.0, 241),
                *(np.concatenate([g.losses, -g.losses]) for g in f.product.factors),
            ]
        )
    )
    lowest = np.minimum(f.delta_bounds(grid).upper, f.inverse().delta_bounds(grid).upper)
    found = both.delta_bounds(grid)
    assert np.all(found.lower <= lowest + 1e-12)
    assert np.all(np.abs(found.upper - convex_hull(np.exp(grid), lowest)) <= 1e-9)
    assert both.inverse() == both
    for alpha in (0.05, 0.3, 0.8):
        larger = max(f.beta_bounds(alpha).lower, f.inverse().beta_bounds(alpha).lower)
        assert both.beta_bounds(alpha).upper >= larger - 1e-12


def test_symmetrised_of_a_mixed_product_is_rounded_outward():
    f = T.finite((0.2, 0.8), (0.5, 0.5)).compose(T.gaussian(0.5))
    both = f.symmetrised()
    grid = np.linspace(-4.0, 4.0, 161)
    found, expected = (
        both.delta_bounds(grid),
        convex_hull(np.exp(grid), np.minimum(f.delta(grid), f.inverse().delta(grid))),
    )
    assert np.all(found.upper >= expected - 1e-3)
    assert np.all(found.lower <= expected + 1e-3)


def test_a_loss_distribution_has_the_profile_of_its_definition():
    losses, masses, infinite = [-1.0, 0.5, 2.0], [0.1, 0.65, 0.2], 0.05
    made = T.from_loss_distribution(losses, masses, infinite)
    for epsilon in EPSILONS:
        value = infinite + sum(
            p * max(0.0, -math.expm1(epsilon - loss))
            for p, loss in zip(masses, losses, strict=True)
        )
        assert made.delta(epsilon) == pytest.approx(
            max(value, -math.expm1(min(epsilon, 0))), abs=1e-12
        )


def test_the_direction_of_a_finite_pair():
    """T(P, Q)(α): tests reject P; so δ is that of Q against P."""
    made = T.finite((1.0, 0.0), (0.75, 0.25))
    assert made.beta(0.0) == pytest.approx(0.75, abs=1e-14)
    assert made.delta(1.0) == pytest.approx(0.25, abs=1e-12)
    assert made.inverse().delta(0.0) == pytest.approx(0.25, abs=1e-12)
    assert made.inverse().delta(0.5) <= 1e-12


# --- as Python objects ----------------------------------------------------------------------------


def test_the_mean_of_a_gaussian_is_told():
    assert T.gaussian(0.7).mu == 0.7
    assert T.identity().mu == 0.0
    assert T.pure(1.0).mu is None
    assert T.gaussian(1.0).compose(T.pure(1.0)).mu is None


def test_an_infinite_loss_is_the_worst():
    for f in (T.pure(math.inf), T.approximate(1.0, 1.0), T.gaussian(math.inf), T.laplace(math.inf)):
        assert f == T.worst()
    assert T.randomized_response(1.0) == T.worst()
    for f in (T.pure(0.0), T.approximate(-0.0, 0.0), T.gaussian(0.0), T.laplace(0.0)):
        assert f == T.identity()


@pytest.mark.parametrize(
    ("alphas", "betas"),
    [
        ([0.0, 0.2, 1.0], [0.9, 0.5, 0.0]),
        ([0.0, 0.1, 0.3, 1.0], [0.8, 0.5, 0.2, 0.0]),
        ([0.0, 0.5, 1.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.25, 1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_a_curve_goes_through_its_points_and_is_linear_between_them(alphas, betas):
    made = T.finite([0.0, *np.diff(alphas)], [1 - betas[0], *-np.diff(betas)])
    for alpha in (*alphas, 0.05, 0.15, 0.4, 0.9):
        value, (low, high) = float(np.interp(alpha, alphas, betas)), made.beta_bounds(alpha)
        assert low - 1e-16 <= value <= high + 1e-16
        assert high - low <= 1e-11


def test_what_is_impossible_under_the_other_is_the_worst():
    assert T.finite((1.0, 0.0), (0.0, 1.0)) == T.worst()
    assert T.mixture([1.0, 2.0], [T.worst(), T.worst()]).delta(5.0) == 1.0


# --- taken to parts, and made from them exactly ---


FUNCTIONS = {
    "identity": T.identity(),
    "gaussian": T.gaussian(0.3),
    "pair": T.approximate(1.0, 1e-6),
    "product": T.pure(0.1).power(3).compose(T.gaussian(0.2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parts_of_a_function_make_it_again(name):
    function = FUNCTIONS[name]
    parts = function_parts(function)
    assert set(parts) == set(FUNCTION_KEYS)
    again = make_function(parts)
    assert again == function
    assert again.delta(0.1) == function.delta(0.1)


@pytest.mark.parametrize("squares", ["-0x1", "no"])
def test_a_negative_sum_of_squares_is_refused(squares):
    with pytest.raises(ValueError):  # noqa: PT011
        make_function(function_parts(T.pure(0.1)) | {"squares": squares})


def test_a_factor_that_occurs_no_time_is_refused():
    parts = function_parts(T.pure(0.1))
    none = tuple((factor, 0) for factor, _ in parts["factors"])
    with pytest.raises(ValueError):  # noqa: PT011
        make_function(parts | {"factors": none})


def test_the_parts_of_a_pair_make_it_again():
    ((pair, _),) = T.approximate(1.0, 1e-6).product.factors.items()
    assert type(pair) is Finite
    assert make_pair(pair_parts(pair)) == pair
    assert original(pair) is None
