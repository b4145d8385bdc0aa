"""Conversions are monotone in every argument, as computed, rounding and search included."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    zcdp_to_renyi,
)
from opendp_concurrent.measures.tradeoffs import (
    gaussian_to_delta,
    gaussian_to_epsilon,
    pure_to_gaussian,
)
from opendp_concurrent.numerics.bracket import zcdp_to_delta, zcdp_to_epsilon

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


# --- curves --------------------------------------------------------------------------------------


class Changing(float):
    """A distance that changes after it was read."""


@pytest.mark.parametrize("formula", [pure_to_renyi, zcdp_to_renyi])
def test_a_known_curve_is_copied(formula):
    curve = KnownCurve(formula, Changing(0.5))
    copy = known(curve)
    assert copy is not curve
    assert type(copy.distance) is float
    assert copy(3.0) == formula(0.5, 3.0)


def test_other_functions_are_not_known():
    class Below(KnownCurve):
        pass

    assert known(KnownCurve(max, 0.5)) is None
    assert known(Below(pure_to_renyi, 0.5)) is None
    assert known(lambda alpha: alpha) is None
