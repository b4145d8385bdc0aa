"""The Gaussian family against big floats."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.exact import Theta
from opendp_concurrent.fdp.function import TradeoffFunction as T

MUS = [1e-12, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 30.0]


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("sigmas", [-3.0, -0.5, 0.0, 0.5, 1.0, 6.0, 20.0, 36.0])
def test_bounds_contain_the_exact_value(mu, sigmas, contains):
    contains([("gaussian", (mu,), 1)], [mu * (sigmas + mu / 2), mu * (sigmas - mu / 2)])


@pytest.mark.parametrize("mu", [1e-6, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-30, 1e-6, 0.01, 0.3])
def test_epsilon_lies_between_its_bounds_and_they_are_close(mu, delta, contains):
    found = contains([("gaussian", (mu,), 1)], [], [delta]).epsilon_bounds(delta)
    assert found.width <= 1e-6 * found.upper


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-200, 1e-150, 1e-20, 1e100, 1e140])
@pytest.mark.parametrize("epsilon", [-1e6, -1.0, 0.0, 1e-300, 1.0, 1e6])
@pytest.mark.filterwarnings("error")
def test_extreme_scales_are_bounded_without_a_warning(mu, epsilon):
    bounds = T.gaussian(mu).delta_bounds(epsilon)
    assert 0.0 <= bounds.lower <= bounds.upper <= 1.0
    if mu < 1.0:
        flat = -math.expm1(min(epsilon, 0.0))
        assert bounds.lower <= flat * (1 + 1e-15) + 1e-19
        assert bounds.upper >= flat * (1 - 1e-15)
        assert bounds.upper <= flat + 1e-12 or epsilon < 0.0
    else:
        assert bounds.upper == 1.0


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 0.01, 0.0999, 0.1])
def test_narrow_ones_have_narrow_bounds(mu, contains):
    at = [0.0, mu * 1e-3, 0.3 * mu, mu, 3 * mu, 7 * mu]
    made = contains([("gaussian", (mu,), 1)], at)
    for epsilon in at:
        bounds = made.delta_bounds(epsilon)
        assert bounds.width <= 1e-3 * bounds.upper, epsilon


# --- the theta series of discrete Gaussians against sums over outcomes in big floats -------------


CASES = [(1.0, 1), (1.3, 2), (2.5, 1), (5.0, 3), (13.0, 1)]
TAUS = [0.01, 1.7, 60.0]


def enough(scale):
    """Digits with which sums that cancel are known, up to half the period for small scales."""
    return 40 + int(3 * scale * scale) if scale < 6.0 else 50


def moments(scale, shift):
    """E[e^(tL)] over outcomes around the tilted mode, for complex t."""
    digits = enough(scale)

    def moment(t):
        with mp.workdps(digits):
            v, middle = mpf(scale) ** 2, -int(mp.re(t) * shift)
            reach = int(mp.sqrt(5 * digits) * scale) + 5
            near = range(middle - reach, middle + reach + 1)
            terms = (
                mp.exp(-(mpf(x) ** 2) / (2 * v) + t * (shift - 2 * x) * shift / (2 * v))
                for x in near
            )
            whole = mp.fsum(mp.exp(-(mpf(x) ** 2) / (2 * v)) for x in range(-reach, reach + 1))
            return mp.fsum(terms) / whole

    return moment


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize(("scale", "shift"), CASES)
def test_values_logarithms_and_cumulants_are_within_their_errors(scale, shift, tau):
    one, moment = Theta(scale, shift), moments(scale, shift)
    base = moment(mpf(tau))
    value, error = one.log_mgf(np.array([tau])), one.mgf_error(np.array([tau]))
    with mp.workdps(40):
        assert abs(mp.log(base) - mpf(float(value[0]))) <= mpf(float(error[0]))
    assert error[0] <= 1e-12 * (1 + abs(value[0]))
    wide = (one.period / 7, one.period / 2) if scale < 6.0 else ()
    for step in (0.3 / shift, *wide):
        transform, (logs, errors) = one.transform(tau, step, 5), one.logs(tau, step, 5)
        assert transform.error <= 1e-10
        for at in range(5):
            with mp.workdps(enough(scale)):
                exact = moment(mpf(tau) + 1j * (mpf(step) * at)) / base
                assert abs(exact - mp.mpc(complex(transform.values[at]))) <= transform.error
                power = mp.exp(mp.mpc(complex(logs[at])))
                allowed = float(errors[at]) + 2**-52 * abs(logs[at])
                assert abs(exact - power) <= abs(power) * allowed + mpf(10) ** -40
