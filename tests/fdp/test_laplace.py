"""The Laplace mechanism, continuous and on grids, against enumeration and integrals."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.finite import Finite
from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.noise import Laplace, laplace

EPSILONS = [1e-9, 1e-3, 0.1, 1.0, 5.0, 40.0]
SHARES = [-3.0, -1.0, -0.7, -1e-9, 0.0, 0.3, 0.999999, 1.0, 1.5]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("steps", [1, 2, 5, 40, math.inf])
def test_bounds_contain_the_exact_value(epsilon, steps, contains, exact):
    parts = [("laplace_steps", (epsilon, steps), 1)]
    if steps == math.inf:
        parts, kinks = [("laplace", (epsilon,), 1)], []
    else:
        kinks = exact.kinks(parts)[:6]
    deltas = [1e-30, 1e-9, 0.01 * -math.expm1(-epsilon)]
    contains(parts, [*(epsilon * share for share in SHARES), *kinks], deltas)


@pytest.mark.parametrize("steps", [2, 5, 40])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_the_form_for_many_steps_also_holds_for_few(steps, epsilon, exact):
    parts = [("laplace_steps", (epsilon, steps), 1)]
    delta, kinks = exact.profile(parts), exact.kinks(parts)
    at = np.array([*kinks, *(share * epsilon for share in SHARES)])
    bounds = Laplace(epsilon, float(steps)).profile(at)
    for one, low, high in zip(at, bounds.lower, bounds.upper, strict=True):
        assert mpf(low) <= delta(one) <= mpf(high)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("other", [0.2, 1.5])
def test_two_mechanisms_equal_their_integral(epsilon, other, contains):
    parts = [("laplace", (epsilon,), 1), ("laplace", (other,), 1)]
    whole = epsilon + other
    at = [-0.4 * whole, abs(epsilon - other), whole * (1 - 1e-9)]
    contains(parts, at, [1e-6])


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_two_mechanisms_beside_randomized_response_equal_their_integral(epsilon, contains):
    parts = [("laplace", (epsilon,), 2), ("approximate", (0.7, 1e-3), 1)]
    contains(parts, [-0.5, 0.4, 1.5 * epsilon], [0.02])


def test_few_steps_are_a_finite_pair():
    assert isinstance(laplace(1.0, 40.0), Finite)
    assert isinstance(laplace(1.0, 5000.0), Laplace)
    assert T.laplace(1.0, 1) == T.pure(1.0)
    assert T.laplace(0.0) == T.laplace(0.0, 3) == T.identity()
    assert T.laplace(math.inf) == T.laplace(math.inf, 7) == T.worst()


def big_moment(epsilon, steps, u):
    """E_P[e^((u - 1/2) L)] in big floats."""
    e = mp.mpf(epsilon)
    if steps == math.inf:
        return mp.exp(-e / 2) * (mp.cosh(u * e) + mp.sinh(u * e) / (2 * u))
    cell = e / int(steps)
    odd = mp.exp(-cell)
    inner = (1 - odd) / (1 + odd) * mp.sinh(u * (e - cell)) / mp.sinh(u * cell)
    return mp.exp(-e / 2) * (2 / (1 + odd) * mp.cosh(u * e) + inner)


@pytest.mark.parametrize("tau", [1e-3, 0.7, 40.0])
@pytest.mark.parametrize("steps", [math.inf, 2.0, 7.0, 5000.0])
@pytest.mark.parametrize("epsilon", [1e-5, 6.4e-4, 0.3, 5.0])
def test_cumulants_are_within_their_errors(epsilon, steps, tau):
    one = Laplace(epsilon, steps)
    with mp.workdps(50):
        half = mp.mpf(1) / 2
        base = big_moment(epsilon, steps, mp.mpf(tau) + half)
        value, error = one.log_mgf(np.array([tau])), one.mgf_error(np.array([tau]))
        assert abs(mp.log(base) - mp.mpf(float(value[0]))) <= mp.mpf(float(error[0]))
        assert error[0] <= 1e-13 * (1 + tau * epsilon)


@pytest.mark.parametrize("steps", [4097, 1_000_000, math.inf])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_the_transform_is_a_sum_over_outcomes(epsilon, steps):
    found = Laplace(epsilon, steps).transform(0.7, 2.0, 12)
    with mp.workdps(30):
        whole = big_moment(epsilon, steps, mp.mpc(0.7) + 0.5)
        for index, value in enumerate(found.values):
            precise = big_moment(epsilon, steps, mp.mpc(0.7, 2.0 * index) + 0.5) / whole
            assert abs(mp.mpc(complex(value)) - precise) <= found.error


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("steps", [1, 5, 5000, math.inf])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-100, 100.0, 700.0, 2000.0])
@pytest.mark.parametrize("count", [1, 3])
def test_extreme_scales_are_bounded_without_a_warning(epsilon, steps, count, exact):
    made, whole = T.laplace(epsilon, steps).power(count), count * epsilon
    parts = (
        ("laplace", (epsilon,), 1) if steps == math.inf else ("laplace_steps", (epsilon, steps), 1)
    )
    delta = exact.profile([parts], 1000) if count == 1 and steps != 5000 else None
    for share in (-1.5, -0.5, 0.0, 0.4, 0.99, 1.0, 1.5):
        bounds = made.delta_bounds(share * whole)
        assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
        if delta:
            assert mpf(bounds.lower) <= delta(share * epsilon) <= mpf(bounds.upper)
    assert made.delta_bounds(1.5 * whole).upper <= 1e-290
    assert made.epsilon_bounds(1e-6).upper <= whole * (1 + 1e-12)
