"""The theta series of discrete Gaussians against sums over outcomes in big floats."""

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.gaussian import Theta

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
