"""The least scale of noise within a target."""

import mpmath as mp
import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.fdp.sandwich import sandwich

from .conftest import gaussian_delta

T, Session = oc.TradeoffFunction, oc.fdp.Session


@pytest.mark.parametrize("tolerance", [1e-4, 1e-3, 0.1])
def test_the_smallest_scale_of_gaussian_noise_is_that_of_the_closed_form(tolerance):
    calls = []

    def loss(scale):
        calls.append(scale)
        return T.gaussian(1 / scale).power(100)

    found = oc.fdp.smallest_sigma(loss, 1.0, 1e-6, tolerance=tolerance)
    with mp.workdps(30):
        assert gaussian_delta(10 / found, 1.0) <= 1e-6
        assert gaussian_delta(10 * (1 + tolerance) * (1 + 1e-9) / found, 1.0) > 1e-6
    assert len(calls) <= 25


def test_a_target_that_all_meet_gives_the_end_of_the_bounds():
    with pytest.warns(UserWarning, match="least scale"):
        found = oc.fdp.smallest_sigma(lambda s: T.laplace(1 / s), 1.0, 0.0, bounds=(2.0, 1e300))
    assert found == 2.0
    assert oc.fdp.smallest_sigma(lambda s: T.laplace(1 / s), 1.0, 0.0, bounds=(0.5, 4.0)) < 1.002
    wide = oc.fdp.smallest_sigma(lambda s: T.laplace(1 / s), 1e-200, 0.0, bounds=(1e-300, 1e300))
    assert 1e200 * (1 - 1e-12) <= wide <= 1.001 * 1e200 * (1 + 1e-12)


def test_what_is_found_is_within_the_target_also_where_losses_rise_and_fall():
    def loss(scale):
        return T.gaussian(0.1 if 0.5 < scale < 0.6 or scale > 40.0 else 1.0)

    assert loss(oc.fdp.smallest_sigma(loss, 1.0, 1e-6)) == T.gaussian(0.1)


def test_nothing_within_the_target_is_refused():
    with pytest.raises(InvalidValueError, match=r"bounds \(0.1, 10.0\) .*not|pass wider bounds"):
        oc.fdp.smallest_sigma(lambda s: T.gaussian(1 / s), 0.01, 1e-9, bounds=(0.1, 10.0))


@pytest.mark.parametrize(
    ("rate", "steps", "epsilon"),
    [(1e-3, 100, 0.1), pytest.param(1e-4, 300, 0.01, marks=pytest.mark.slow), (1e-6, 1000, 1e-4)],
)
def test_noise_at_small_rates_is_within_one_percent(rate, steps, epsilon):
    """The answer meets the target, and one that is 1 % smaller does not."""

    def loss(scale):
        return Session.subsampled_gaussian(scale, rate).power(steps)

    sigma = oc.fdp.smallest_sigma(loss, epsilon, 1e-7)
    assert loss(sigma).delta(epsilon) <= 1e-7
    pairs = sandwich(loss(sigma / 1.01).removed.product.counted, 1e-7, 0.0125)
    assert float(pairs.profile(np.array([epsilon])).lower[0]) > 1e-7
