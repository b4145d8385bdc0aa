"""Powers of pairs with two losses against binomial sums in big floats."""

from itertools import accumulate, product
from operator import mul

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.finite import binomial, response, window
from opendp_concurrent.fdp.function import TradeoffFunction as T

from ..some import some


def homogeneous(epsilon0, count, delta0=0.0):
    """[KOV15]: a binomial tail."""
    e, d = mp.exp(mpf(epsilon0)), 1 - (1 - mpf(delta0)) ** count
    whole = (1 + e) ** count
    ways = [*accumulate(range(count), lambda w, j: w * (count - j) // (j + 1), initial=1)]
    powers = [*accumulate([e] * count, mul, initial=mpf(1))]

    def delta(epsilon):
        scale = mp.exp(mpf(epsilon))
        terms = (
            w * (up - scale * down) for w, up, down in zip(ways, powers, powers[::-1], strict=True)
        )
        return min(d + (1 - d) * mp.fsum(term for term in terms if term > 0) / whole, mpf(1))

    return delta


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize(
    ("epsilon0", "count", "delta0"),
    some(product([1e-3, 0.1, 0.5, 2.0], [2, 10, 100, 1000], [0.0, 1e-12]), 3),
)
def test_bounds_contain_the_exact_value(epsilon0, count, delta0):
    exact, made = homogeneous(epsilon0, count, delta0), T.approximate(epsilon0, delta0).power(count)
    for share in (-0.5, -1e-9, 1e-3, 0.1, 0.5, 1.0 - 2 / count, 1.0 - 1e-9):
        epsilon = share * count * epsilon0
        bounds, value = made.delta_bounds(epsilon), exact(epsilon)
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper), (epsilon, bounds, value)


@pytest.mark.parametrize(
    ("epsilon0", "count", "delta"),
    some(product([0.01, 0.1, 0.5, 1.0], [10, 300, 1000], [1e-100, 1e-40, 1e-6, 0.1]), 5),
)
def test_epsilon_lies_between_its_bounds(epsilon0, count, delta):
    exact, bounds = (
        homogeneous(epsilon0, count),
        T.pure(epsilon0).power(count).epsilon_bounds(delta),
    )
    assert exact(bounds.upper) <= mpf(delta)
    assert bounds.lower == 0.0 or exact(bounds.lower) >= mpf(delta)
    assert bounds.width <= 1e-9 * bounds.upper


def test_printed_values_of_optimal_composition():
    """[KOV15], ε = 0.1, δ = 1e-6, ten times."""
    made = T.approximate(0.1, 1e-6).power(10)
    for epsilon, delta in (
        (1.0, 9.9999550e-6),
        (0.8, 2.98230929e-4),
        (0.6, 3.14223621e-3),
        (0.4, 1.60899711e-2),
        (0.2, 5.23138909e-2),
        (0.0, 0.122544998),
    ):
        assert made.delta(epsilon) == pytest.approx(delta, rel=1e-7)
    twice = T.approximate(0.5, 0.01).power(2)
    assert twice.delta(1.0) == pytest.approx(0.0199, rel=1e-12)
    assert twice.delta(0.0) == pytest.approx(0.2599447810, abs=1e-10)
    assert T.pure(0.1).power(10).epsilon(1e-5) == pytest.approx(0.9936911768, abs=1e-9)
    assert T.pure(0.1).power(10).epsilon(1e-3) == pytest.approx(0.7535731549, abs=1e-9)


@pytest.mark.parametrize("count", [2, 7, 40])
@pytest.mark.parametrize("kind", ["finite", "inverse"])
@pytest.mark.parametrize("pair", [((0.5, 0.5), (0.25, 0.75)), ((0.99, 0.01), (0.98, 0.02))])
def test_powers_of_asymmetric_pairs_contain_the_exact_value(count, kind, pair, contains, exact):
    parts = [(kind, pair, count)]
    at = [-1.0, 0.0, 0.5, 3.0, *exact.kinks(parts)[:: max(1, count // 4)]]
    contains(parts, at, [1e-30, 1e-9, 0.01])


@pytest.mark.parametrize("count", [20_000, 100_000])
def test_large_powers_leave_out_what_is_negligible(count):
    """Outcomes beyond the window have less than 1e-300."""
    made = T.pure(0.01).power(count)
    variance = mpf(count) * mpf(0.01) ** 2
    for delta in (1e-9, 1e-3):
        bounds = made.epsilon_bounds(delta)
        assert bounds.width <= 1e-9 * bounds.upper
        # a sum of bounded losses is nearly normal
        near = T.gaussian(float(mp.sqrt(variance))).epsilon(delta)
        assert bounds.upper == pytest.approx(near, rel=1e-2)


@pytest.mark.parametrize("n", [1, 5, 600, 20_000])
@pytest.mark.parametrize("loss", [1e-9, 1e-3, 1.0, 30.0, 600.0])
@pytest.mark.parametrize("failing", [0.0, 1e-3])
def test_masses_have_the_error_that_they_claim(n, loss, failing):
    factor = response(loss, failing)
    counts, atoms = window(n, factor.masses), binomial(factor, n)
    assert len(atoms.losses) == len(counts)
    with mp.workdps(400):
        high = (1 - mpf(failing)) / (1 + mp.exp(-mpf(loss)))
        low = high * mp.exp(-mpf(loss))
        for index in {0, len(counts) // 3, len(counts) // 2, len(counts) - 1}:
            k = counts[index]
            exact = mp.binomial(n, k) * high**k * low ** (n - k)
            if exact > mpf("1e-300"):
                assert abs(mpf(float(atoms.masses[index])) - exact) <= atoms.mass_error * exact
            loss_exact = (2 * k - n) * mpf(loss)
            assert abs(mpf(float(atoms.losses[index])) - loss_exact) <= atoms.loss_error


def test_many_draws_are_known_to_nine_digits():
    atoms = binomial(response(1e-4), 10**9)
    assert atoms.mass_error <= 1e-8
    assert float(np.sum(atoms.masses)) == pytest.approx(1.0, abs=1e-12)
