"""Products of different finite pairs against sums over subsets and over outcomes."""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.function import TradeoffFunction as T

from .test_binomial import homogeneous


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


def test_printed_values_of_optimal_composition():
    made = composed((0.5, 0.3, 0.2, 0.2), (0.0,) * 4)
    for delta, epsilon in (
        (1e-3, 1.1907061462),
        (1e-2, 1.1029294785),
        (0.05, 0.7407058929),
        (0.1, 0.5303067256),
    ):
        assert made.epsilon(delta) == pytest.approx(epsilon, abs=1e-10)
    failing = composed((0.5, 0.3, 0.2, 0.2), (1e-3, 1e-3, 0.0, 0.0))
    assert failing.epsilon(0.05) == pytest.approx(0.7487669035, abs=1e-10)
    assert failing.epsilon(0.1) == pytest.approx(0.5370815604, abs=1e-9)


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
