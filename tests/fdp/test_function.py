"""What is made of functions, against its definition; and what they are as Python objects.

Also numbers: NumPy's, small rates, and the order of calls.
"""

import math
import random

import numpy as np
import pytest
from mpmath import mp, mpf

import opendp_concurrent as oc
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

from ..some import some
from .conftest import subsampled_delta

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


SUBSAMPLED = T.subsampled_gaussian(1.0, 0.01, unit="removed")


# --- NumPy's numbers -----------------------------------------------------------------------------


def test_numbers_of_numpy_are_read_exactly_by_the_accountant():
    e = pytest.importorskip("dp_accounting").dp_event
    third = np.float32(1 / 3)
    for given_, own in [
        (e.GaussianDpEvent(third), e.GaussianDpEvent(float(third))),
        (e.LaplaceDpEvent(np.int64(3)), e.LaplaceDpEvent(3)),
        (
            e.PoissonSampledDpEvent(np.float16(0.25), e.GaussianDpEvent(np.longdouble(2))),
            e.PoissonSampledDpEvent(0.25, e.GaussianDpEvent(2.0)),
        ),
        (
            e.SelfComposedDpEvent(e.LaplaceDpEvent(np.uint8(4)), np.int32(7)),
            e.SelfComposedDpEvent(e.LaplaceDpEvent(4.0), 7),
        ),
        (e.DiscreteLaplaceDpEvent(third, np.int64(2)), e.DiscreteLaplaceDpEvent(float(third), 2)),
        (e.ZCDpEvent(third), e.ZCDpEvent(float(third))),
    ]:
        accountant = oc.fdp.Accountant().compose(given_, np.int64(2))
        assert accountant.session == oc.fdp.Accountant().compose(own, 2).session
        assert accountant.get_epsilon(np.float32(1e-5)) == accountant.get_epsilon(
            float(np.float32(1e-5))
        )
        assert accountant.get_delta(np.int64(1)) == accountant.get_delta(1.0)


# --- small rates ---------------------------------------------------------------------------------


RATES = [5e-324, 1e-300, 1e-100, 1e-20, 1e-13, 1e-10, 1 - 1e-10]


def truth_of_one(mu, rate, epsilon):
    """δ of sampled Gaussian noise with the unit removed, in 60 digits beyond the rate."""
    with mp.workdps(60 + 2 * int(-math.log10(rate) + 1)):
        return subsampled_delta("gaussian", mu, rate, "removed", epsilon)


@pytest.mark.parametrize(
    ("rate", "mu"), some([(rate, mu) for mu in (0.25, 1.0, 4.0) for rate in RATES], 3)
)
def test_a_rate_is_read_as_itself(rate, mu):
    one = T.subsampled_gaussian(1 / mu, rate, unit="removed")
    for epsilon in (-0.5, 0.0, 1e-3, 1.5):
        bounds, truth = one.delta_bounds(epsilon), truth_of_one(mu, rate, epsilon)
        assert mpf(bounds.lower) <= truth <= mpf(bounds.upper)
        assert mpf(bounds.upper) <= truth * (1 + mpf(10) ** -6) + mpf(10) ** -299
    many = one.power(1000)
    at_zero = many.delta_bounds(0.0)
    assert mpf(at_zero.upper) >= truth_of_one(mu, rate, 0)
    assert mpf(at_zero.lower) <= 1000 * truth_of_one(mu, rate, 0)
    if rate < 0.5:
        assert at_zero.upper <= 1000.001 * rate + 1e-296
        assert many.epsilon(max(1001 * rate, 1e-290)) == 0.0


@pytest.mark.parametrize("rate", [1e-200, 1e-30, 1e-12, 1e-6])
def test_two_steps_of_little_noise_lose_nearly_the_sum(rate):
    """Who sees a sum above half of the shift knows, up to 1e-12, that the unit took part."""
    one = T.subsampled_gaussian(1 / 15, rate, unit="removed")
    assert one.power(2).delta(0.0) >= 2 * rate * (1 - rate) * (1 - 1e-12)


# --- the order of calls --------------------------------------------------------------------------

POOL = (
    T.laplace(0.3),
    T.laplace(0.07),
    T.gaussian(0.4),
    T.pure(0.2),
    T.approximate(0.1, 1e-7),
    T.discrete_laplace(5.0, 2),
    T.finite([0.5, 0.3, 0.2], [0.45, 0.33, 0.22]),
    SUBSAMPLED,
)
QUESTIONS = [
    *(("epsilon_bounds", delta) for delta in (1e-9, 1e-5, 0.01)),
    *(("delta_bounds", epsilon) for epsilon in (0.0, 0.4, 2.0)),
]


def composed(parts, ask=False):
    f = T.identity()
    for one, count in parts:
        f = f.compose(one.power(count))
        if ask:
            f.epsilon(1e-5)
    return f


@pytest.mark.parametrize("seed", range(6))
def test_answers_depend_on_the_function_alone(seed):
    draw = random.Random(seed)
    parts = [(one, draw.choice([1, 2, 20])) for one in draw.sample(POOL, draw.choice([1, 2, 4]))]
    fresh = {question: getattr(composed(parts), question[0])(question[1]) for question in QUESTIONS}
    for ask in (False, True):
        draw.shuffle(parts)
        f, asked = composed(parts, ask), 2 * QUESTIONS
        draw.shuffle(asked)
        f.delta_bounds(np.array([0.2, 1.0]), width=1e-3)
        assert f == composed(parts[::-1])
        for name, at in asked:
            assert getattr(f, name)(at) == fresh[name, at], (parts, name, at)


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, np.uint8, np.longdouble])
def test_numbers_of_numpy_are_read_exactly_by_trade_off_functions_and_losses(number):
    made = T
    one, two = number(1), number(2)
    for found, own in [
        (made.gaussian(two), made.gaussian(2.0)),
        (made.laplace(two), made.laplace(2.0)),
        (made.laplace(two, two), made.laplace(2.0, 2.0)),
        (made.pure(two), made.pure(2.0)),
        (made.approximate(two, number(0)), made.approximate(2.0, 0.0)),
        (made.subsampled_gaussian(two, one, unit="added"), made.gaussian(0.5)),
        (made.randomized_response(one, 2), made.randomized_response(1.0, 2)),
        (oc.loss_of(epsilon=two), oc.loss_of(epsilon=2.0)),
        (oc.loss_of(rho=two), oc.loss_of(rho=2.0)),
        (oc.loss_of(epsilon=one, delta=number(0)), oc.loss_of(epsilon=1.0, delta=0.0)),
        (oc.loss_of(epsilon=one, alpha=two), oc.loss_of(epsilon=1.0, alpha=2.0)),
        (oc.loss_of(rho=one, omega=two), oc.loss_of(rho=1.0, omega=2.0)),
        (oc.loss_of(mu=two), oc.loss_of(mu=2.0)),
    ]:
        assert found == own
        assert repr(found) == repr(own)
    third = np.float32(1 / 3)
    assert made.gaussian(third) == made.gaussian(float(third))
    assert oc.loss_of(epsilon=third)[1] == float(third)
