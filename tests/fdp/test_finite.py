"""Pairs on finitely many outcomes: sums over them, profiles through points, groups, roundings."""

import math
from bisect import bisect_right
from math import nan

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.bounds import (
    ELEMENTARY,
    TINY,
    UNIT,
    probabilities,
    waves,
    waves_error,
)
from opendp_concurrent.fdp.finite import (
    MOST,
    discrete_gaussian,
    from_vertices,
    response,
    without_tiny_masses,
)
from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.shapes import iterate

EPSILONS = [-30.0, -2.0, -0.3, -1e-12, 0.0, 1e-12, 0.3, 2.0, 30.0]
DELTAS = [1e-100, 1e-9, 1e-3, 0.1, 0.7]


@pytest.mark.parametrize("prob", [0.5, 0.51, 0.75, 0.999, 1 - 1e-12])
@pytest.mark.parametrize("categories", [2, 3, 10, 1000])
def test_randomized_response_contains_the_exact_value(prob, categories, contains, exact):
    if prob == 0.5 and categories == 2:
        assert T.randomized_response(0.5) == T.identity()
        return
    parts = [("randomized_response", (prob, categories), 1)]
    contains(parts, [*EPSILONS, *exact.kinks(parts)], DELTAS)


@pytest.mark.parametrize("outcomes", [30, 300, 3000])
def test_the_chance_of_an_infinite_loss_lies_between_its_bounds(outcomes, contains):
    """Many outcomes that are impossible under the other: their sum is rounded as well."""
    generator = np.random.default_rng(outcomes)
    tails = generator.uniform(0.0, 1.0, size=(2, outcomes))
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


@pytest.mark.parametrize("categories", [2, 3, 7, 10, 49, 98, 1000])
def test_uniform_answers_reveal_nothing(categories):
    made = T.randomized_response(1 / categories, categories)
    assert made.delta(0.0) <= 1e-13
    assert made.epsilon(1e-9) <= 1e-9


# --- discrete gaussian ---------------------------------------------------------------------------


def test_a_gaussian_that_loses_as_much_is_known_for_scales_of_at_least_a_half(exact):
    for scale, shift in ((0.5, 1), (1.3, 2), (2.0, 2)):
        bound = discrete_gaussian(scale, shift).gaussian
        assert (shift + 1) / scale <= bound <= (shift + 1) / scale * (1 + 1e-15)
        delta = exact.profile([("discrete_gaussian", (scale, shift), 1)])
        for epsilon in (-1.0, 0.0, 0.3, 2.0):
            assert delta(epsilon) <= exact.gaussian_delta(bound, epsilon)
    assert discrete_gaussian(0.49, 1).gaussian == math.inf


def test_too_many_outcomes_are_refused_and_too_little_noise_is_none():
    with pytest.raises(InvalidValueError, match="too large for a list of outcomes"):
        discrete_gaussian(MOST / 60, 1)
    nothing = discrete_gaussian(1e-101, 1)
    assert (nothing.infinite, nothing.never) == (1.0, 1.0)


def test_what_is_no_number_says_nothing():
    assert probabilities(nan, nan) == (0.0, 1.0)
    low, high = probabilities(np.array([nan, -1.0, 0.3]), np.array([0.5, nan, 2.0]))
    assert low.tolist() == [0.0, 0.0, 0.3]
    assert high.tolist() == [0.5, 1.0, 1.0]


def test_small_masses_count_at_a_larger_loss_or_as_infinite():
    losses = np.array([3.0, -2.0, 1.0, 2.0])
    kept, masses, lost = without_tiny_masses(losses, np.array([1e-310, 0.0, 0.5, 1e-305]))
    assert kept.tolist() == [1.0]  # -2 counts at 1
    assert masses.tolist() == [0.5]
    assert lost >= 2 * TINY  # 2 and 3 have nothing above
    assert without_tiny_masses(losses, np.full(4, 0.25))[2] == 0.0


def test_a_small_mass_below_another_small_one_is_not_dropped():
    _, masses, lost = without_tiny_masses(np.array([0.0, 1.0]), np.array([1e-305, 1e-299]))
    assert masses.tolist() == [1e-299]
    assert lost >= 1e-305


@pytest.mark.parametrize(("terms", "count"), [(3, 200), (700, 130), (1000, 1)])
def test_sums_of_waves_are_within_their_error(terms, count):
    draw = np.random.default_rng(terms)
    losses, weights = draw.normal(0.0, 2.0, terms), draw.dirichlet(np.ones(terms))
    for step in (0.37, -0.05):
        found = waves(losses, weights, step, count)
        assert found.shape == (count,)
        phase = abs(step) * count * float(np.max(np.abs(losses)))
        error = waves_error(terms) + 3 * ELEMENTARY + 4 * UNIT * phase
        with mp.workdps(30):
            for k in {0, 1, count // 2, count - 1} & set(range(count)):
                turns = [mp.expj(mpf(step) * k * mpf(one)) for one in losses.tolist()]
                exact = mp.fsum(mpf(w) * t for w, t in zip(weights.tolist(), turns, strict=True))
                assert abs(exact - mp.mpc(complex(found[k]))) <= error


def envelope(forward, backward):
    """Lower convex hull of the points in t = e^ε, from (0, 1), and then level: big floats."""
    points = [(mpf(0), mpf(1))]
    points += [(mp.exp(mpf(e)), mpf(d)) for e, d in forward]
    points += [
        (mp.exp(-mpf(e)), -mp.expm1(-mpf(e)) + mp.exp(-mpf(e)) * mpf(d)) for e, d in backward
    ]

    def value(t):
        best = min(height for at, height in points if at <= t)
        for left, low in points:
            for right, high in points:
                if left <= t < right:
                    best = min(best, low + (high - low) * (t - left) / (right - left))
        return best

    return value


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


@given(
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 1.0)), min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 1.0)), min_size=1, max_size=5),
    st.floats(-6.0, 6.0).filter(lambda epsilon: epsilon == 0.0 or abs(epsilon) > 1e-30),
)
@settings(max_examples=15)
def test_any_points_of_both_directions_are_respected(forward, backward, epsilon):
    made = from_vertices(forward, backward)
    with mp.workdps(60):
        value = envelope(forward, backward)(mp.exp(mpf(epsilon)))
        bounds = made.profile(np.array(epsilon))
        assert mpf(float(bounds.lower)) <= value * (1 + mpf("1e-14")) + mpf("1e-55")  # digits
        assert value <= mpf(float(bounds.upper)) + mpf("1e-16")
        assert bounds.width <= 1e-13


# --- iteration ------------------------------------------------------------------------------------


def gain(first, second):
    """g = 1 - f of T(second, first), by Neyman and Pearson: corners, Q-mass against P-mass."""
    q, p = (
        [mpf(one) / mp.fsum(second) for one in second],
        [mpf(one) / mp.fsum(first) for one in first],
    )
    answers = sorted(
        zip(p, q, strict=True), key=lambda one: -(one[0] / one[1] if one[1] else mp.inf)
    )
    x, y = [mpf(0)], [mpf(0)]
    for a, b in answers:
        x, y = [*x, x[-1] + b], [*y, y[-1] + a]

    def value(alpha):
        at = bisect_right(x, alpha)
        if at == len(x):
            return y[-1]
        left, right = x[at - 1], x[at]
        return y[at - 1] + (y[at] - y[at - 1]) * (alpha - left) / (right - left)

    return value


PAIRS = [
    ((0.5, 0.5), (0.25, 0.75)),
    ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)),
    ((0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1)),
    ((0.0, 0.5, 0.5), (0.5, 0.5, 0.0)),
]


@pytest.mark.parametrize(("first", "second"), [*PAIRS, *(one[::-1] for one in PAIRS)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_group_is_the_iterated_curve(first, second, size):
    """[DRS22, Theorem 2.14]: 1 - (1 - f)^(∘size), point by point."""
    g, made = gain(second, first), T.finite(first, second).group(size)
    for alpha in (0.0, 1e-6, 0.01, 0.1, 0.25, 0.4, 0.5, 0.77, 0.99, 1.0):
        value = mpf(alpha)
        for _ in range(size):
            value = g(min(value, mpf(1)))
        bounds = made.beta_bounds(alpha)
        if alpha < 1.0:
            low, high = mpf(bounds.lower), mpf(bounds.upper)
            assert low - mpf("1e-17") <= 1 - value <= high + mpf("1e-17"), (alpha, bounds)
            assert bounds.width <= 1e-10


def test_the_ends_are_iterated():
    assert T.worst().group(3).delta(1.0) == 1.0
    assert T.identity().group(3) == T.identity()
    assert T.pure(1.0).group(1) == T.pure(1.0)
    failing = T.approximate(0.0, 0.1).group(3)
    assert failing.delta_bounds(0.0).lower <= 0.3 <= failing.delta_bounds(0.0).upper
    assert iterate(response(0.0, 1.0), 4) == response(0.0, 1.0)


def test_other_functions_are_rounded_outward_before():
    """A Gaussian beside a pure one, as a group of two: at least what a closed form allows."""
    f = T.gaussian(0.5).compose(T.pure(0.2))
    made = f.group(2)
    for alpha in (0.05, 0.3, 0.6):
        inner = 1.0 - f.beta_bounds(alpha).upper
        assert made.beta(alpha) <= f.beta_bounds(inner).upper + 1e-12
        assert made.beta(alpha) >= f.beta_bounds(1.0 - f.beta(alpha)).lower - 0.02
    for k in (2, 3):
        assert T.gaussian(0.5 * k).delta(0.7) <= f.group(k).delta(0.7)
