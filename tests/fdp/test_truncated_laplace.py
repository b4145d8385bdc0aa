"""Laplace noise that is cut off, against big floats."""

from fractions import Fraction
from math import inf, nextafter

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.truncated_laplace import LEAST_BOUND, MOST_BOUND, TruncatedLaplace

T = oc.TradeoffFunction
PAIRS = [  # shift and bound, in scales
    (0.5, 10.0), (1.0, 1.0), (1.0, 0.75), (1.5, 0.76), (0.1, 30.0), (1e-9, 20.0), (5.0, 3.0),
    (1e-6, 1e-6), (20.0, 600.0), (1e-9, MOST_BOUND), (1200.0, MOST_BOUND), (649.0, MOST_BOUND),
]  # fmt: skip


def points(f):
    top = f.largest_loss
    near = [top, nextafter(top, 0.0), nextafter(top, inf), top * (1 - 1e-9)]
    inner = [0.0, 1e-12, top / 7, top / 2, top * 0.99]
    return np.array([*inner, *near, *(-one for one in (*inner[1:], *near)), 3 * top, -700.0])


@pytest.mark.parametrize(("shift", "bound"), PAIRS)
def test_the_profile_is_that_of_the_best_threshold(exact, shift, bound):
    f = TruncatedLaplace(shift, bound)
    at = points(f)
    low, high = f.profile(at)
    with mp.workdps(400):
        for epsilon, one, other in zip(at, low, high, strict=True):
            value = exact.cut_delta("laplace", shift, bound, epsilon)
            assert mpf(one) <= value <= mpf(other), (epsilon, one, other, value)
            assert other - one <= 1e-11 * other
        infinite = exact.cut_delta("laplace", shift, bound, 1e4)
        assert infinite <= f.infinite <= infinite * (1 + 4 * f.mass_error)
        assert f.largest_loss_lower <= min(mpf(shift), 2 * mpf(bound) - shift) <= f.largest_loss
        assert f.largest_loss <= f.largest_loss_lower * (1 + 1e-14)


@pytest.mark.parametrize(("shift", "bound"), [*PAIRS[:5], PAIRS[7]])
@pytest.mark.parametrize("tau", [0.01, 40.0])
def test_the_characteristic_function_is_that_of_a_quadrature(exact, shift, bound, tau):
    f = TruncatedLaplace(shift, bound)
    step = 0.7 / shift
    made = f.transform(tau, step, 9)
    with mp.workdps(30):
        whole = exact.cut_mgf("laplace", shift, bound, tau)
        taus = np.array([tau, -0.5])
        assert abs(mp.log(whole) - mpf(f.log_mgf(taus)[0])) <= f.mgf_error(taus)[0]
        for j in (1, 8):
            value = exact.cut_mgf("laplace", shift, bound, mp.mpc(tau, j * mpf(step))) / whole
            assert abs(value - mp.mpmathify(made.values[j])) <= made.error
            assert mp.log(abs(value)) <= f.log_decay(tau, np.array([j * step]))[0]


def test_two_are_an_integral_over_the_loss_of_one(exact):
    shift, bound = 0.8, 6.0
    f = T.truncated_laplace(1.0, bound, shift)
    with mp.workdps(30):
        a, r = mpf(shift), mpf(bound)
        front = 1 / (2 * (1 - mp.exp(-r)))
        atom = -mp.expm1(a - r) * front

        def two(epsilon):
            def rest(loss):
                return exact.cut_delta("laplace", a, r, epsilon - loss)

            cuts = sorted({-a, a, *(x for x in (epsilon - a, epsilon + a) if -a < x < a)})
            inner = mp.quad(lambda loss: front / 2 * mp.exp((loss - a) / 2) * rest(loss), cuts)
            ends = atom * (rest(a) + mp.exp(-a) * rest(-a))
            return mpf(exact.cut_delta("laplace", a, r, 1e4)) + inner + ends

        for epsilon in (-0.7, 0.0, 0.3, 0.9, 1.5):
            low, high = f.power(2).delta_bounds(epsilon)
            assert mpf(low) <= two(mpf(epsilon)) <= mpf(high)
            assert high - low <= 1e-3 * high


def test_far_out_the_cut_does_not_matter():
    f, noise = T.truncated_laplace(2.0, 1300.0).power(50), T.laplace(0.5).power(50)
    assert f.epsilon(1e-6) == pytest.approx(noise.epsilon(1e-6), rel=1e-5)
    assert T.truncated_laplace(2.0, 1e9) == T.truncated_laplace(2.0, 1300.0)


def test_delta_is_the_known_one():
    """As in the literature: e^-r (e^a - 1) / (2 (1 - e^-r))."""
    found = T.truncated_laplace(2.0, 20.0).delta(0.5)
    assert found == pytest.approx(np.exp(-10) * np.expm1(0.5) / (2 * -np.expm1(-10.0)), rel=1e-12)
    assert T.truncated_laplace(2.0, 20.0).epsilon(found) == 0.5


@pytest.mark.parametrize("scale", [3.0, 7.0, 0.3])
def test_parameters_are_rounded_outward(scale):
    f = T.truncated_laplace(scale, 5.1)._product.single
    exact = 1 / Fraction(scale), Fraction(5.1) / Fraction(scale)
    assert Fraction(f.epsilon) >= exact[0] > Fraction(nextafter(f.epsilon, 0.0))
    assert Fraction(f.bound) <= exact[1] < Fraction(nextafter(f.bound, inf))


def test_a_tighter_cut_and_a_larger_shift_lose_more():
    f = T.truncated_laplace(1.0, 5.0, 0.5)
    at = np.linspace(-1.0, 1.0, 41)
    for worse in (T.truncated_laplace(1.0, 4.0, 0.5), T.truncated_laplace(1.0, 5.0, 0.6)):
        assert np.all(f.delta(at) <= worse.delta(at))
        assert f <= worse
        assert not worse <= f
    assert T.truncated_laplace(1.0, 5.0, 0.5).group(3) == T.truncated_laplace(1.0, 5.0, 1.5)
    assert f.group(20) == T.worst()


def test_what_is_shared_by_no_outcome_has_no_privacy():
    assert T.truncated_laplace(1.0, 0.5) == T.worst()
    assert T.truncated_laplace(1.0, nextafter(0.5, 1.0)).delta(0.0) > 1 - 1e-15
    with pytest.raises(InvalidValueError, match="bound .*at least 1e-06 times scale"):
        T.truncated_laplace(1.0, LEAST_BOUND / 2, 1e-8)
    with pytest.raises(InvalidValueError, match="sensitivity .*at least 1e-09 times scale"):
        T.truncated_laplace(1.0, 1.0, 1e-10)
