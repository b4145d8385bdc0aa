"""Pairs on finitely many outcomes against the sums over them."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.finite import MOST, Finite, discrete_gaussian
from opendp_concurrent.fdp.function import TradeoffFunction as T

EPSILONS = [-30.0, -2.0, -0.3, -1e-12, 0.0, 1e-12, 0.3, 2.0, 30.0]
DELTAS = [1e-100, 1e-9, 1e-3, 0.1, 0.7]
PAIRS = [
    ((0.5, 0.5), (0.25, 0.75)),
    ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)),
    ((0.0, 0.5, 0.5), (0.5, 0.5, 0.0)),
    ((1e-9, 1.0 - 1e-9), (1e-3, 1.0 - 1e-3)),
    ((0.1,) * 10, (0.19, *(0.09,) * 9)),
    ((0.5, 0.25, 0.125, 0.0625, 0.0625), (0.0625, 0.0625, 0.125, 0.25, 0.5)),
    ((1.0, 0.0), (0.99, 0.01)),
]


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-9, 0.1, 0.9])
def test_approximate_contains_the_exact_value(epsilon, delta, contains):
    kind, arguments = ("approximate", (epsilon, delta)) if delta else ("pure", (epsilon,))
    at = [*EPSILONS, epsilon, -epsilon, epsilon * (1 - 1e-12)]
    contains([(kind, arguments, 1)], at, [*DELTAS, delta or 1e-200])


@pytest.mark.parametrize("prob", [0.5, 0.51, 0.75, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
def test_randomized_response_contains_the_exact_value(prob, categories, contains, exact):
    if prob == 0.5 and categories == 2:
        assert T.randomized_response(0.5) == T.identity()
        return
    parts = [("randomized_response", (prob, categories), 1)]
    contains(parts, [*EPSILONS, *exact.kinks(parts)], DELTAS)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("kind", ["finite", "inverse"])
def test_asymmetric_pairs_contain_the_exact_value(pair, kind, contains, exact):
    parts = [(kind, pair, 1)]
    contains(parts, [*EPSILONS, *exact.kinks(parts)], DELTAS)


@pytest.mark.parametrize("outcomes", [30, 300, 3000])
def test_the_chance_of_an_infinite_loss_lies_between_its_bounds(outcomes, contains):
    """Many outcomes that are impossible under the other: their sum is rounded as well."""
    generator = np.random.default_rng(outcomes)
    tails = generator.uniform(0.0, 1.0, size=(6, outcomes))
    for tail in tails:
        second = (*(tail / tail.sum() * 0.7).tolist(), 0.3)
        second = (*second[:-1], 1.0 - math.fsum(second[:-1]))
        first = (*(0.0,) * outcomes, 1.0)
        contains([("finite", (first, second), 1)], [0.0, 1.0, 50.0])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0.5, 0.5), (0.5 + 1e-7, 0.5 - 1e-7)),
        ((0.3, 0.7), (0.3 * (1 + 1e-12), 1.0 - 0.3 * (1 + 1e-12))),
        ((1e-200, 1.0), (2e-200, 1.0)),
        ((0.2, 0.8), (0.4, 0.6)),
    ],
)
def test_epsilon_without_a_delta_is_the_largest_loss(first, second, exact):
    with mp.workdps(50):
        largest = max(mp.log(p / q) for p, q in exact.outcomes([("finite", (first, second), 1)]))
        for count in (1, 3):
            bounds = T.finite(first, second).power(count).epsilon_bounds(0.0)
            assert mpf(bounds.lower) <= count * largest <= mpf(bounds.upper)


@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(0.3, 1), (0.5, 1), (1.0, 1), (2.0, 3), (7.5, 2)]
)
def test_discrete_gaussian_contains_the_exact_value(scale, sensitivity, contains, exact):
    parts = [("discrete_gaussian", (scale, sensitivity), 1)]
    mu = sensitivity / scale
    kinks = exact.kinks(parts)
    middle = len(kinks) // 2
    at = [-3 * mu, 0.0, 0.5 * mu, mu, 3 * mu, mu * mu / 2 + 5 * mu, *kinks[middle - 3 : middle + 1]]
    contains(parts, at, [1e-60, 1e-9, 1e-3, 0.1])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-200, 1e-3, 0.01, 0.05])
def test_hardly_any_discrete_noise_reveals_all(scale):
    made = T.discrete_gaussian(scale)
    for epsilon in (-1.0, 0.0, 1.0, 150.0):
        assert made.delta_bounds(epsilon).lower >= 1.0 - 1e-8
    for epsilon in (800.0, 1e6):
        bounds = made.delta_bounds(epsilon)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [300.0, 500.0, 720.0, 800.0, 1e4, 9e5])
def test_immense_losses_are_bounded_without_a_warning(epsilon):
    made = T.pure(epsilon)
    for share in (-1.1, -1.0, -0.5, 0.0, 0.9, 1.0 - 1e-6):
        bounds, below = made.delta_bounds(share * epsilon), share * epsilon - epsilon
        exact = 0.0 - math.expm1(below) if share > -1.0 else 1.0
        assert bounds.lower <= exact * (1 + 1e-12)
        assert bounds.upper >= min(1.0, exact * (1 - 1e-12))
        assert bounds.width <= 1e-8
    found = made.epsilon_bounds(1e-6)
    assert found.lower <= epsilon + math.log1p(-1e-6) <= found.upper
    assert found.width <= 1e-8 * epsilon


@pytest.mark.filterwarnings("error")
def test_beyond_the_largest_loss_nothing_is_left():
    assert T.pure(2e6).delta_bounds(3e6) == (0.0, 0.0)
    assert T.pure(2e6).delta_bounds(1e6).upper == 1.0
    assert T.approximate(2e6, 0.25).delta_bounds(3e6).lower <= 0.25
    assert T.gaussian(1.0).delta_bounds(math.inf).lower == 0.0
    assert T.approximate(1.0, 0.25).delta_bounds(math.inf).upper >= 0.25


def test_masses_that_underflow_are_not_forgotten(exact):
    """Its largest losses have less probability than any double, and not 0."""
    parts = [("finite", ((1e-6, 1.0 - 1e-6), (1e-5, 1.0 - 1e-5)), 100)]
    bounds, delta = exact.build(parts).delta_bounds(200.0), exact.profile(parts)(200.0)
    assert 0 < delta < mpf("1e-400")
    assert mpf(bounds.upper) >= delta


@pytest.mark.parametrize("step", [0.1, 3.0])
def test_the_transform_is_a_sum_over_outcomes(step):
    pair = Finite(np.array([-1.0, 0.3, 0.9]), np.array([0.2, 0.3, 0.5]))
    found = pair.transform(0.8, step, 9)
    for index, value in enumerate(found.values):
        t = mp.mpc(0.8, step * index)
        each = list(zip(pair.losses.tolist(), pair.masses.tolist(), strict=True))
        top = mp.fsum(p * mp.exp(t * loss) for loss, p in each)
        whole = mp.fsum(p * mp.exp(mpf(0.8) * loss) for loss, p in each)
        assert abs(mp.mpc(complex(value)) - top / whole) <= found.error


@pytest.mark.parametrize("categories", [2, 3, 7, 10, 49, 98, 1000])
def test_uniform_answers_reveal_nothing(categories):
    made = T.randomized_response(1 / categories, categories)
    assert made.delta(0.0) <= 1e-13
    assert made.epsilon(1e-9) <= 1e-9


# --- discrete gaussian ---------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.5, 1), (2.0, 3), (4.0, 1)])
def test_masses_and_losses_are_those_of_the_definition(scale, sensitivity):
    pair = discrete_gaussian(scale, sensitivity)
    with mp.workdps(40):
        s, d = mp.mpf(scale), sensitivity
        reach = 40 * int(scale + 1) + d
        weights = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * s * s)) for x in range(-reach, reach + 1)}
        whole = mp.fsum(weights.values())
        exact = {(d - 2 * x) * d / (2 * s * s): one / whole for x, one in weights.items()}
        assert 0 < len(pair.losses) <= len(exact)
        for loss, mass in zip(pair.losses.tolist(), pair.masses.tolist(), strict=True):
            nearest = min(exact, key=lambda one, loss=loss: abs(one - loss))
            assert abs(nearest - loss) <= pair.loss_error
            assert abs(exact[nearest] - mass) <= pair.mass_error * exact[nearest]
        missing = 1 - mp.fsum(pair.masses.tolist())
        assert missing <= pair.infinite + 2 * pair.mass_error


def test_a_gaussian_that_loses_as_much_is_known_for_scales_of_at_least_a_half():
    assert 1.0 <= discrete_gaussian(2.0, 1).gaussian <= 1.0 * (1 + 1e-15)
    assert discrete_gaussian(0.49, 1).gaussian == math.inf


def test_too_many_outcomes_are_refused_and_too_little_noise_is_none():
    with pytest.raises(InvalidValueError, match="too large for a list of outcomes"):
        discrete_gaussian(MOST / 60, 1)
    nothing = discrete_gaussian(1e-101, 1)
    assert (nothing.infinite, nothing.never) == (1.0, 1.0)
