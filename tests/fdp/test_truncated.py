"""Noise that is cut off, against big floats."""

from fractions import Fraction
from math import inf, nextafter

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.truncated import BoundedNoise
from opendp_concurrent.fdp.truncated_gaussian import TruncatedGaussian
from opendp_concurrent.fdp.truncated_laplace import TruncatedLaplace

from . import convolved

T = oc.TradeoffFunction
KINDS = {"laplace": TruncatedLaplace, "gaussian": TruncatedGaussian}
MAKERS = {"laplace": T.truncated_laplace, "gaussian": T.truncated_gaussian}
WIDTHS = {"laplace": 1e-11, "gaussian": 1e-7}  # relative, of the bounds of one use
MOST = {"laplace": TruncatedLaplace.MOST, "gaussian": TruncatedGaussian.MOST}
PAIRS = {  # shift and bound, in scales
    "laplace": [
        (0.5, 10.0), (1.0, 1.0), (1.0, 0.75), (1.5, 0.76), (0.1, 30.0), (1e-6, 1e-6), (1e-9, 20.0),
        (5.0, 3.0), (20.0, 600.0), (1e-9, MOST["laplace"]), (1200.0, 650.0), (649.0, 650.0),
    ],
    "gaussian": [
        (1.0, 4.0), (1.0, 1.0), (1.0, 0.75), (1.5, 0.76), (0.1, 6.0), (1e-3, 1e-3), (1e-4, 6.0),
        (5.0, 3.0), (1.9e-3, 1e-3), (20.0, MOST["gaussian"]), (70.0, 36.0), (0.01, 36.0),
    ],
}  # fmt: skip
EVERY = [(kind, *pair) for kind, pairs in PAIRS.items() for pair in pairs]
SOME = [(kind, *pair) for kind, pairs in PAIRS.items() for pair in pairs[:6]]
both = pytest.mark.parametrize("kind", KINDS)


def points(f):
    top = f.largest_loss
    near = [top, nextafter(top, 0.0), nextafter(top, inf), top * (1 - 1e-9)]
    inner = [0.0, 1e-12, top / 7, top / 2, top * 0.99]
    return np.array([*inner, *near, *(-one for one in (*inner[1:], *near)), 3 * top, -700.0])


@pytest.mark.parametrize(("kind", "shift", "bound"), EVERY)
def test_the_profile_is_that_of_the_best_threshold(exact, kind, shift, bound):
    f = KINDS[kind](shift, bound)
    assert isinstance(f, BoundedNoise)
    at = points(f)
    low, high = f.profile(at)
    with mp.workdps(400):
        for epsilon, one, other in zip(at, low, high, strict=True):
            value = exact.cut_delta(kind, shift, bound, epsilon)
            assert mpf(one) <= value <= mpf(other), (epsilon, one, other, value)
            assert other - one <= WIDTHS[kind] * other
        infinite = exact.cut_delta(kind, shift, bound, 1e4)
        assert infinite <= f.infinite <= infinite * (1 + 4 * f.mass_error)
        a, reach = mpf(shift), 2 * mpf(bound) - shift
        largest = min(a, reach) if kind == "laplace" else a * reach / 2
        assert f.largest_loss_lower <= largest <= f.largest_loss
        assert f.largest_loss <= f.largest_loss_lower * (1 + 1e-14)


@pytest.mark.parametrize(("kind", "shift", "bound"), SOME)
@pytest.mark.parametrize("tau", [0.01, 40.0])
def test_the_characteristic_function_is_that_of_a_quadrature(exact, kind, shift, bound, tau):
    f = KINDS[kind](shift, bound)
    step = 0.7 / (shift if kind == "laplace" else f.largest_loss)
    made = f.transform(tau, step, 9)
    with mp.workdps(30):
        whole = exact.cut_mgf(kind, shift, bound, tau)
        taus = np.array([tau, -0.5])
        assert abs(mp.log(whole) - mpf(f.log_mgf(taus)[0])) <= f.mgf_error(taus)[0]
        for j in (1, 8):
            value = exact.cut_mgf(kind, shift, bound, mp.mpc(tau, j * mpf(step))) / whole
            assert abs(value - mp.mpmathify(made.values[j])) <= made.error


@pytest.mark.parametrize(("kind", "bound"), [("laplace", 6.0), ("gaussian", 3.0)])
def test_two_are_an_integral_over_the_loss_of_one(kind, bound):
    f, noise = MAKERS[kind](1.0, bound, 0.8), ("cut", kind, 0.8, bound)
    with mp.workdps(30):
        for epsilon in (-0.7, 0.0, 0.3, 0.9, 1.5, 3.0):
            low, high = f.power(2).delta_bounds(epsilon)
            assert mpf(low) <= convolved.together(noise, (noise,), mpf(epsilon)) <= mpf(high)
            assert high - low <= 1e-3 * high


@both
def test_far_out_the_cut_does_not_matter(kind):
    make, whole = MAKERS[kind], {"laplace": T.laplace, "gaussian": T.gaussian}[kind](0.5)
    f, noise = make(2.0, {"laplace": 1300.0, "gaussian": 20.0}[kind]).power(50), whole.power(50)
    assert f.epsilon(1e-6) == pytest.approx(noise.epsilon(1e-6), rel=1e-5)
    assert make(2.0, 1e9) == make(2.0, 2 * MOST[kind])


def test_delta_is_the_known_one():
    """As in the literature: e^-r (e^a - 1) / (2 (1 - e^-r))."""
    found = T.truncated_laplace(2.0, 20.0).delta(0.5)
    assert found == pytest.approx(np.exp(-10) * np.expm1(0.5) / (2 * -np.expm1(-10.0)), rel=1e-12)
    assert T.truncated_laplace(2.0, 20.0).epsilon(found) == 0.5


@both
@pytest.mark.parametrize("scale", [3.0, 7.0, 0.3])
def test_parameters_are_rounded_outward(kind, scale):
    f = MAKERS[kind](scale, 5.1).product.single
    shift = f.epsilon if kind == "laplace" else f.mu
    exact = 1 / Fraction(scale), Fraction(5.1) / Fraction(scale)
    assert Fraction(shift) >= exact[0] > Fraction(nextafter(shift, 0.0))
    assert Fraction(f.bound) <= exact[1] < Fraction(nextafter(f.bound, inf))


@both
def test_a_tighter_cut_and_a_larger_shift_lose_more(kind):
    make = MAKERS[kind]
    f, at = make(1.0, 5.0, 0.5), np.linspace(-3.0, 3.0, 41)
    for worse in (make(1.0, 4.0, 0.5), make(1.0, 5.0, 0.6)):
        assert np.all(f.delta(at) <= worse.delta(at))
        assert f <= worse
        assert not worse <= f
    assert f.group(3) == make(1.0, 5.0, 1.5)
    assert f.group(20) == T.worst()


@both
def test_what_is_shared_by_no_outcome_has_no_privacy(kind):
    make, (shift, bound) = MAKERS[kind], KINDS[kind].LEAST
    assert make(1.0, 0.5) == make(1.0, 1e-12) == T.worst()
    assert make(1.0, nextafter(0.5, 1.0)).delta(0.0) > 1 - 1e-15
    with pytest.raises(InvalidValueError, match=f"bound .*at least {bound:g} times scale"):
        make(1.0, bound / 2, bound / 100)
    with pytest.raises(InvalidValueError, match=f"sensitivity .*at least {shift:g} times scale"):
        make(1.0, 1.0, shift / 10)


@both
def test_nothing_is_shared_once_shift_and_bound_are_rounded(kind):
    """In exact numbers, the shift is below twice the bound by one part in 2^54."""
    scale, bound = 6.405920704482398, 0.8823814699152238
    assert MAKERS[kind](scale, bound, nextafter(2 * bound, 0.0)) == T.worst()
