"""Fourier inversion against enumeration, where sums over outcomes would be taken."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp import inversion as paths
from opendp_concurrent.fdp.exact import Gaussian
from opendp_concurrent.fdp.inversion import start

from . import conftest as closed

PRODUCTS = [
    [("pure", (0.5,), 2)],
    [("pure", (0.1,), 30)],
    [("pure", (8.0,), 3)],
    [("pure", (1e-3,), 20)],
    [("approximate", (0.2, 0.1), 2), ("pure", (2.0,), 1)],
    [("randomized_response", (0.6, 4), 6)],
    [("laplace_steps", (1.0, 3), 4)],
    [("inverse", ((0.5, 0.5), (0.25, 0.75)), 10)],
    [("finite", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 4)],
    [("finite", ((0.99, 0.01), (0.98, 0.02)), 20), ("pure", (0.1,), 2)],
    [("gaussian", (0.5,), 1), ("pure", (0.5,), 10)],
    [("gaussian", (2.0,), 1), ("approximate", (0.3, 1e-3), 3)],
    [("gaussian", (1.0,), 1), ("finite", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 3)],
    [("gaussian", (1e-3,), 1), ("pure", (0.5,), 3)],
]


@pytest.mark.parametrize("parts", PRODUCTS)
def test_bounds_contain_the_exact_value(parts, inverted, contains, exact):
    kinks = exact.kinks(parts)
    top = kinks[0]
    at = [
        *(-2.0 * top, -0.3 * top, 0.0, 1e-9, 0.37 * top),
        *(kinks[0], kinks[len(kinks) // 3], kinks[-1]),  # attainable losses
        *(top * (1 - 1e-9), top * 0.999, 30.0 * top),
    ]
    made = exact.build(parts)
    assert not made.product.is_exact
    contains(parts, at, [1e-9, 0.05], made)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_random_products_contain_the_exact_value(seed, inverted, contains, exact):
    generator = np.random.default_rng(seed)
    parts = []
    for _ in range(int(generator.integers(1, 3))):
        size, count = int(generator.integers(2, 4)), int(generator.integers(2, 5))
        pair = tuple(tuple(generator.dirichlet(np.ones(size)).tolist()) for _ in range(2))
        parts.append((("finite", "inverse")[int(generator.integers(2))], pair, count))
    kinks = exact.kinks(parts)
    at = [*generator.choice(kinks, 4), *generator.normal(0.0, 3.0, 4)]
    contains(parts, [float(one) for one in at], [1e-9, 0.01], exact.build(parts))


def test_bounds_are_close_where_the_transform_decays(contains):
    for parts in (
        [("laplace", (1.0,), 2)],
        [("laplace", (0.3,), 1), ("laplace", (0.5,), 1)],
    ):
        made = contains(parts, [0.0, 0.2, 0.6])
        for epsilon in (0.0, 0.2, 0.6):
            bounds = made.delta_bounds(epsilon)
            assert bounds.width <= 1e-4 * bounds.upper


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0, 4.0])
def test_an_inverted_gaussian_is_its_closed_form(mu, shift, exact):
    """Bounds of the integral itself, at several tolerances."""
    factors = [(Gaussian(mu), 1)]
    (known, errors), epsilon = paths.cumulants(factors), mu * (shift + mu / 2)
    value = exact.gaussian_delta(mu, epsilon)
    for tolerance in (1e-3, 1e-6, 1e-10):
        path = paths.choose(factors, known, epsilon, tolerance)
        bounds = start(path).times(factors).invert(known, errors, epsilon)
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper)
        assert bounds.width <= 3 * tolerance * bounds.upper


@pytest.mark.parametrize("smoothing", [0.01, 0.05, 0.2])
def test_smoothing_is_paid_for(smoothing, exact):
    """A contour that was smoothed far more than is needed."""
    factors = [(Gaussian(0.4), 1)]
    known, errors = paths.cumulants(factors)
    path = paths.choose(factors, known, 0.3, 1e-6)
    smoothed = paths.Contour(path.index, path.step, path.nodes, smoothing)
    characteristic = start(smoothed).times(factors)
    for epsilon in (-0.2, 0.0, 0.3, 1.0):
        bounds, value = (
            characteristic.invert(known, errors, epsilon),
            exact.gaussian_delta(0.4, epsilon),
        )
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper)


@pytest.mark.parametrize(("nodes", "smoothing"), [(8, 0.01), (64, 0.01), (8, 0.2)])
def test_smoothing_is_paid_for_beyond_the_last_node(nodes, smoothing, exact):
    """Most of the integral is missing where a loss is at ε: what is added for it is then needed."""
    parts = [("pure", (3.0,), 1)]
    factors, at = exact.build(parts).product.counted, int(np.argmin(np.abs(paths.TAUS - 4)))
    one = start(paths.Contour(at, 0.5, nodes, smoothing)).times(factors)
    for epsilon in (2.9, 3.0, 3.1):
        paid = one._smoothing_error(np.exp(-1j * epsilon * one.omega), 0.0)
        time_value = mp.fsum(
            p
            * (
                exact.gaussian_delta(smoothing, epsilon - mp.log(p / q))
                - max(0, 1 - q / p * mp.exp(epsilon))
            )
            for p, q in closed.response(3.0)
        )
        assert time_value <= paid * mp.exp(one.cumulant - one.contour.tau * epsilon)


@pytest.mark.parametrize("nodes", [8, 16, 64])
@pytest.mark.parametrize("stretch", [0.25, 1.0, 4.0])
def test_a_bad_contour_gives_wide_bounds_that_hold(nodes, stretch, exact):
    parts = [("laplace", (1.0,), 2)]
    made, delta = exact.build(parts), exact.profile(parts)
    factors, known = made.product.counted, made.product.cumulants
    path = paths.choose(factors, known, 0.5, 1e-6)
    for index in (path.index - 20, path.index, path.index + 20):
        bad = paths.Contour(index, path.step * stretch, nodes, 0.0)
        characteristic = start(bad).times(factors)
        for epsilon in (-0.5, 0.1, 0.5, 1.5):
            bounds = characteristic.invert(known, made.product.cumulant_errors, epsilon)
            assert mpf(bounds.lower) <= delta(epsilon) <= mpf(bounds.upper), (bounds, epsilon)


@pytest.mark.parametrize("variance", [0.0, 1e-3])
def test_the_bound_on_aliases_is_above_their_sum(variance, exact):
    factors = [(Gaussian(1.0), 1)]
    known, _ = paths.cumulants(factors)
    for at in (80, 110, 130):
        tau = float(paths.TAUS[at])
        for epsilon in (0.0, 1.0):
            for period in (6.0, 20.0):
                with mp.workdps(40):
                    smoothed = mp.sqrt(1 + mpf(variance))
                    base = mp.exp(mpf(float(known[at])) - mpf(tau) * epsilon)
                    value = mp.fsum(
                        mp.exp(mpf(tau) * m * period)
                        * exact.gaussian_delta(smoothed, epsilon + m * period)
                        for m in range(-30, 31)
                        if m
                    )
                bound = paths.alias_bound(known, at, epsilon, period, math.sqrt(variance))
                assert value / base <= bound


def test_renyi_orders_bound_epsilon_from_above(exact):
    for parts, delta in (([("laplace", (1.0,), 2)], 1e-6), ([("gaussian", (1.0,), 1)], 1e-3)):
        known = exact.build(parts).product.cumulants
        assert exact.profile(parts)(paths.renyi_epsilon(known, delta)) <= mpf(delta)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [-1e6, -700.0, 1e-300, 700.0, 1e6])
def test_far_queries_are_answered_without_a_warning(epsilon, exact):
    for parts in ([("laplace", (1.0,), 2)], [("gaussian", (1.0,), 1), ("laplace", (1.0,), 1)]):
        bounds = exact.build(parts).delta_bounds(epsilon)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
        if epsilon < -1.0:
            assert bounds.lower >= 1.0 - 1e-12
        if epsilon == 1e6:
            assert bounds.upper <= 1e-290


def test_few_losses_beside_others_are_summed_term_by_term(contains):
    """Near the largest loss frequencies are so large that formulas round more than terms do."""
    parts = [("laplace_steps", (1.891, 2.0), 8), ("laplace", (1.7577,), 1)]
    top = 8 * 1.891 + 1.7577
    near = [top - 9e-5, top - 9e-4, 0.5 * top]
    made = contains(parts, near)
    for epsilon, width in zip(near, (2.5e-5, 5e-6, 1e-6), strict=True):
        assert made.delta_bounds(epsilon).width <= width * made.delta(epsilon)
