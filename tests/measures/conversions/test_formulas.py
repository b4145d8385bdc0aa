"""Every conversion against an independent evaluation: never below, barely above.

The references are written as in the papers, not as in the code, and evaluated by mpmath with so
many digits that their cancellation does not matter. Infima are found by search, without
derivatives. All are monotone in each argument, as computed, rounding and search included.
"""

import math
from itertools import product

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.fdp.session import zcdp_to_tradeoff
from opendp_concurrent.measures.conversion import (
    KnownCurve,
    approximate_to_delta,
    approximate_to_epsilon,
    gaussian_to_zcdp,
    known,
    laplace_to_renyi,
    laplace_to_zcdp,
    pure_to_renyi,
    pure_to_zcdp,
    renyi_to_delta,
    renyi_to_epsilon,
    response_to_renyi,
    zcdp_to_gaussian,
    zcdp_to_renyi,
)
from opendp_concurrent.measures.tradeoffs import (
    gaussian_to_delta,
    gaussian_to_epsilon,
    laplace_to_tradeoff,
    pure_to_gaussian,
    renyi_to_tradeoff,
)
from opendp_concurrent.numerics.bracket import pi, zcdp_to_delta, zcdp_to_epsilon

from ...some import some

EPSILONS = [1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 7.5, 10.0, 20.0, 50.0]
ORDERS = [1 + 1e-6, 1.01, 1.5, 2.0, 4.0, 10.0, 32.0, 1000.0, 1e6]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-3, 0.1, 0.5]
ORDERED = [(e, a) for e in EPSILONS for a in ORDERS]
EXTREME = {1e-12, 50.0, 1e-300, 1e7, 1 + 1e-6, 1e6}


def check(value, exact, arguments=()):
    """At least the exact value, and at most 1e-12 of it above, or 1e-9 at the extremes."""
    assert mpf(value) >= exact, (arguments, value, exact)
    allowed = mpf("1e-9") if EXTREME & set(arguments) else mpf("1e-12")
    assert mpf(value) <= exact * (1 + allowed) + mpf("1e-322"), (arguments, value, exact)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(120):
        yield


def least(function, low, high):
    """Minimum of a unimodal function of a logarithm, by golden section."""
    low, high, ratio = mpf(low), mpf(high), (mp.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    left, right = function(mp.exp(a)), function(mp.exp(b))
    for _ in range(180):
        if left < right:
            high, b, right = b, a, left
            a = high - ratio * (high - low)
            left = function(mp.exp(a))
        else:
            low, a, left = a, b, right
            b = low + ratio * (high - low)
            right = function(mp.exp(b))
    return min(left, right)


# --- from pure DP -------------------------------------------------------------------------------


def response(epsilon, order):
    """Rényi divergence of randomized response, as a sum over its two answers."""
    e, a = mpf(epsilon), mpf(order)
    p = mp.exp(e) / (1 + mp.exp(e))
    return mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-5, 0.05, 0.7, 4.0, 5.5, 30.0, 100.0])
def test_pure_to_zcdp(epsilon):
    e = mpf(epsilon)
    p = mp.exp(e) / (1 + mp.exp(e))
    check(pure_to_zcdp(epsilon), (2 * p - 1) * e, (epsilon,))  # the Kullback-Leibler divergence


@pytest.mark.parametrize(("epsilon", "order"), ORDERED)
def test_pure_to_renyi(epsilon, order):
    check(pure_to_renyi(epsilon, order), response(epsilon, order), (epsilon, order))


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-5, 0.05, 0.7, 4.0, 5.5, 30.0, 100.0, 1000.0])
def test_pure_to_gaussian(epsilon):
    with mp.workdps(60 if epsilon < 200 else 500):
        q = 1 / (1 + mp.exp(mpf(epsilon)))
        start = mpf(pure_to_gaussian(epsilon)) / 2
        mu = 2 * mp.findroot(lambda x: mp.erfc(x / mp.sqrt(2)) / 2 - q, (start, start * 1.000001))
        check(pure_to_gaussian(epsilon), mu, (epsilon,))


def profile(epsilon, delta, smaller):
    """δ of randomized response that fails with probability δ, summed over its answers."""
    e, d, s = mpf(epsilon), mpf(delta), mpf(smaller)
    p = mp.exp(e) / (1 + mp.exp(e))
    return d + (1 - d) * max(p - mp.exp(s) * (1 - p), 0) + (1 - d) * max(1 - p - mp.exp(s) * p, 0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("delta", "share"), [(0.0, 0.5), (1e-300, 0.999), (1e-6, 0.0), (0.5, 1.0)])
def test_a_smaller_epsilon_has_the_delta_of_randomized_response(epsilon, delta, share):
    smaller = epsilon * share
    exact = mpf(delta) if share == 1.0 else profile(epsilon, delta, smaller)
    check(approximate_to_delta(epsilon, delta, smaller), exact, (epsilon, delta))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("delta", "larger"), [(0.0, 1e-3), (1e-6, 2e-6), (1e-6, 0.5), (0.1, 0.11), (0.1, 1.0)]
)
def test_a_larger_delta_has_the_least_epsilon_that_it_covers(epsilon, delta, larger):
    found = approximate_to_epsilon(epsilon, delta, larger)
    assert 0.0 <= found <= epsilon
    assert profile(epsilon, delta, found) <= mpf(larger)
    if found > 0.0 and larger > delta:
        assert profile(epsilon, delta, found * (1 - 1e-9)) > mpf(larger) * (1 - mpf("1e-15"))


# --- Laplace and randomized response --------------------------------------------------------------


def on_a_grid(shift, inverse_scale, order):
    """Rényi divergence of discrete Laplace noise at a shift, summed over the integers."""
    q, a = mp.exp(-mpf(inverse_scale)), mpf(order)
    c = (1 - q) / (1 + q)
    reach = int(130 * mp.log(10) / mpf(inverse_scale)) + shift
    total = mp.fsum(
        (c * q ** abs(j)) ** a * (c * q ** abs(j - shift)) ** (1 - a)
        for j in range(-reach, reach + shift)
    )
    return mp.log(total) / (a - 1)


@pytest.mark.parametrize(
    ("shift", "inverse_scale", "order"),
    some(product([1, 2, 3, 5, 11], [0.5, 1.0, 2.5], [1.01, 1.5, 2.0, 7.0]), 7),
)
def test_laplace_noise_on_integers_has_the_divergence_of_its_sum(shift, inverse_scale, order):
    found = laplace_to_renyi(shift * inverse_scale, order, inverse_scale)
    check(found, on_a_grid(shift, inverse_scale, order) * (1 - mpf("1e-40")))


@pytest.mark.parametrize(("shift", "inverse_scale"), [(1, 0.5), (2, 1.0), (5, 2.5)])
def test_no_order_of_laplace_noise_on_integers_exceeds_its_zcdp(shift, inverse_scale):
    rho = laplace_to_zcdp(shift * inverse_scale, inverse_scale)
    for order in (1.0001, 1.01, 1.1, 1.5, 2.0, 3.0, 6.0, 20.0):
        assert on_a_grid(shift, inverse_scale, order) <= mpf(rho) * order
    closest = on_a_grid(shift, inverse_scale, 1 + 1e-12)
    assert mpf(rho) <= closest * (1 + mpf("1e-9"))


@pytest.mark.parametrize(("epsilon", "order"), ORDERED)
def test_laplace_noise_on_a_fine_grid_has_the_divergence_of_laplace(epsilon, order):
    e, a = mpf(epsilon), mpf(order)
    exact = mp.log(
        a / (2 * a - 1) * mp.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mp.exp(-a * e)
    ) / (a - 1)
    check(laplace_to_renyi(epsilon, order), exact, (epsilon, order))
    check(laplace_to_renyi(epsilon, order, 1e-300), exact, (epsilon, order))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_noise_on_a_fine_grid_has_the_zcdp_of_laplace(epsilon):
    exact = mpf(epsilon) + mp.exp(-mpf(epsilon)) - 1
    check(laplace_to_zcdp(epsilon), exact, (epsilon,))
    check(laplace_to_zcdp(epsilon, 1e-300), exact, (epsilon,))
    assert laplace_to_zcdp(epsilon) <= laplace_to_zcdp(epsilon, epsilon) == pure_to_zcdp(epsilon)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-4, 0.5, 20.0])
def test_a_grid_of_next_to_no_step_changes_next_to_nothing(epsilon):
    """Down to the finest grid that is reckoned with, also where ε is far below 1."""
    for step in (0.0, 1e-20 * epsilon, 1e-19 * epsilon):
        assert laplace_to_zcdp(epsilon, step) == pytest.approx(laplace_to_zcdp(epsilon), rel=1e-12)
        found, expected = (laplace_to_renyi(epsilon, 3.0, one) for one in (step, 0.0))
        assert found == pytest.approx(expected, rel=1e-12)


def test_the_formula_of_laplace_is_not_valid_for_integers():
    """A shift of one step is randomized response: ε + e^-ε - 1 = 0.3679 would be too small."""
    assert on_a_grid(1, 1.0, 1.0001) > mpf(laplace_to_zcdp(1.0)) * mpf("1.25")


@pytest.mark.parametrize("prob", [0.51, 0.75, 0.999, 1 - 1e-9])
@pytest.mark.parametrize("categories", [2, 3, 30])
@pytest.mark.parametrize("order", ORDERS[::2])
def test_randomized_response_has_the_divergence_of_its_sum(prob, categories, order):
    p, a = mpf(prob), mpf(order)
    r = (1 - p) / (categories - 1)
    first, second = [p] + [r] * (categories - 1), [r, p] + [r] * (categories - 2)
    exact = mp.log(mp.fsum(x**a * y ** (1 - a) for x, y in zip(first, second, strict=True))) / (
        a - 1
    )
    check(response_to_renyi(prob, categories, order), exact, (order,))


# --- zCDP, tCDP and Rényi DP to (ε, δ) ------------------------------------------------------------


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 10.0, 1000.0, 1e6, 1 + 1e-6])
@pytest.mark.parametrize("divergence", [1e-12, 1.0, 50.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-3, 0.5])
def test_renyi_to_epsilon(order, divergence, delta):
    a, t, d = mpf(order), mpf(divergence), mpf(delta)
    exact = t + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1)
    check(renyi_to_epsilon(order, divergence, delta), max(exact, 0), (order, divergence, delta))


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 10.0, 1000.0, 1e6, 1 + 1e-6])
@pytest.mark.parametrize("divergence", [1e-12, 1.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 60.0])
def test_renyi_to_delta(order, divergence, epsilon):
    a, t, e = mpf(order), mpf(divergence), mpf(epsilon)
    exact = mp.exp((a - 1) * (t - e)) / (a - 1) * (1 - 1 / a) ** a
    check(renyi_to_delta(order, divergence, epsilon), min(exact, 1), (order, divergence))


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 20.0, 1e7])
@pytest.mark.parametrize("delta", DELTAS[::2] + DELTAS[-1:])
@pytest.mark.parametrize("omega", [1.25, 20.0, math.inf])
def test_zcdp_to_epsilon_is_the_infimum_over_orders(rho, delta, omega):
    r, d = mpf(rho), mpf(delta)

    def at(t):
        a = t + 1
        return a * r + mp.log(t / a) - (mp.log(d) + mp.log(a)) / t

    high = mp.log(mpf("1e40")) if omega == math.inf else mp.log(mpf(omega) - 1)
    exact = max(least(at, -60, high), 0)
    check(zcdp_to_epsilon(rho, delta, omega), exact * (1 - mpf("1e-30")), (rho, delta))


@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 3.0, 30.0])
@pytest.mark.parametrize("omega", [4.0, math.inf])
def test_zcdp_to_delta_is_the_infimum_over_orders(rho, ratio, omega):
    epsilon = ratio * math.sqrt(rho)
    r, e = mpf(rho), mpf(epsilon)

    def at(t):
        a = t + 1
        return t * (a * r - e) - mp.log(t) + a * mp.log(t / a)

    high = mp.log(mpf("1e40")) if omega == math.inf else mp.log(mpf(omega) - 1)
    exact = min(mp.exp(least(at, -60, high)), 1)
    check(zcdp_to_delta(rho, epsilon, omega), exact * (1 - mpf("1e-30")), (rho,))


# --- Gaussian DP ----------------------------------------------------------------------------------


def gaussian(mu, epsilon):
    m, e = mpf(mu), mpf(epsilon)

    def phi(x):
        return mp.erfc(-x / mp.sqrt(2)) / 2

    return phi(-e / m + m / 2) - mp.exp(e) * phi(-e / m - m / 2)


MUS = [1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 50.0]
SIGMAS = [-3.0, 0.0, 0.5, 1.0, 6.0, 15.0, 17.0, 36.0]


@pytest.mark.parametrize(("mu", "sigmas"), some(product(MUS, SIGMAS), 3))
def test_gaussian_to_delta(mu, sigmas):
    epsilon = max(0.0, mu * (sigmas + mu / 2))
    with mp.workdps(800):
        check(gaussian_to_delta(mu, epsilon), gaussian(mu, epsilon), (mu,))


@pytest.mark.parametrize(
    ("mu", "delta"), some(product([1e-6, 0.1, 1.0, 5.0, 50.0], [1e-300, 1e-30, 1e-6, 0.01, 0.3]), 6)
)
def test_gaussian_to_epsilon_is_the_least_double_that_covers(mu, delta):
    epsilon = gaussian_to_epsilon(mu, delta)
    with mp.workdps(800):
        assert gaussian(mu, epsilon) <= mpf(delta)
        if epsilon > 0.0:
            assert gaussian(mu, epsilon * (1 - 1e-12)) > mpf(delta)


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e-160, *EPSILONS, 1e10, 1e150, 1e300])
def test_products(value):
    x = mpf(value)
    check(zcdp_to_renyi(value, 8.5), x * mpf(8.5)) if value < 1e300 else None
    check(gaussian_to_zcdp(value), x * x / 2) if value < 1e150 else None
    check(zcdp_to_gaussian(value), mp.sqrt(2 * x))
    check(zcdp_to_gaussian(value, 0.25), mp.sqrt(2 * x) + mpf(0.25))


# --- the ends -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pure_to_zcdp(0.0), 0.0),
        (pure_to_zcdp(math.inf), math.inf),
        (pure_to_renyi(0.0, 2.0), 0.0),
        (pure_to_renyi(math.inf, 2.0), math.inf),
        (pure_to_gaussian(0.0), 0.0),
        (pure_to_gaussian(math.inf), math.inf),
        (laplace_to_zcdp(0.0, 0.5), 0.0),
        (laplace_to_zcdp(math.inf, 0.5), math.inf),
        (laplace_to_renyi(0.0, 2.0, 0.5), 0.0),
        (laplace_to_renyi(math.inf, 2.0, math.inf), math.inf),
        (zcdp_to_epsilon(0.0, 1e-6), 0.0),
        (zcdp_to_epsilon(1.0, 0.0), math.inf),
        (zcdp_to_epsilon(1.0, 1.0), 0.0),
        (zcdp_to_epsilon(math.inf, 1e-6), math.inf),
        (zcdp_to_delta(0.0, 0.0), 0.0),
        (zcdp_to_delta(math.inf, 1.0), 1.0),
        (zcdp_to_delta(1.0, math.inf), 0.0),
        (renyi_to_epsilon(2.0, 0.0, 1e-6), 0.0),
        (renyi_to_epsilon(2.0, math.inf, 1e-6), math.inf),
        (renyi_to_epsilon(2.0, 1.0, 0.0), math.inf),
        (renyi_to_delta(2.0, math.inf, 1.0), 1.0),
        (renyi_to_delta(2.0, 1.0, math.inf), 0.0),
        (gaussian_to_delta(0.0, 0.0), 0.0),
        (gaussian_to_delta(math.inf, 1.0), 1.0),
        (gaussian_to_delta(1e6, 1.0), 1.0),
        (gaussian_to_delta(1.0, 1e6), 5e-324),
        (gaussian_to_epsilon(1.0, 0.0), math.inf),
        (gaussian_to_epsilon(1.0, 1.0), 0.0),
        (gaussian_to_zcdp(0.0), 0.0),
        (gaussian_to_zcdp(math.inf), math.inf),
        (zcdp_to_gaussian(0.0, 0.25), 0.0),
        (zcdp_to_renyi(0.0, 2.0), 0.0),
        (approximate_to_delta(math.inf, 0.0, 1.0), 1.0),
        (approximate_to_epsilon(math.inf, 0.0, 0.5), math.inf),
        (approximate_to_epsilon(0.5, 0.25, 0.25), 0.5),
        (approximate_to_epsilon(0.5, 0.25, 0.2), math.inf),
        (renyi_to_epsilon(2.0, 50.0, 1.0), 0.0),
        (zcdp_to_delta(0.0, 0.5), 0.0),
        (renyi_to_delta(2.0, 0.0, 0.0), 0.0),
        (renyi_to_delta(2.0, 0.0, 1e3), 0.0),
        (response_to_renyi(0.5, 2, 4.0) <= 5e-324, True),
    ],
)
def test_ends(found, expected):
    assert found == expected


def test_no_loss_is_the_identity_and_too_much_is_the_worst():
    assert zcdp_to_tradeoff(0.0, math.inf) == TradeoffFunction.identity()
    assert zcdp_to_tradeoff(144.0, math.inf) == TradeoffFunction.worst()
    assert renyi_to_tradeoff(2.0, 0.0) == TradeoffFunction.identity()
    assert renyi_to_tradeoff(2.0, 300.0) == TradeoffFunction.worst()


def test_laplace_noise_on_a_grid_has_the_whole_steps_of_its_shift():
    assert laplace_to_tradeoff(1.0, 0.25) == TradeoffFunction.laplace(1.0, 4.0)
    assert laplace_to_tradeoff(0.3, 0.1) == TradeoffFunction.laplace(0.3, 3.0)
    assert laplace_to_tradeoff(1.0, 0.0) == TradeoffFunction.laplace(1.0, math.inf)
    assert laplace_to_tradeoff(1.0, 1.0) == TradeoffFunction.pure(1.0)
    assert laplace_to_tradeoff(0.0, 0.0) == TradeoffFunction.identity()
    assert laplace_to_tradeoff(math.inf, 1.0) == TradeoffFunction.worst()
    assert laplace_to_tradeoff(2000.0, 1.0) == TradeoffFunction.pure(2000.0)


@pytest.mark.parametrize("digits", [20, 50, 400])
def test_the_bracket_of_pi_is_wider_than_all_that_is_cut_from_its_terms(digits):
    low, high = pi(digits)
    terms = (digits + 12) / math.log10(25) + (digits + 12) / math.log10(239**2)
    with mp.workdps(digits + 30):
        assert mpf(str(low)) < mp.pi < mpf(str(high))
        width = mpf(str(high)) - mpf(str(low))
        assert 2 * 16 * terms * mpf(10) ** -(digits + 12) < width < mpf(10) ** -digits


# --- far out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1e15, 1e18, 1e300, 1.7e308])
def test_huge_orders_are_bounded_by_the_loss(order):
    assert response_to_renyi(0.75, 2, order) == pytest.approx(math.log(3), rel=1e-12)
    assert mpf(response_to_renyi(0.75, 2, order)) >= mp.log(3) + mp.log(0.75) / mpf(order)
    assert response_to_renyi(0.75, 3, order) == pytest.approx(math.log(6), rel=1e-12)
    assert pure_to_renyi(1.0, order) == pytest.approx(1.0, rel=1e-12)
    assert laplace_to_renyi(1.0, order) == pytest.approx(1.0, rel=1e-12)
    assert laplace_to_renyi(1.0, order, 0.25) == pytest.approx(1.0, rel=1e-12)


def test_divergences_never_exceed_the_loss():
    assert pure_to_renyi(99.38586608042343, 1 + 2**-52) <= 99.38586608042343
    assert pure_to_renyi(1e15, 1e308) <= 1e15
    assert pure_to_renyi(1.0, math.inf) == 1.0
    assert response_to_renyi(0.75, 2, math.inf) >= math.log(3)


def test_huge_mu_neither_hangs_nor_falls_below():
    mu, epsilon = 6.539164655471391e17, 2.138033719568314e35
    with mp.workdps(800):
        check(gaussian_to_delta(mu, epsilon), gaussian(mu, epsilon), (1e7,))
    for exponent in (60, 180, 300, 500):
        mu = 2.0**exponent
        assert gaussian_to_delta(mu, mu * mu / 2) == pytest.approx(0.5, rel=1e-12)
        assert gaussian_to_epsilon(mu, 0.5) == pytest.approx(mu * mu / 2, rel=1e-12)
    assert gaussian_to_delta(2.0**512, 2.0**1023) <= 1.0
    assert gaussian_to_epsilon(1e-300, 1e-300) == 0.0


@pytest.mark.parametrize("epsilon", [1e5, 1e14, 1.1e15, 1e17, 1e18, 1e100, 1e308])
def test_huge_epsilons_have_a_mu(epsilon):
    root = math.sqrt(8) * math.sqrt(epsilon)
    assert pure_to_gaussian(epsilon) == pytest.approx(root, rel=1e-4)
    assert pure_to_gaussian(epsilon) <= root * (1 + 1e-15)


@pytest.mark.parametrize("larger", [0.03, 0.05, 0.0500000001, 0.052, 0.06, 0.5, 0.9, 1.0])
def test_epsilon_falls_with_delta_down_to_zero(larger):
    found = approximate_to_epsilon(0.1, 0.0, larger)
    assert found <= approximate_to_epsilon(0.1, 0.0, larger / 2)
    assert (found == 0.0) == (profile(0.1, 0.0, 0.0) <= mpf(larger))


# --- monotone in every argument -------------------------------------------------------------------

losses = st.floats(1e-9, 30.0)
orders = st.floats(1.001, 1e4)
deltas = st.floats(1e-200, 0.9)
# neighbouring doubles, close ones and far ones
factors = st.one_of(st.just(1 + 2**-52), st.floats(1.0, 1.0 + 1e-9), st.floats(1.0, 50.0))


@given(losses, factors, orders, factors, st.floats(0.0, 3.0))
def test_from_pure_dp(epsilon, factor, order, upwards, step):
    more, higher = epsilon * factor, order * upwards
    assert pure_to_zcdp(epsilon) <= pure_to_zcdp(more)
    assert pure_to_renyi(epsilon, order) <= pure_to_renyi(more, order)
    assert pure_to_renyi(epsilon, order) <= pure_to_renyi(epsilon, higher)
    assert laplace_to_renyi(epsilon, order, step) <= laplace_to_renyi(more, order, step)
    assert laplace_to_renyi(epsilon, order, step) <= laplace_to_renyi(epsilon, higher, step)
    assert laplace_to_renyi(epsilon, order, step) <= laplace_to_renyi(epsilon, order, step * factor)
    assert laplace_to_zcdp(epsilon, step) <= laplace_to_zcdp(more, step)
    assert laplace_to_zcdp(epsilon, step) <= laplace_to_zcdp(epsilon, step * factor)
    assert laplace_to_zcdp(epsilon, step) <= pure_to_zcdp(epsilon)
    assert laplace_to_renyi(epsilon, order, step) <= pure_to_renyi(epsilon, order)
    assert pure_to_renyi(epsilon, order) <= epsilon


@given(st.floats(1e-6, 20.0), factors)
def test_from_pure_to_gaussian_dp(epsilon, factor):
    assert pure_to_gaussian(epsilon) <= pure_to_gaussian(epsilon * factor)


@given(st.floats(0.5, 0.99), st.floats(1.0, 1.01), st.integers(2, 9), orders, factors)
@settings(max_examples=3)
def test_from_randomized_response(prob, factor, categories, order, upwards):
    here = response_to_renyi(prob, categories, order)
    assert here <= response_to_renyi(min(prob * factor, 0.999), categories, order)
    assert here <= response_to_renyi(prob, categories, order * upwards)


@given(losses, factors, deltas, factors, st.floats(1.001, 1e6), factors)
def test_from_zcdp_and_tcdp(rho, factor, delta, larger, omega, further):
    here = zcdp_to_epsilon(rho, delta, omega)
    assert here <= zcdp_to_epsilon(rho * factor, delta, omega)
    assert here >= zcdp_to_epsilon(rho, min(delta * larger, 1.0), omega)
    assert here >= zcdp_to_epsilon(rho, delta, omega * further) >= zcdp_to_epsilon(rho, delta)
    at = zcdp_to_delta(rho, here, omega)
    assert at <= zcdp_to_delta(rho * factor, here, omega)
    assert at >= zcdp_to_delta(rho, here * larger, omega)
    assert at >= zcdp_to_delta(rho, here, omega * further)
    assert zcdp_to_renyi(rho, omega) <= zcdp_to_renyi(rho * factor, omega * further)


@given(losses, factors, deltas, factors, orders)
def test_from_renyi_dp(divergence, factor, delta, larger, order):
    here = renyi_to_epsilon(order, divergence, delta)
    assert here <= renyi_to_epsilon(order, divergence * factor, delta)
    assert here >= renyi_to_epsilon(order, divergence, min(delta * larger, 1.0))
    at = renyi_to_delta(order, divergence, here)
    assert at <= renyi_to_delta(order, divergence * factor, here)
    assert at >= renyi_to_delta(order, divergence, here * larger)


@given(st.floats(1e-3, 20.0), factors, st.floats(0.0, 30.0), factors)
def test_from_gaussian_dp(mu, factor, epsilon, larger):
    here = gaussian_to_delta(mu, epsilon)
    assert here <= gaussian_to_delta(mu * factor, epsilon)
    assert here >= gaussian_to_delta(mu, epsilon * larger)
    assert gaussian_to_zcdp(mu) <= gaussian_to_zcdp(mu * factor)


@given(st.floats(0.01, 10.0), st.floats(1e-100, 0.5), st.floats(1.0, 1e3))
@settings(max_examples=4)
def test_epsilon_and_delta_of_gaussian_dp_invert_each_other(mu, delta, larger):
    epsilon = gaussian_to_epsilon(mu, delta)
    assert gaussian_to_delta(mu, epsilon) <= delta
    if epsilon > 0.0:
        assert gaussian_to_delta(mu, math.nextafter(epsilon, 0.0)) > delta
    assert epsilon >= gaussian_to_epsilon(mu, min(delta * larger, 1.0))


@given(losses, factors, st.floats(0.0, 0.5), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_from_approximate_dp(epsilon, factor, delta, share, other):
    smaller, larger = epsilon * share, delta + (1 - delta) * other
    here = approximate_to_delta(epsilon, delta, smaller)
    assert delta <= here <= approximate_to_delta(epsilon * factor, delta, smaller)
    assert here >= approximate_to_delta(epsilon, delta, smaller * 1.01)
    at = approximate_to_epsilon(epsilon, delta, larger)
    assert at <= approximate_to_epsilon(epsilon * factor, delta, larger)
    assert at >= approximate_to_epsilon(epsilon, delta, min(1.0, larger * 1.01))


@pytest.mark.parametrize("formula", [pure_to_renyi, zcdp_to_renyi])
def test_a_known_curve_is_copied_and_other_functions_are_not_known(formula):
    curve = KnownCurve(formula, 0.5)
    copy = known(curve)
    assert copy is not curve
    assert copy(3.0) == formula(0.5, 3.0)
    assert known(KnownCurve(max, 0.5)) is known(lambda alpha: alpha) is None
