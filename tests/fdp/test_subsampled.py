"""Poisson subsampling against masses, integrals and an inversion of its own."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.product import Product
from opendp_concurrent.fdp.subsampled import Subsampled

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
    st.floats(1e-9, 0.999),
    st.sampled_from(UNITS),
    st.floats(-3.0, 9.0),
)
@settings(max_examples=200)
def test_a_single_use_is_between_its_bounds_anywhere(exact, noise, size, rate, unit, epsilon):
    bounds = made(noise, size, rate, unit).delta_bounds(epsilon)
    with mp.workdps(80):
        value = exact.subsampled_delta(noise, size, rate, unit, epsilon)
    assert mpf(bounds.lower) <= max(value, 0) <= mpf(bounds.upper)


@pytest.mark.parametrize("unit", UNITS)
def test_the_largest_loss_bounds_the_losses(unit):
    for noise, size in NOISES:
        loss = Subsampled(noise, size, 0.25, unit).largest_loss
        if unit == "added":
            assert 0.0 <= loss + math.log(0.75) <= 1e-13
        elif noise == "laplace":
            assert 0.0 <= loss - math.log(0.75 + 0.25 * math.exp(size)) <= 1e-13
        else:
            assert loss == math.inf


# --- several uses ---------------------------------------------------------------------------

CHECKED = [  # integrated by the function below; sigma, rate, count, delta, ε of both directions
    (1.0, 0.01, 1000, 1e-5, 1.82823666, 1.41666194),
    (0.8, 256 / 60000, 14040, 1e-5, 4.54600883, 3.9011420),
    (2.0, 0.05, 400, 1e-6, 2.55575274, 2.23899126),
    (1.0, 0.1, 100, 1e-6, 8.058608, 4.3341986),
    (5.0, 0.5, 100, 1e-8, 5.961293, 5.5926158),
]


def inverted_delta(sigma, rate, count, unit, epsilon):
    """δ by inversion in extended precision: other nodes, other steps, and another path.

    Relative errors are below 1e-12 where the characteristic function has decayed at the end.
    """
    mu = 1 / np.longdouble(sigma)
    sign = 1 if unit == "removed" else -1
    points = np.longdouble(1.0) * np.linspace(-14.0, 60.0, 9001)
    losses = np.log1p(np.longdouble(rate) * np.expm1(mu * points - mu * mu / 2))

    def logs(tau):
        return (1 + tau if sign > 0 else -tau) * losses - points * points / 2

    def cumulant(tau):
        exponents = logs(tau)
        top = np.max(exponents)
        step = (points[1] - points[0]) / np.sqrt(2 * np.pi * np.longdouble(1))
        return count * (top + np.log(np.sum(np.exp(exponents - top)) * step))

    taus = np.geomspace(0.02, 60.0, 40)
    heights = [float(cumulant(tau)) - tau * epsilon - math.log(tau * (tau + 1)) for tau in taus]
    tau = float(taus[int(np.argmin(heights))]) * 0.9
    exponents = logs(np.longdouble(tau))
    weights = np.exp(exponents - np.max(exponents))
    weights /= np.sum(weights)
    keep = weights > 1e-22
    weights, kept = weights[keep], losses[keep]
    spread = float(np.sqrt(count * np.sum(weights * (kept - np.sum(weights * kept)) ** 2)))
    end, step = 14.0 / spread, min(0.05 / spread, 0.02 * tau)
    for _ in range(12):
        last = abs(np.sum(weights * np.exp(1j * np.longdouble(end) * kept))) ** count
        if last < 1e-17:
            break
        end *= 1.6
    assert last < 1e-14, "not decayed"
    total, size = np.longdouble(0.0), int(end / step)
    for start in range(0, size, 400):
        omega = np.longdouble(step) * np.arange(start, min(size, start + 400))
        rho = np.exp(sign * 1j * np.outer(omega, kept)) @ weights
        t = tau + 1j * omega
        values = np.real(rho**count * np.exp(-1j * omega * np.longdouble(epsilon)) / (t * (t + 1)))
        total += np.sum(values) - (values[0] / 2 if start == 0 else 0)
    return float(np.exp(cumulant(tau) - tau * epsilon) * total * step / np.pi)


@pytest.mark.parametrize(("sigma", "rate", "count", "delta", "removed", "added"), CHECKED)
def test_known_values_are_inside_narrow_brackets(sigma, rate, count, delta, removed, added):
    for unit, value in (("removed", removed), ("added", added)):
        bounds = T.subsampled_gaussian(sigma, rate, unit=unit).power(count).epsilon_bounds(delta)
        assert bounds.width <= 1e-6 * bounds.upper
        assert abs(bounds.upper - value) <= 1e-7 * value + 1e-8
        assert inverted_delta(sigma, rate, count, unit, bounds.lower) >= delta * (1 - 1e-11)
        assert inverted_delta(sigma, rate, count, unit, bounds.upper) <= delta * (1 + 1e-11)


def random_case(seed):
    """Sigma, rate and count that the inversion above can do, from seeded draws."""
    draw = np.random.default_rng(seed)
    sigma, rate = float(np.exp(draw.uniform(-0.7, 2.0))), float(np.exp(draw.uniform(-5.5, -0.1)))
    least = 20 + 2 / rate
    return sigma, rate, int(least * np.exp(draw.uniform(0.0, 3.0))), UNITS[seed % 2]


def check_random(seed):
    sigma, rate, count, unit = random_case(seed)
    whole = T.subsampled_gaussian(sigma, rate, unit=unit).power(count)
    delta = 10.0 ** -(3 + seed % 7)
    bounds = whole.epsilon_bounds(delta)
    assert bounds.width <= 1e-4 * bounds.upper, (sigma, rate, count, unit, bounds)
    for epsilon in bounds:
        value, found = (
            inverted_delta(sigma, rate, count, unit, epsilon),
            whole.delta_bounds(epsilon),
        )
        assert found.lower * (1 - 1e-10) <= value <= found.upper * (1 + 1e-10)
    assert inverted_delta(sigma, rate, count, unit, bounds.lower) >= delta * (1 - 1e-10)
    assert inverted_delta(sigma, rate, count, unit, bounds.upper) <= delta * (1 + 1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_brackets_contain_an_inversion_in_extended_precision(seed):
    check_random(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 320))
def test_brackets_contain_an_inversion_in_extended_precision_at_length(seed):
    check_random(seed)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("noise", "size", "rate"), [("gaussian", 1.5, 0.2), ("laplace", 1.0, 0.3)])
def test_two_uses_are_an_integral_over_the_first(noise, size, rate, unit, exact):
    """δ of both is the mean of δ of one at ε less the loss of the other: by mpmath's rules."""
    whole = T._of(Product(0, {Subsampled(noise, size, rate, unit): 2}))
    m, q = mpf(size), mpf(rate)

    def ratio(x):
        u = m * x - m * m / 2 if noise == "gaussian" else min(max(2 * x - m, -m), m)
        return 1 - q + q * mp.exp(u)

    def plain(x):
        return mp.npdf(x) if noise == "gaussian" else mp.exp(-abs(x)) / 2

    for epsilon in (0.0, 0.3):

        def inner(x, epsilon=epsilon):
            r = ratio(x)
            loss = mp.log(r) if unit == "removed" else -mp.log(r)
            one = exact.subsampled_delta(noise, size, rate, unit, mpf(epsilon) - loss)
            return plain(x) * (r if unit == "removed" else 1) * max(one, 0)

        ends = [mpf(one) / 2 for one in range(-18, 22, 2)]
        if noise == "laplace":
            ends = [m * one / 8 for one in range(9)]
        with mp.workdps(25):
            value = mp.quad(inner, ends)
            if noise == "laplace":  # beyond, the losses are the extreme ones
                value += inner(mpf(0)) + inner(m)
        bounds = whole.delta_bounds(epsilon)
        assert float(bounds.lower) - 1e-9 <= value <= float(bounds.upper) + 1e-9, (epsilon, value)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("noise", "size"), NOISES)
def test_the_transform_is_an_integral(noise, size, unit):
    factor = Subsampled(noise, size, 0.1, unit)
    tau, step, count = 1.5, 3.0, 6
    found = factor.transform(tau, step, count)
    m, q = mpf(size), mpf("0.1") * 0 + mpf(0.1)

    def moment(z):
        def inner(x):
            u = m * x - m * m / 2 if noise == "gaussian" else 2 * x - m
            return (mp.npdf(x) if noise == "gaussian" else mp.exp(-x) / 2) * (
                1 - q + q * mp.exp(u)
            ) ** z

        if noise == "gaussian":
            return mp.quad(inner, range(-12, 25, 3))
        ends = [mp.exp(-e) / 2 * (1 - q + q * mp.exp(u)) ** z for e, u in ((0, -m), (m, m))]
        return mp.quad(inner, [m * one / 12 for one in range(13)]) + mp.fsum(ends)

    with mp.workdps(25):
        power = 1 + mpf(tau) if unit == "removed" else -mpf(tau)
        sign = 1 if unit == "removed" else -1
        whole = moment(power)
        (value,), (error,) = factor.log_mgf(np.array([tau])), factor.mgf_error(np.array([tau]))
        assert abs(mp.log(whole) - mpf(float(value))) <= mpf(float(error)) <= 1e-12
        for index, got in enumerate(found.values):
            exactly = moment(power + sign * 1j * mpf(step) * index) / whole
            assert abs(mp.mpc(complex(got)) - exactly) <= found.error <= 1e-10
            if index:
                decay = factor.log_decay(tau, np.array([step * index]))
                assert abs(exactly) <= mp.exp(mpf(float(decay[0])))


def test_coarse_bounds_hold_the_cumulants():
    """Where a quadrature would be too long, convexity gives both ends."""
    for unit in UNITS:
        for noise, size in NOISES:
            factor = Subsampled(noise, size, 0.05, unit)
            for tau in (0.25, 1.0, 6.0):
                upper, gap = factor.coarse(tau)
                value = float(factor.log_mgf(np.array([tau]))[0])
                assert upper - gap <= value <= upper


def test_the_subsampled_mechanism_loses_at_most_the_whole_one():
    one = T.subsampled_gaussian(1.0, 0.3, unit="removed")
    assert one <= T.gaussian(1.0)
    assert one.inverse() <= T.gaussian(1.0)
    assert not T.gaussian(1.0) <= one
    assert T.subsampled_gaussian(2.0, 1.0, unit="added") == T.gaussian(0.5)
    assert T.subsampled_gaussian(2.0, 0.0, unit="added") == T.identity()
    assert T.subsampled_laplace(0.5, 1.0, unit="removed") == T.laplace(0.5)
    assert one.inverse() == T.subsampled_gaussian(1.0, 0.3, unit="added")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rate": 1e-12}, "rate"),
        ({"rate": 1.5}, "rate"),
        ({"sigma": 0.01}, "approximate"),
        ({"sigma": 1e9}, "sigma"),
        ({"unit": "both"}, "Session"),
        ({"unit": True}, "unit"),
        ({"sampling": "without replacement"}, "dominating pair"),
    ],
)
def test_refusals_say_why(given, named):
    arguments = {"sigma": 1.0, "rate": 0.1, "unit": "removed", **given}
    with pytest.raises(InvalidValueError, match=named):
        T.subsampled_gaussian(**arguments)
