"""Both directions of a session; and the least scale of noise within a target."""

import mpmath as mp
import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.fdp.sandwich import sandwich

from ..some import slow
from .conftest import gaussian_delta

T, Session = oc.TradeoffFunction, oc.fdp.Session


def test_the_worse_direction_decides():
    steps = Session.subsampled_gaussian(1.0, 0.01).power(1000)
    assert steps.epsilon(1e-5) == pytest.approx(steps.removed.epsilon(1e-5), rel=1e-6)
    assert steps.removed.epsilon(1e-5) > 1.2 * steps.added.epsilon(1e-5)
    at = np.array([0.0, 1.0])
    both = [np.asarray(one.delta(at)) for one in (steps.removed, steps.added)]
    assert steps.delta(at) == pytest.approx(np.maximum(*both), rel=1e-6)
    assert isinstance(steps.delta(1.0), float)


def test_directions_stay_apart():
    """One direction beside the other one would lose less than the worse of both."""
    one = T.subsampled_gaussian(1.0, 0.1, unit="removed")
    mixed = one.product.times(one.inverse().product)
    worse = Session(one, one.inverse()).power(2)
    assert mixed.epsilon(1e-3, 1e-6).upper < worse.epsilon(1e-3)
    for removed, added in ((one.inverse(), one), (one, one), (T.identity(), one)):
        with pytest.raises(InvalidValueError, match="must bound the direction"):
            Session(removed, added)


def test_symmetric_functions_count_in_both_directions():
    session = Session().compose(
        T.laplace(0.5), T.gaussian(0.3), Session.subsampled_laplace(0.5, 0.1)
    )
    assert session.removed.compose() == T.laplace(0.5).compose(
        T.gaussian(0.3), T.subsampled_laplace(0.5, 0.1, unit="removed")
    )
    assert session.added == session.removed.inverse()
    assert Session().epsilon(0.0) == 0.0


def test_one_direction_alone_is_refused():
    with pytest.raises(InvalidValueError, match=r"others\[1\].*one direction only"):
        Session().compose(T.pure(0.1), T.subsampled_gaussian(1.0, 0.1, unit="removed"))
    with pytest.raises(InvalidTypeError, match=r"others\[0\]"):
        Session().compose(0.5)
    with pytest.raises(InvalidTypeError, match="removed"):
        Session(0.5)


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
    [(1e-6, 1000, 1e-4), *slow([(1e-3, 100, 0.1), (1e-4, 300, 0.01)])],
)
def test_noise_at_small_rates_is_within_one_percent(rate, steps, epsilon):
    """The answer meets the target, and one that is 1 % smaller does not."""

    def loss(scale):
        return Session.subsampled_gaussian(scale, rate).power(steps)

    sigma = oc.fdp.smallest_sigma(loss, epsilon, 1e-7)
    assert loss(sigma).delta(epsilon) <= 1e-7
    pairs = sandwich(loss(sigma / 1.01).removed.product.counted, 1e-7, 0.02)
    assert float(pairs.profile(np.array([epsilon])).lower[0]) > 1e-7
