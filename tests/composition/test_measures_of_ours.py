"""Measures that OpenDP lacks, in every constructor, in ``check``, ``>>``, searches and contexts."""

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)

T = oc.TruncatedConcentrated
SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


@dataclass
class Case:
    """A measure, two losses, what they compose to, and a loss that is too large after them."""

    measure: Any
    losses: tuple[Any, Any]
    total: Any
    more: Any


CASES = {
    "renyi": Case(lambda: oc.fixed_renyi_divergence(8.0), (0.25, 0.5), 0.75, 0.125),
    "tcdp": Case(
        lambda: oc.truncated_concentrated_divergence(4.0),
        (T(0.25, 8.0), T(0.5, 16.0)),
        T(0.75, 8.0),
        T(0.125, 8.0),
    ),
    "gdp": Case(oc.gaussian_tradeoff, (3.0, 4.0), 5.0, 0.5),
}
every = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def case(name):
    return CASES[name]


def measurement(space, measure, loss):
    return dp.m.make_user_measurement(*space, measure, len, lambda d_in: loss)


KEEPS_NONE = "identifier" not in signature(dp.user_divergence).parameters
with_descriptors = pytest.mark.skipif(KEEPS_NONE, reason="OpenDP 0.14 keeps no descriptors")


@with_descriptors
def test_another_measure_is_refused_by_name(space):
    root = oc.make_concurrent_odometer(*space, oc.fixed_renyi_divergence(8.0))([1])
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        root(measurement(space, oc.fixed_renyi_divergence(9.0), 1.0))
    with pytest.raises(UnsupportedMeasureError, match="GaussianTradeoff"):
        oc.make_concurrent_odometer(*space, dp.user_divergence("mine", 8.0))


def test_a_launch_with_too_small_an_omega_is_refused(space):
    measure = oc.truncated_concentrated_divergence(8.0)
    root = oc.make_concurrent_odometer(*space, measure)([1])
    root.privacy_loss(1)
    with pytest.raises(PrivacyMapError, match=r"omega \(4.0\) must be at least the 8.0"):
        root(measurement(space, measure, T(0.5, 4.0)))
    filter_ = oc.make_concurrent_filter(
        oc.make_concurrent_odometer(*space, measure), 1, T(1.0, 16.0)
    )([1])
    with pytest.raises(BudgetExceededError):
        filter_(measurement(space, measure, T(0.5, 12.0)))
    filter_(measurement(space, measure, T(0.5, 16.0)))
    assert filter_.remaining() == T(0.5, 16.0)


@pytest.mark.parametrize("name", CASES)
def test_searches_for_a_scale(case):
    def make(scale):
        return oc.m.make_certified_gaussian(*SCALAR, scale, case.measure())

    d_out = {"renyi": 1.0, "tcdp": T(0.5, 4.0), "gdp": 1.0}[
        next(key for key in CASES if CASES[key] is case)
    ]
    scale = dp.binary_search_param(make, d_in=1.0, d_out=d_out, bounds=(0.1, 10.0))
    assert make(scale).check(1.0, d_out)
    assert not make(scale * (1 - 1e-9)).check(1.0, d_out)
    expected = {"renyi": 2.0, "tcdp": 1.0, "gdp": 1.0}
    assert scale == pytest.approx(
        expected[next(key for key in CASES if CASES[key] is case)], rel=1e-9
    )


LOSSES = {
    "renyi": lambda: oc.loss_of(epsilon=1.0, alpha=8.0),
    "tcdp": lambda: oc.loss_of(rho=0.5, omega=16.0),
    "gdp": lambda: oc.loss_of(mu=2.0),
}


ASKS = {
    "renyi": {"epsilon": 0.25, "alpha": 8.0},
    "tcdp": {"rho": 0.125, "omega": 16.0},
    "gdp": {"mu": 1.0},
}


@every
def test_in_a_context_with_losses_chosen_on_the_way(name):
    measure, d_out = LOSSES[name]()
    context = oc.concurrent_context([1, 2, 3], dp.unit_of(contributions=1), (measure, d_out))
    _, share = oc.loss_of(**ASKS[name])
    assert isinstance(context.query(**ASKS[name]).count().laplace().release(), int)
    assert context.current_privacy_loss() <= share
    again = context.query(**ASKS[name]).count().certified_laplace(output_measure=measure)
    assert isinstance(again.release(), int)
    spent = context.current_privacy_loss()
    with pytest.raises(BudgetExceededError):
        context.query(**{**ASKS[name], next(iter(ASKS[name])): 1.99}).count().laplace().release()
    assert context.current_privacy_loss() == spent
    assert context.remaining_privacy_loss() <= d_out
    with pytest.raises(SpaceMismatchError, match="output_measure does not match"):
        context.query(epsilon=1.0)


def test_curves_are_checked_on_their_grid(space):
    def line(alpha):
        return 0.25 * alpha

    odometer = oc.make_concurrent_odometer(*space, dp.renyi_divergence())
    limit = oc.make_concurrent_filter(odometer, 1, line, orders=[2, 4])
    assert limit.check(1, limit.map(1))
    twice = oc.make_concurrent_filter(odometer, 1, lambda alpha: 2 * line(alpha), orders=[2, 4])
    assert limit.check(1, twice.map(1))
    assert not twice.check(1, limit.map(1))


def test_incomparable_distances_are_not_within_each_other(space):
    measure = oc.truncated_concentrated_divergence(4.0)
    made = oc.make_concurrent_composition(*space, measure, 1, [T(0.5, 8.0)])
    assert made.check(1, T(0.5, 8.0))
    assert not made.check(1, T(0.25, 4.0))
    assert not made.check(1, T(0.75, 16.0))
    assert not made.check(1, T(0.25, 8.0))
    native = measurement(space, measure, T(0.5, 8.0))
    assert native.check(1, T(0.75, 4.0))
    with pytest.raises(Exception, match="not comparable"):
        native.check(1, T(0.75, 16.0))


def test_gaussian_odometers_at_other_distances(space):
    """Independent values at d_in 2 and 3, never only 1."""
    root = oc.make_concurrent_odometer(*SCALAR, oc.gaussian_tradeoff())(0.0)
    for scale in (1.0, 2.0):
        root(oc.m.make_certified_gaussian(*SCALAR, scale, oc.gaussian_tradeoff()))
    for d_in in (1.0, 2.0, 3.0):
        expected = math.hypot(d_in, d_in / 2)
        assert expected <= root.privacy_loss(d_in) <= expected * (1 + 1e-14)
