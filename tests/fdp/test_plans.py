"""The largest rate, the smallest scale and the most steps within a target."""

from math import erfc, exp, sqrt

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.fdp.sandwich import sandwich

T, Session = oc.TradeoffFunction, oc.fdp.Session


def gaussian_delta(mu, epsilon):
    root = sqrt(2.0)
    left, right = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return (erfc(left / root) - exp(epsilon) * erfc(right / root)) / 2


def counted(plan):
    def made(number):
        made.calls += 1
        return plan(number)

    made.calls = 0
    return made


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_the_rate_of_a_known_epsilon_is_found(tolerance):
    """theory: sigma 1, rate .01, 1,000 steps and delta 1e-5 have epsilon 1.8282367355."""
    plan = counted(lambda rate: Session.subsampled_gaussian(1.0, rate).power(1000))
    found = oc.fdp.largest_rate(plan, 1.8282367355, 1e-5, tolerance=tolerance)
    assert 0.01 / (1 + tolerance) <= found.value <= 0.01 * (1 + 1e-8)
    assert found.value < found.beyond <= found.value * (1 + tolerance)
    assert found.plan == plan(found.value)
    assert found.delta <= 1e-5
    assert found.plan.delta(1.8282367355) <= 1e-5
    assert found.evaluations == plan.calls - 1 <= 50


def test_the_smallest_scale_of_gaussian_noise_is_that_of_the_closed_form():
    found = oc.fdp.smallest_sigma(lambda s: T.gaussian(1 / s).power(100), 1.0, 1e-6, tolerance=1e-6)
    assert gaussian_delta(10 / found.value, 1.0) <= 1e-6 * (1 + 1e-9)
    assert gaussian_delta(10 / (found.value * (1 - 2e-6)), 1.0) > 1e-6
    assert found.beyond < found.value <= found.beyond * (1 + 1e-6)
    assert found.evaluations <= 50


def test_the_most_steps_are_exact():
    found = oc.fdp.most_steps(T.gaussian(0.01), 1.0, 1e-6, beside=T.gaussian(0.1))

    def total(count):
        return gaussian_delta(sqrt(count * 1e-4 + 0.01), 1.0)

    assert total(found.value) <= 1e-6 < total(found.value + 1)
    assert found.beyond == found.value + 1
    assert found.evaluations <= 85
    assert found.plan == Session().compose(T.gaussian(0.1), T.gaussian(0.01).power(found.value))


def test_no_step_and_very_many_steps():
    none = oc.fdp.most_steps(T.pure(1.0), 0.5, 0.0)
    assert (none.value, none.beyond, none.plan) == (0, 1, Session())
    assert oc.fdp.most_steps(T.pure(0.25), 1.0, 0.0).value == 4
    all_of_them = oc.fdp.most_steps(T.gaussian(1e-9), 1.0, 1e-3)
    assert (all_of_them.value, all_of_them.beyond) == (2**40, None)
    assert all_of_them.evaluations <= 85
    large = oc.fdp.most_steps(T.laplace(1e-9).power(2**52), 1.0, 1.0)
    assert large.value == 2


def test_what_is_beside_counts():
    def plan(rate):
        return Session.subsampled_gaussian(1.0, rate).power(1000)

    alone = oc.fdp.largest_rate(plan, 1.0, 1e-5, tolerance=0.05)
    beside = oc.fdp.largest_rate(plan, 1.0, 1e-5, tolerance=0.05, beside=T.laplace(0.1).power(5))
    assert beside.value < 0.9 * alone.value
    assert beside.plan == plan(beside.value).compose(T.laplace(0.1).power(5))


def test_a_target_that_all_meet_gives_the_end_of_the_bounds():
    rate = oc.fdp.largest_rate(lambda rate: Session.subsampled_laplace(0.1, rate), 1.0, 1e-5)
    assert (rate.value, rate.beyond) == (1.0, None)
    scale = oc.fdp.smallest_sigma(lambda s: T.laplace(1 / s), 1.0, 0.0, bounds=(2.0, 1e300))
    assert (scale.value, scale.beyond) == (2.0, None)
    wide = oc.fdp.smallest_sigma(lambda s: T.laplace(1 / s), 1e-200, 0.0, bounds=(1e-300, 1e300))
    assert wide.value == pytest.approx(1e200, rel=1e-3)


def test_what_cannot_be_told_is_not_claimed():
    """The bounds of a function that is only an upper bound never show that it exceeds."""

    def plan(rate):
        return T.mixture([rate, 1 - rate], [T.gaussian(1.0), T.laplace(0.1)])

    assert plan(0.5).upper_only
    found = oc.fdp.largest_rate(plan, 1.0, 1e-3, bounds=(1e-9, 0.5))
    assert found.beyond is None
    assert found.plan.delta(1.0) == found.delta <= 1e-3
    assert plan(found.value * 1.002).delta(1.0) > 1e-3


def test_what_is_found_is_within_the_target_also_where_losses_rise_and_fall():
    def plan(scale):
        return T.gaussian(0.1 if 0.5 < scale < 0.6 or scale > 40.0 else 1.0)

    found = oc.fdp.smallest_sigma(plan, 1.0, 1e-6)
    assert found.delta <= 1e-6
    assert plan(found.value) == T.gaussian(0.1)


def test_nothing_within_the_target_is_refused():
    def plan(rate):
        return T.gaussian(rate)

    with pytest.raises(InvalidValueError, match=r"bounds \(1e-09, 1.0\).*least was not shown"):
        oc.fdp.largest_rate(plan, 0.1, 1e-6, beside=T.pure(1.0))
    with pytest.raises(InvalidValueError, match="bounds .*largest was not shown"):
        oc.fdp.smallest_sigma(lambda s: T.gaussian(1 / s), 0.01, 1e-9, bounds=(0.1, 10.0))
    with pytest.raises(InvalidValueError, match="beside must be within"):
        oc.fdp.most_steps(T.pure(0.1), 0.5, 0.0, beside=T.pure(1.0))


def test_wrong_arguments_are_named():
    one = T.subsampled_gaussian(1.0, 0.1, unit="removed")
    with pytest.raises(InvalidValueError, match="step .*one direction only"):
        oc.fdp.most_steps(one, 1.0, 1e-5)
    with pytest.raises(InvalidValueError, match="plan .*one direction only"):
        oc.fdp.largest_rate(lambda rate: one, 1.0, 1e-5)
    with pytest.raises(InvalidTypeError, match="plan must be a Session"):
        oc.fdp.largest_rate(lambda rate: rate, 1.0, 1e-5)
    with pytest.raises(InvalidTypeError, match="plan must be callable"):
        oc.fdp.largest_rate(T.pure(1.0), 1.0, 1e-5)
    for bounds in ((0.5, 0.1), (0.5, 1.5), (0.5, 0.5)):
        with pytest.raises(InvalidValueError, match="bounds"):
            oc.fdp.largest_rate(lambda rate: T.pure(rate), 1.0, 1e-5, bounds=bounds)
    for tolerance in (1e-9, 2.0):
        with pytest.raises(InvalidValueError, match="tolerance"):
            oc.fdp.largest_rate(lambda rate: T.pure(rate), 1.0, 1e-5, tolerance=tolerance)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_losses_fall_with_the_scale_of_the_noise_on_sampled_units(noise):
    for scale in (0.6, 1.0):
        made = getattr(Session, f"subsampled_{noise}")
        sizes = (scale, 1.2 * scale) if noise == "gaussian" else (1 / scale, 1 / (1.2 * scale))
        small, large = (made(size, 0.2) for size in sizes)
        for epsilon in (-0.5, 0.0, 0.3, 1.5):
            assert large.removed.delta_bounds(epsilon).lower <= small.removed.delta(epsilon)
            assert large.added.delta_bounds(epsilon).lower <= small.added.delta(epsilon)


def certain_delta(session, epsilon):
    """A lower bound on δ, by narrower brackets than those of a search."""
    pairs = sandwich(session.removed.product.counted, 1e-7, 0.0125)
    return float(pairs.profile(np.array([epsilon])).lower[0])


@pytest.mark.parametrize(
    ("rate", "steps", "epsilon"),
    [(1e-3, 100, 0.1), pytest.param(1e-4, 300, 0.01, marks=pytest.mark.slow), (1e-6, 1000, 1e-4)],
)
def test_plans_at_small_rates_are_within_one_percent(rate, steps, epsilon):
    """Each answer meets the target, and one that is 1 % further does not."""
    make = oc.fdp.Session.subsampled_gaussian
    sigma = oc.fdp.smallest_sigma(lambda s: make(s, rate).power(steps), epsilon, 1e-7)
    assert sigma.plan.delta(epsilon) <= 1e-7
    assert certain_delta(make(sigma.value / 1.01, rate).power(steps), epsilon) > 1e-7
    found = oc.fdp.largest_rate(lambda q: make(sigma.value, q).power(steps), epsilon, 1e-7)
    assert found.plan.delta(epsilon) <= 1e-7
    assert certain_delta(make(sigma.value, found.value * 1.01).power(steps), epsilon) > 1e-7
    most = oc.fdp.most_steps(make(sigma.value, rate), epsilon, 1e-7)
    assert most.plan.delta(epsilon) <= 1e-7
    further = int(most.value * 1.01) + 1
    assert certain_delta(make(sigma.value, rate).power(further), epsilon) > 1e-7
