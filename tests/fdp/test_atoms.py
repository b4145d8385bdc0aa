"""Products of different finite pairs against sums over subsets and over outcomes."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.fdp.function import TradeoffFunction as T


def subsets(epsilons):
    """Losses and both masses of every subset, in long doubles: [MV16, Theorem 1.5]."""
    loss = np.zeros(1, dtype=np.longdouble)
    for epsilon in epsilons:
        e = np.longdouble(epsilon)
        loss = np.concatenate([loss + e, loss - e])
    return loss


def murtagh_vadhan(epsilons, deltas, epsilon):
    """Least δ for ε: 1 - Π(1 - δ_i) (1 - Σ over subsets of max(0, e^S - e^ε e^(not S)) / Π)."""
    loss = subsets(epsilons)
    whole = np.sum([np.longdouble(one) for one in epsilons])
    log_product = np.sum([np.log1p(np.exp(np.longdouble(one))) for one in epsilons])
    high, low = (whole + loss) / 2, (whole - loss) / 2
    terms = np.exp(high - log_product) - np.exp(np.longdouble(epsilon) + low - log_product)
    rest = np.prod([1 - np.longdouble(one) for one in deltas])
    return 1 - rest * (1 - np.sum(np.sort(terms[terms > 0])))


def optimal_epsilon(epsilons, deltas, delta):
    """Least ε of [MV16] by bisection."""
    low, high = np.longdouble(0), np.sum([np.longdouble(one) for one in epsilons])
    if murtagh_vadhan(epsilons, deltas, 0.0) <= delta:
        return low
    for _ in range(64):
        middle = (low + high) / 2
        if murtagh_vadhan(epsilons, deltas, middle) > delta:
            low = middle
        else:
            high = middle
    return high


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
        found, expected = made.epsilon_bounds(delta), optimal_epsilon(epsilons, deltas, delta)
        assert found.lower <= expected * (1 + 1e-17)
        assert found.upper >= expected * (1 - 1e-17)
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


RESPONSES = st.lists(
    st.tuples(
        st.just("approximate"),
        st.tuples(st.floats(0.01, 3.0), st.sampled_from([1e-30, 1e-6, 0.01])),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=3,
)
PURE = st.lists(
    st.tuples(st.just("pure"), st.tuples(st.floats(0.01, 3.0)), st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


@given(PURE, st.floats(-3.0, 6.0), st.floats(1e-9, 0.5))
@settings(max_examples=12)
def test_different_pure_ones_contain_the_exact_value(contains, parts, epsilon, delta):
    contains(parts, [epsilon, 0.0], [delta])


@given(RESPONSES, st.floats(-3.0, 6.0), st.floats(1e-9, 0.5))
@settings(max_examples=12)
def test_different_ones_that_fail_contain_the_exact_value(contains, parts, epsilon, delta):
    contains(parts, [epsilon], [delta])


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


@pytest.mark.parametrize("parts", MIXED[:4])
def test_the_other_direction_contains_the_exact_value(parts, contains, exact):
    swap = {"finite": "inverse", "inverse": "finite"}
    other = [(swap.get(kind, kind), arguments, n) for kind, arguments, n in parts]
    contains(other, [-0.5, 0.0, 0.5, 2.0], [1e-6, 0.05], exact.build(parts).inverse())


def test_outcomes_add_up():
    made = T.pure(0.5).power(3).compose(T.laplace(1.0, 5), T.approximate(0.2, 0.01))
    atoms = made.product.atoms
    assert np.all(np.diff(atoms.losses) >= 0.0)
    p, q = atoms.above
    assert p[-1] + atoms.infinite == pytest.approx(1.0, abs=1e-13)
    assert q[-1] == pytest.approx(0.99, abs=1e-13)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [2, 100, 1000])
@pytest.mark.parametrize("epsilon0", [1.0, 10.0, 400.0])
def test_immense_losses_are_bounded_without_a_warning(count, epsilon0):
    made = T.pure(epsilon0).power(count)
    whole, last = count * epsilon0, 0.0
    for share in (1.001, 1.0, 0.99, 0.5, 0.0, -0.5, -1.0, -1.001):
        bounds = made.delta_bounds(share * whole)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
        assert bounds.upper >= last
        last = bounds.lower
    assert last == pytest.approx(-np.expm1(-1.001 * whole), abs=1e-9)
    found = made.epsilon_bounds(1e-9)
    assert 0.0 <= found.lower <= found.upper <= whole * (1 + 1e-12)
    assert found.width <= 1e-9 * found.upper
    beta = made.beta_bounds(0.5)
    assert 0.0 <= beta.lower <= beta.upper <= 0.5


@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize(
    "parts",
    [
        [("pure", (0.5,), 1)],
        [("pure", (0.5,), 20)],
        [("approximate", (1.0, 1e-3), 2), ("pure", (0.1,), 1)],
        [("finite", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 2)],
        [("laplace_steps", (1.0, 40), 1)],
        [("discrete_gaussian", (0.7, 1), 1)],
        [("randomized_response", (0.7, 5), 3)],
    ],
)
def test_a_gaussian_beside_finite_pairs_is_a_mixture(mu, parts, contains):
    contains([("gaussian", (mu,), 1), *parts], [-1.0, 0.0, 0.5, 2.0, 6.0], [1e-9, 5e-3, 0.2])


@given(PURE, st.floats(0.05, 3.0), st.floats(-2.0, 8.0), st.floats(1e-9, 0.5))
@settings(max_examples=12)
def test_a_gaussian_beside_randomized_responses_anywhere(contains, parts, mu, epsilon, delta):
    contains([("gaussian", (mu,), 1), *parts], [epsilon], [delta])


def test_worst_beside_anything_is_worst():
    for other in (T.pure(1.0), T.gaussian(1.0), T.laplace(1.0), T.pure(1.0).power(3)):
        for made in (T.worst().compose(other), other.compose(T.worst())):
            assert made.delta_bounds(5.0).lower >= 1.0 - 1e-12
            assert made.delta(5.0) == 1.0
            assert made.beta(0.5) == 0.0
            assert made.epsilon(0.5) == float("inf")


def test_the_sum_over_subsets_is_the_sum_over_outcomes(exact):
    parts = [("pure", (0.5,), 1), ("pure", (0.3,), 2)]
    delta = exact.profile(parts)(0.4)
    assert abs(mpf(str(murtagh_vadhan((0.5, 0.3, 0.3), (0.0,) * 3, 0.4))) - delta) <= mpf("1e-17")
    with mp.workdps(30):
        assert abs(mp.fsum(p for p, _ in exact.outcomes(parts)) - 1) <= mpf("1e-25")


def test_sums_of_many_small_losses_do_not_cancel():
    """Σ p (1 - e^(ε - L)) has positive terms only; a difference of sums would lose ten digits."""
    n, epsilon0 = 10**4, 1e-12
    made = T.pure(epsilon0).power(n)
    for share in (0.0, 1.0, 2.5):
        epsilon = share * epsilon0 * n**0.5
        bounds = made.delta_bounds(epsilon)
        with mp.workdps(50):
            high = 1 / (1 + mp.exp(-mpf(epsilon0)))
            exact, odds = mpf(0), mp.exp(-mpf(epsilon0))
            mass = mp.binomial(n, n // 2) * high ** (n // 2) * (1 - high) ** (n // 2)
            right, ups = mass, n // 2
            while (2 * ups - n) <= 1500:
                loss = (2 * ups - n) * mpf(epsilon0)
                if loss > epsilon:
                    exact += right * -mp.expm1(mpf(epsilon) - loss)
                right *= mpf(n - ups) / (ups + 1) / odds
                ups += 1
            exact_high = exact * (1 + mpf("1e-12"))
        assert mpf(bounds.lower) <= exact_high
        assert exact <= mpf(bounds.upper)
        assert bounds.width <= 1e-8 * bounds.upper
    found = made.epsilon_bounds(1e-11)
    assert 0.0 < found.width <= 1e-8 * found.upper


@pytest.mark.parametrize("gap", [0.5, 40.0, 300.0])
def test_outcomes_in_several_pieces_contain_the_exact_value(gap, contains):
    parts = [("pure", (gap,), 3), ("pure", (1e-7,), 2)]
    contains(parts, [0.0, 5e-8, gap - 1e-7, gap, gap * (1 - 1e-12), 2.9 * gap], [1e-3, 1e-9])
