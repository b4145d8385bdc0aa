"""Powers and products of finite pairs against sums over outcomes in big floats."""

from itertools import accumulate, product
from operator import mul

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
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
    least = 1e-6 if delta0 else 1e-40 if count == 2 else 1e-100  # that sums in 60 digits know
    for delta in (one for one in (1e-100, 1e-40, 1e-6, 0.1) if one >= least):
        bounds = made.epsilon_bounds(delta)
        assert exact(bounds.upper) <= mpf(delta)
        assert bounds.lower == 0.0 or exact(bounds.lower) >= mpf(delta)
        assert bounds.width <= 1e-9 * bounds.upper


@pytest.mark.parametrize("count", [2, 7, 40])
@pytest.mark.parametrize("kind", ["finite", "inverse"])
@pytest.mark.parametrize("pair", [((0.5, 0.5), (0.25, 0.75)), ((0.99, 0.01), (0.98, 0.02))])
def test_powers_of_asymmetric_pairs_contain_the_exact_value(count, kind, pair, contains, exact):
    parts = [(kind, pair, count)]
    at = [-1.0, 0.0, 0.5, 3.0, *exact.kinks(parts)[:: max(1, count // 4)]]
    contains(parts, at, [1e-30, 1e-9, 0.01])


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


def murtagh_vadhan(epsilons, deltas, epsilon):
    """Least δ for ε: 1 - Π(1 - δ_i) (1 - Σ over subsets of max(0, e^S - e^ε e^(not S)) / Π).

    [MV16, Theorem 1.5], in long doubles.
    """
    loss = np.zeros(1, dtype=np.longdouble)
    for one in map(np.longdouble, epsilons):
        loss = np.concatenate([loss + one, loss - one])
    whole = np.sum([np.longdouble(one) for one in epsilons])
    log_product = np.sum([np.log1p(np.exp(np.longdouble(one))) for one in epsilons])
    high, low = (whole + loss) / 2, (whole - loss) / 2
    terms = np.exp(high - log_product) - np.exp(np.longdouble(epsilon) + low - log_product)
    rest = np.prod([1 - np.longdouble(one) for one in deltas])
    return 1 - rest * (1 - np.sum(np.sort(terms[terms > 0])))


def composed(epsilons, deltas):
    each = (T.approximate(e, d) for e, d in zip(epsilons, deltas, strict=True))
    return T.identity().compose(*each)


@pytest.mark.parametrize("n", [2, 5, 9, 12, 16])
@pytest.mark.parametrize("failing", [False, True])
def test_optimal_composition_equals_the_sum_over_subsets(n, failing):
    generator = np.random.default_rng(n)
    epsilons = generator.uniform(0.05, 1.0, size=n).tolist()
    deltas = generator.uniform(0.0, 1e-4, size=n).tolist() if failing else [0.0] * n
    made = composed(epsilons, deltas)
    for delta in (2e-3, 0.01, 0.1) if n < 16 else (0.01,):
        found = made.epsilon_bounds(delta)
        assert murtagh_vadhan(epsilons, deltas, found.upper) <= delta * (1 + 1e-17)
        assert murtagh_vadhan(epsilons, deltas, found.lower) >= delta * (1 - 1e-17)
        assert found.width <= 1e-12 * max(1.0, found.upper)
    for epsilon in (0.0, 0.7):
        expected = float(murtagh_vadhan(epsilons, deltas, epsilon))
        assert made.delta(epsilon) == pytest.approx(expected, abs=1e-12)


TEN, MIXTURE = T.approximate(0.1, 1e-6).power(10), [(0.5, 0.0), (0.3, 0.0), (0.2, 0.0), (0.2, 0.0)]
FAILING = [(0.5, 1e-3), (0.3, 1e-3), *MIXTURE[2:]]
PRINTED = [  # [KOV15], [MV16]: the function, and ε at a δ
    *((TEN, *one) for one in [(1.0, 9.9999550e-6), (0.6, 3.14223621e-3), (0.0, 0.122544998)]),
    *((T.pure(0.1).power(10), *one) for one in [(0.9936911768, 1e-5), (0.7535731549, 1e-3)]),
    *((T.approximate(0.5, 0.01).power(2), *one) for one in [(1.0, 0.0199), (0.0, 0.259944781)]),
    *(
        (oc.fdp.optimal_composition(MIXTURE), *one)
        for one in [(1.1907061462, 1e-3), (0.5303067256, 0.1)]
    ),
    *(
        (oc.fdp.optimal_composition(FAILING), *one)
        for one in [(0.7487669035, 0.05), (0.5370815604, 0.1)]
    ),
]


@pytest.mark.parametrize(("f", "epsilon", "delta"), PRINTED)
def test_printed_values_of_optimal_composition(f, epsilon, delta):
    assert f.delta(epsilon) == pytest.approx(delta, rel=1e-7)


MIXED = [
    [("pure", (0.5,), 3), ("finite", ((0.5, 0.5), (0.25, 0.75)), 2)],
    [("finite", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 3), ("pure", (1.0,), 1)],
    [("inverse", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 3), ("pure", (1.0,), 1)],
    [("randomized_response", (0.6, 4), 4), ("laplace_steps", (0.5, 3), 2)],
    [("approximate", (0.3, 1e-4), 5), ("inverse", ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)), 2)],
    [("discrete_gaussian", (1.0, 1), 1), ("pure", (0.25,), 2)],
    [("pure", (1e-9,), 2), ("pure", (8.0,), 2)],
    [("pure", (30.0,), 2), ("laplace_steps", (0.1, 5), 1)],
]


@pytest.mark.parametrize("parts", MIXED)
def test_mixed_products_contain_the_exact_value(parts, contains, exact):
    kinks = exact.kinks(parts)
    at = [-2.0, -0.1, 0.0, 1e-9, 0.5, 3.0, kinks[0], kinks[0] * (1 - 1e-9), *kinks[1:4], kinks[-1]]
    contains(parts, at, [1e-20, 1e-6, 1e-3, 0.1])


def test_sums_of_many_small_losses_do_not_cancel():
    """Σ p (1 - e^(ε - L)) has positive terms only; a difference of sums would lose ten digits."""
    n, epsilon0 = 10**4, 1e-12
    made = T.pure(epsilon0).power(n)
    with mp.workdps(60):
        exact = homogeneous(epsilon0, n)
        for share in (0.0, 1.0, 2.5):
            epsilon = share * epsilon0 * n**0.5
            bounds = made.delta_bounds(epsilon)
            assert mpf(bounds.lower) <= exact(epsilon) <= mpf(bounds.upper)
            assert bounds.width <= 1e-8 * bounds.upper
    found = made.epsilon_bounds(1e-11)
    assert 0.0 < found.width <= 1e-8 * found.upper


@pytest.mark.parametrize("gap", [0.5, 40.0, 300.0])
def test_outcomes_in_several_pieces_contain_the_exact_value(gap, contains):
    parts = [("pure", (gap,), 3), ("pure", (1e-7,), 2)]
    contains(parts, [0.0, 5e-8, gap - 1e-7, gap, gap * (1 - 1e-12), 2.9 * gap], [1e-3, 1e-9])
