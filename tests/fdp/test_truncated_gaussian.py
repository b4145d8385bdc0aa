"""Gaussian noise that is cut off, against big floats."""

from fractions import Fraction
from math import inf, nextafter

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.truncated_gaussian import LEAST_BOUND, MOST_BOUND, TruncatedGaussian

T = oc.TradeoffFunction
PAIRS = [  # shift and bound, in scales
    (1.0, 4.0), (1.0, 1.0), (1.0, 0.75), (1.5, 0.76), (0.1, 6.0), (1e-4, 6.0), (5.0, 3.0),
    (1e-3, 1e-3), (1.9e-3, 1e-3), (20.0, MOST_BOUND), (70.0, MOST_BOUND), (0.01, MOST_BOUND),
]  # fmt: skip


def points(f):
    top = f.largest_loss
    near = [top, nextafter(top, 0.0), nextafter(top, inf), top * (1 - 1e-9)]
    inner = [0.0, 1e-12, top / 7, top / 2, top * 0.99]
    return np.array([*inner, *near, *(-one for one in (*inner[1:], *near)), 3 * top, -700.0])


@pytest.mark.parametrize(("shift", "bound"), PAIRS)
def test_the_profile_is_that_of_the_best_threshold(exact, shift, bound):
    f = TruncatedGaussian(shift, bound)
    at = points(f)
    low, high = f.profile(at)
    with mp.workdps(400):
        for epsilon, one, other in zip(at, low, high, strict=True):
            value = exact.cut_delta("gaussian", shift, bound, epsilon)
            assert mpf(one) <= value <= mpf(other), (epsilon, one, other, value)
            assert other - one <= 1e-7 * other
        infinite = exact.cut_delta("gaussian", shift, bound, 1e4)
        assert infinite <= f.infinite <= infinite * (1 + 4 * f.mass_error)
        assert f.largest_loss_lower <= shift * (mpf(bound) - mpf(shift) / 2) <= f.largest_loss
        assert f.largest_loss <= f.largest_loss_lower * (1 + 1e-14)


@pytest.mark.parametrize(("shift", "bound"), [*PAIRS[:5], PAIRS[7]])
@pytest.mark.parametrize("tau", [0.01, 40.0])
def test_the_characteristic_function_is_that_of_a_quadrature(exact, shift, bound, tau):
    f = TruncatedGaussian(shift, bound)
    step = 0.7 / f.largest_loss
    made = f.transform(tau, step, 9)
    with mp.workdps(30):
        whole = exact.cut_mgf("gaussian", shift, bound, tau)
        taus = np.array([tau, -0.5])
        assert abs(mp.log(whole) - mpf(f.log_mgf(taus)[0])) <= f.mgf_error(taus)[0]
        for j in (1, 8):
            value = exact.cut_mgf("gaussian", shift, bound, mp.mpc(tau, j * mpf(step))) / whole
            assert abs(value - mp.mpmathify(made.values[j])) <= made.error
            assert mp.log(abs(value)) <= f.log_decay(tau, np.array([j * step]))[0]


def test_two_are_an_integral_over_the_loss_of_one(exact):
    shift, bound = 0.8, 3.0
    f = T.truncated_gaussian(1.0, bound, shift)
    with mp.workdps(30):
        a, r = mpf(shift), mpf(bound)
        front = 1 / (mp.sqrt(2 * mp.pi) * mp.erf(r / mp.sqrt(2)))
        top = a * (r - a / 2)

        def two(epsilon):
            def at(x):
                rest = exact.cut_delta("gaussian", a, r, epsilon - (a * a / 2 - a * x))
                return front * mp.exp(-x * x / 2) * rest

            kinks = [a / 2 - (epsilon - sign * top) / a for sign in (-1, 1)]
            cuts = sorted({a - r, r, *(x for x in kinks if a - r < x < r)})
            return mpf(exact.cut_delta("gaussian", a, r, 1e4)) + mp.quad(at, cuts)

        for epsilon in (-0.7, 0.0, 0.3, 0.9, 3.0):
            low, high = f.power(2).delta_bounds(epsilon)
            assert mpf(low) <= two(mpf(epsilon)) <= mpf(high)
            assert high - low <= 1e-3 * high


def test_far_out_the_cut_does_not_matter():
    f, noise = T.truncated_gaussian(2.0, 20.0).power(50), T.gaussian(0.5).power(50)
    assert f.epsilon(1e-6) == pytest.approx(noise.epsilon(1e-6), rel=1e-5)
    assert T.truncated_gaussian(2.0, 1e9) == T.truncated_gaussian(2.0, 72.0)


@pytest.mark.parametrize("scale", [3.0, 7.0, 0.3])
def test_parameters_are_rounded_outward(scale):
    f = T.truncated_gaussian(scale, 5.1)._product.single
    exact = 1 / Fraction(scale), Fraction(5.1) / Fraction(scale)
    assert Fraction(f.mu) >= exact[0] > Fraction(nextafter(f.mu, 0.0))
    assert Fraction(f.bound) <= exact[1] < Fraction(nextafter(f.bound, inf))


def test_a_tighter_cut_and_a_larger_shift_lose_more():
    f = T.truncated_gaussian(1.0, 5.0, 0.5)
    at = np.linspace(-3.0, 3.0, 41)
    for worse in (T.truncated_gaussian(1.0, 4.0, 0.5), T.truncated_gaussian(1.0, 5.0, 0.6)):
        assert np.all(f.delta(at) <= worse.delta(at))
        assert f <= worse
        assert not worse <= f
    assert T.truncated_gaussian(1.0, 5.0, 0.5).group(3) == T.truncated_gaussian(1.0, 5.0, 1.5)
    assert f.group(20) == T.worst()


def test_what_is_shared_by_no_outcome_has_no_privacy():
    assert T.truncated_gaussian(1.0, 0.5) == T.worst()
    assert T.truncated_gaussian(1.0, nextafter(0.5, 1.0)).delta(0.0) > 1 - 1e-15
    with pytest.raises(InvalidValueError, match="bound .*at least 0.001 times scale"):
        T.truncated_gaussian(1.0, LEAST_BOUND / 2, 1e-5)
    with pytest.raises(InvalidValueError, match="sensitivity .*at least 1e-09 times scale"):
        T.truncated_gaussian(1.0, 1.0, 1e-10)
