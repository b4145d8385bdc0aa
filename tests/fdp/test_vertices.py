"""Profiles through points, exactly, and the iteration of pairs against brute force."""

from bisect import bisect_right

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.fdp.finite import from_vertices, response
from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.shapes import iterate


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


PROFILES = [
    [(0.0, 0.3)],
    [(0.0, 0.4), (1.0, 0.1), (2.0, 0.01)],
    [(0.5, 0.1), (1.0, 0.0)],
    [(0.0, 0.5), (0.1, 0.45), (0.2, 0.42), (3.0, 1e-12)],
    [(0.0, 0.2), (1e-9, 0.2 - 1e-10), (1.0, 0.05)],
    [(2.0, 1e-300)],
    [(0.0, 0.0)],
    [(0.0, 1.0)],
]


@pytest.mark.parametrize("points", PROFILES)
def test_a_profile_is_the_largest_through_its_points(points):
    made, exact = from_vertices(points, points), envelope(points, points)
    for epsilon in (*(e for e, _ in points), -3.0, -0.5, 0.0, 0.05, 0.7, 1.5, 2.5, 9.0):
        bounds, value = made.profile(np.array(epsilon)), exact(mp.exp(mpf(epsilon)))
        assert mpf(float(bounds.lower)) <= value <= mpf(float(bounds.upper)), (epsilon, bounds)
        assert bounds.width <= 1e-13
        each = zip(made.losses.tolist(), made.masses.tolist(), strict=True)
        plain = made.infinite + sum(m * max(0, -mp.expm1(epsilon - mpf(x))) for x, m in each)
        assert abs(max(plain, 1 - mp.exp(mpf(epsilon))) - value) <= 1e-14


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
