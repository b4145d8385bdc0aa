"""What is made of functions, against its definition; and what they are as Python objects."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.fdp.function import TradeoffFunction as T

EPSILONS = [-2.0, -0.5, 0.0, 0.2, 0.7, 1.3, 4.0]
FUNCTIONS = [
    T.identity(),
    T.worst(),
    T.pure(1.0),
    T.approximate(0.5, 0.1),
    T.gaussian(1.0),
    T.laplace(0.7),
    T.laplace(0.7, 4),
    T.laplace(0.7, 5000),
    T.discrete_laplace(2.0, 3),
    T.discrete_gaussian(2.0),
    T.randomized_response(0.7, 5),
    T.finite((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    T.finite((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)),
    T.from_profile([0.0, 1.0], [0.3, 0.01]),
    T.from_curve([0.0, 0.2, 1.0], [0.9, 0.5, 0.0]),
    T.from_loss_distribution([-1.0, 0.5, 2.0], [0.1, 0.7, 0.2]),
    T.laplace(0.5).power(2),
    T.gaussian(1.0).compose(T.laplace(0.5), T.pure(0.3).power(2)),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_inverse_is_an_involution(f):
    again = f.inverse().inverse()
    one, other = f.delta_bounds(np.array(EPSILONS)), again.delta_bounds(np.array(EPSILONS))
    assert np.all(one.lower <= other.upper)
    assert np.all(other.lower <= one.upper)
    assert np.all(np.abs(one.upper - other.upper) <= 1e-5)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_other_direction_is_known_from_negative_epsilons(f):
    """δ(ε) = 1 - e^ε + e^ε δ'(-ε)."""
    for epsilon in EPSILONS:
        here, there = f.delta_bounds(epsilon), f.inverse().delta_bounds(-epsilon)
        scale = math.exp(epsilon)
        low, high = (1 - scale + scale * value for value in there)
        assert here.lower <= high + 1e-12 * max(1.0, scale)
        assert here.upper >= low - 1e-12 * max(1.0, scale)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_bounds_are_probabilities_and_ordered(f):
    for epsilon in EPSILONS:
        bounds = f.delta_bounds(epsilon)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
        assert bounds.upper >= -math.expm1(min(epsilon, 0.0)) * (1 - 1e-15)
        assert bounds.width <= 1e-3
    for alpha in (0.0, 0.1, 0.5, 0.99, 1.0) if f.product.is_exact else (0.0, 0.5):
        bounds = f.beta_bounds(alpha)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0 - alpha + 1e-15
        assert f.beta(alpha) == bounds.lower
    for delta in (0.0, 1e-9, 0.2, 1.0):
        bounds = f.epsilon_bounds(delta)
        assert 0.0 <= bounds.lower <= bounds.upper
    assert f.epsilon(1.0) == 0.0


ASYMMETRIC = [f for f in FUNCTIONS if f.symmetrised() is not f]


def test_symmetric_functions_are_their_own_symmetrised():
    assert len(ASYMMETRIC) >= 4
    for f in (T.pure(1.0), T.gaussian(1.0).compose(T.laplace(0.5, 4)), T.identity()):
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


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=1, max_size=4),
    st.floats(-2.0, 3.0),
)
@settings(max_examples=20)
def test_a_mixture_has_the_average_profile(exact, choices, epsilon):
    families = [
        ("pure", (1.0,)),
        ("approximate", (0.5, 0.01)),
        ("finite", ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2))),
        ("laplace_steps", (0.7, 3)),
        ("randomized_response", (0.6, 4)),
    ]
    parts = [[(*families[index], 1)] for _, index in choices]
    weights = [weight for weight, _ in choices]
    made = T.mixture(weights, [exact.build(part) for part in parts])
    with mp.workdps(40):
        value = mp.fsum(
            w * exact.profile(part)(epsilon) for w, part in zip(weights, parts, strict=True)
        ) / sum(weights)
        bounds = made.delta_bounds(epsilon)
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper)
        assert bounds.width <= 1e-12


def test_a_mixture_of_others_is_rounded_outward():
    made = T.mixture([1.0, 2.0], [T.gaussian(1.0), T.laplace(0.5).power(2)])
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        average = (T.gaussian(1.0).delta(epsilon) + 2 * T.laplace(0.5).power(2).delta(epsilon)) / 3
        assert average - 1e-6 <= made.delta(epsilon) <= average + 1e-3
    assert T.mixture([1], [T.pure(1.0)]).delta(0.3) == pytest.approx(
        T.pure(1.0).delta(0.3), abs=1e-14
    )
    half = T.mixture([1, 1], [T.worst(), T.identity()])
    assert half.delta(3.0) == pytest.approx(0.5, abs=1e-14)


@pytest.mark.parametrize(
    ("alphas", "betas"),
    [
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.0, 1.0], [0.5, 0.0]),
        ([0.0, 0.2, 1.0], [0.9, 0.5, 0.0]),
        ([0.0, 0.1, 0.3, 1.0], [0.8, 0.5, 0.2, 0.0]),
        ([0.0, 0.5, 1.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.25, 1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_a_curve_goes_through_its_points_and_is_linear_between_them(alphas, betas):
    made = T.from_curve(alphas, betas)
    for alpha in (*alphas, 0.05, 0.15, 0.4, 0.9):
        value, bounds = float(np.interp(alpha, alphas, betas)), made.beta_bounds(alpha)
        assert bounds.lower <= value + 1e-16
        assert bounds.upper >= value - 1e-16
        assert bounds.width <= 1e-11
    for epsilon in (-1.0, 0.0, 0.5):
        best = max(1 - b - math.exp(epsilon) * a for a, b in zip(alphas, betas, strict=True))
        assert made.delta(epsilon) == pytest.approx(best, abs=1e-12)


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


def test_a_profile_in_two_directions_keeps_them_apart():
    made = T.from_profile([0.0, 1.0], [0.3, 0.01], [0.3, 0.2])
    assert made.delta(1.0) == pytest.approx(0.01, abs=1e-14)
    assert made.inverse().delta(1.0) == pytest.approx(0.2, abs=1e-14)
    assert made != made.inverse()


def test_the_direction_of_a_finite_pair():
    """T(P, Q)(α): tests reject P; so δ is that of Q against P."""
    made = T.finite((1.0, 0.0), (0.75, 0.25))
    assert made.beta(0.0) == pytest.approx(0.75, abs=1e-14)
    assert made.delta(1.0) == pytest.approx(0.25, abs=1e-12)
    assert made.inverse().delta(0.0) == pytest.approx(0.25, abs=1e-12)
    assert made.inverse().delta(0.5) <= 1e-12


# --- as Python objects ----------------------------------------------------------------------------


@pytest.mark.parametrize("f", FUNCTIONS)
def test_functions_are_hashable(f):
    assert len({f, f.compose(), f.power(1)}) == 1
    assert f in {f: 1}


def test_no_two_of_these_are_equal():
    assert len(set(FUNCTIONS)) == len(FUNCTIONS)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (T.identity(), "identity"),
        (T.worst(), "worst"),
        (T.pure(0.5), "pure(epsilon=0.5)"),
        (T.approximate(0.5, 0.25), "approximate(epsilon=0.5, delta=0.25)"),
        (T.gaussian(0.5), "gaussian(mu=0.5)"),
        (T.laplace(0.5), "laplace(epsilon=0.5)"),
        (T.laplace(0.5, 5000), "laplace(epsilon=0.5, steps=5000)"),
        (T.pure(0.5).power(3), "pure(epsilon=0.5)^3"),
        (T.gaussian(0.5).compose(T.pure(0.25)), "gaussian(mu=0.5) ⊗ pure(epsilon=0.25)"),
        (T.finite((0.5, 0.5), (0.25, 0.75)), "finite with 2 losses up to 0.405465"),
    ],
)
def test_functions_say_what_they_are(f, text):
    assert repr(f) == f"TradeoffFunction({text})"


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
