"""The theta series of discrete Gaussians against sums over outcomes in big floats."""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.theta import Theta

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


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize(("scale", "shift"), CASES[:4])
def test_the_bound_holds_and_falls_up_to_half_the_period_and_recurs(scale, shift, tau):
    one, moment = Theta(scale, shift), moments(scale, shift)
    base, shares = moment(mpf(tau)), [0.0, 1e-3, 0.1, 0.24, 0.26, 0.4, 0.49, 0.4999]
    bounds = one.log_decay(tau, np.array(shares) * one.period)
    assert np.all(np.diff(bounds) <= 0.0)
    assert bounds[0] == 0.0
    # where neighbours do not matter it is that of the Gaussian
    assert bounds[2] == pytest.approx(-((0.1 * one.period) ** 2) * one.variance / 2, rel=1e-3)
    for share, bound in zip(shares, bounds.tolist(), strict=True):
        for turns in (0, 2, -1):
            with mp.workdps(enough(scale)):
                period = 2 * mp.pi * mpf(scale) ** 2 / shift
                exact = abs(moment(mpf(tau) + 1j * (period * (mpf(share) + turns))) / base)
                assert mp.log(exact) <= bound + 1e-9


def test_the_series_is_below_an_upper_bound_at_half_a_period_only():
    """Two equal terms meet there: their sum is bounded by twice the Gaussian."""
    one = Theta(1.0, 1)
    (bound,) = one.log_decay(0.5, np.array([one.period / 2]))
    assert bound == pytest.approx(np.log(2.0) - np.pi**2 / 2, abs=1e-7)
