"""Poisson subsampling against masses, integrals and an inversion of its own."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.fdp.noise import Subsampled
from opendp_concurrent.fdp.product import Product

from ..some import slow
from . import convolved, sampled
from .conftest import rounded_up

T = oc.TradeoffFunction
UNITS = ["removed", "added"]
NOISES = [("gaussian", 0.5), ("gaussian", 1.0), ("gaussian", 3.0), ("laplace", 0.3)]
NOISES += [("laplace", 4.0)]


def made(noise, size, rate, unit):
    return T._of(Product(0, {Subsampled(noise, size, rate, unit): 1}))


# --- a single use ---------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("noise", "size"), NOISES)
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 1 - 1e-9])
def test_a_single_use_is_between_its_bounds(noise, size, rate, unit, exact):
    function = made(noise, size, rate, unit)
    near = math.log1p(-rate)  # the profiles bend here
    points = [-5.0, near, near + 1e-12, near - 1e-12, 0.3 * near, -1e-9, 0.0, 1e-9, 1e-3, 0.2]
    points += [-near, 1.0, 2.5, 6.0, 30.0, math.log1p(rate * math.expm1(min(size, 5.0)))]
    for epsilon in points:
        bounds = function.delta_bounds(epsilon)
        with mp.workdps(60):
            value = exact.subsampled_delta(noise, size, rate, unit, epsilon)
        assert mpf(bounds.lower) <= max(value, 0) <= mpf(bounds.upper), (epsilon, bounds, value)
        if 1e-12 < value and rate < 0.99:
            assert bounds.width <= 1e-6 * bounds.upper, (epsilon, bounds)


@given(
    st.sampled_from(["gaussian", "laplace"]),
    st.floats(1e-3, 8.0),
    st.one_of(st.floats(1e-9, 0.999), st.floats(-323.0, -9.0).map(lambda power: 10.0**power)),
    st.sampled_from(UNITS),
    st.floats(-3.0, 9.0),
)
@settings(max_examples=30)
def test_a_single_use_is_between_its_bounds_anywhere(exact, noise, size, rate, unit, epsilon):
    bounds = made(noise, size, rate, unit).delta_bounds(epsilon)
    with mp.workdps(80 + 2 * int(-math.log10(rate))):
        value = exact.subsampled_delta(noise, size, rate, unit, epsilon)
    assert mpf(bounds.lower) <= max(value, 0) <= mpf(bounds.upper)


# --- several uses ---------------------------------------------------------------------------

CHECKED = [  # sigma, rate, count, delta, ε of both directions
    (1.0, 0.01, 1000, 1e-5, 1.82823666, 1.41666194),
    (0.8, 256 / 60000, 14040, 1e-5, 4.54600883, 3.9011420),
    (2.0, 0.05, 400, 1e-6, 2.55575274, 2.23899126),
    (1.0, 0.1, 100, 1e-6, 8.058608, 4.3341986),
    (5.0, 0.5, 100, 1e-8, 5.961293, 5.5926158),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "delta", "removed", "added"), CHECKED)
def test_known_values_are_inside_narrow_brackets(sigma, rate, count, delta, removed, added):
    for unit, value in (("removed", removed), ("added", added)):
        bounds = T.subsampled_gaussian(sigma, rate, unit=unit).power(count).epsilon_bounds(delta)
        assert bounds.width <= 0.01 * bounds.upper
        assert bounds.lower <= value * (1 + 1e-8) + 1e-8
        assert value * (1 - 1e-8) - 1e-8 <= bounds.upper


def check_sampled(parts, failure):
    """All brackets around ``failure`` contain the truth, in both directions and orders.

    :param parts: sigma, rate and count of each
    :return: the number of brackets that were checked
    """
    made = {
        unit: [T.subsampled_gaussian(s, q, unit=unit).power(n) for s, q, n in parts]
        for unit in UNITS
    }
    whole = {unit: T.identity().compose(*listed) for unit, listed in made.items()}
    ends = {unit: f.epsilon_bounds(failure) for unit, f in whole.items()}
    top = max(one.upper for one in ends.values())
    if not top <= 40.0:
        raise sampled.TooLongError(top)  # the two terms of δ would cancel too many digits
    points = [*ends["removed"], *ends["added"], top / 2, 0.0, -top / 3]
    error = 1e-13 * failure
    listed = [(rounded_up(1 / mpf(s)), q, n) for s, q, n in parts]
    exact = sampled.deltas(listed, points, error)
    for unit, values in exact.items():
        turned = T.identity().compose(*made[unit][::-1])
        other = whole["added" if unit == "removed" else "removed"].inverse()
        for epsilon, value in zip(points, values, strict=True):
            for function in (whole[unit], turned, other):
                low, high = function.delta_bounds(epsilon)
                assert mpf(low) <= value + error, (parts, unit, epsilon, low, value)
                assert value - error <= mpf(high), (parts, unit, epsilon, value, high)
        low, high = (values[points.index(one)] for one in ends[unit])
        assert high <= failure + error, (parts, unit, ends[unit])
        assert low >= failure - error or not ends[unit].lower, (parts, unit, ends[unit])
    return 2 * 3 * len(points)


def check_drawn(seed):
    """At seeded draws, of which those that are too long for the oracle are drawn again."""
    draw = np.random.default_rng(seed)
    while True:
        several = [
            (
                float(np.exp(draw.uniform(-0.7, 2.1))),
                float(np.exp(draw.uniform(-7.0, -0.05))),
                int(np.exp(draw.uniform(math.log(3), math.log(1000)))),
            )
            for _ in range(1 + seed % 2)
        ]
        try:
            return check_sampled(several, 10.0 ** draw.uniform(-10.0, -2.0))
        except sampled.TooLongError:
            continue


@pytest.mark.parametrize(
    ("parts", "failure"),
    [
        ([(1.5, 0.3, 12)], 1e-3),
        *slow([([(1.0, 0.1, 100)], 1e-6), ([(5.0, 0.5, 100), (3.0, 0.02, 300)], 1e-8)]),
        *slow(([one[:3]], one[3]) for one in CHECKED),
    ],
)
def test_brackets_contain_an_inversion_on_the_real_axis(parts, failure):
    """Several uses, alone and beside others."""
    assert check_sampled(parts, failure) == 42


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(160))
def test_brackets_contain_an_inversion_on_the_real_axis_at_length(seed):
    assert check_drawn(seed) == 42


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("noise", "size", "rate"), [("gaussian", 1.5, 0.2), ("laplace", 1.0, 0.3)])
def test_two_uses_are_an_integral_over_the_first(noise, size, rate, unit):
    """δ of both is the mean of δ of one at ε less the loss of the other."""
    whole, one = (
        T._of(Product(0, {Subsampled(noise, size, rate, unit): 2})),
        (noise, size, rate, unit),
    )
    for epsilon in (0.0, 0.3):
        with mp.workdps(50):
            value = convolved.together(one, (one,), mpf(epsilon))
        low, high = whole.delta_bounds(epsilon)
        assert mpf(low) <= value * (1 + mpf("1e-15")) <= mpf(high) * (1 + mpf("2e-15"))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("sigma", "rate", "count", "most"), [(6.0, 2e-4, 10, 0.0146), (1.0, 1e-5, 100, 0.57)]
)
def test_few_uses_of_few_units_have_at_most_the_epsilon_of_renyi_orders(
    sigma, rate, count, most, unit
):
    """Where no inversion is accurate enough; it was infinite, and 63."""
    function = T.subsampled_gaussian(sigma, rate, unit=unit).power(count)
    assert function.epsilon(1e-7) <= most


def test_the_subsampled_mechanism_loses_at_most_the_whole_one():
    one = T.subsampled_gaussian(1.0, 0.3, unit="removed")
    assert one <= T.gaussian(1.0)
    assert one.inverse() <= T.gaussian(1.0)
    assert not T.gaussian(1.0) <= one
    assert T.subsampled_gaussian(2.0, 1.0, unit="added") == T.gaussian(0.5)
    assert T.subsampled_gaussian(2.0, 0.0, unit="added") == T.identity()
    assert T.subsampled_laplace(0.5, 1.0, unit="removed") == T.laplace(0.5)
    assert one.inverse() == T.subsampled_gaussian(1.0, 0.3, unit="added")
