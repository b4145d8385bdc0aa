"""Events of dp-accounting, read: each loss against its formula, each refusal by its name."""

from fractions import Fraction
from math import exp, inf, log, log1p, sqrt

import attr
import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

dp_accounting = pytest.importorskip("dp_accounting")

from dp_accounting import dp_event as e

from opendp_concurrent.fdp import reading
from opendp_concurrent.fdp.reading import (
    MOST_DEPTH,
    NeighboringRelation,
    UnsupportedEventError,
    amplified,
    truth_up,
)
from opendp_concurrent.mechanisms.selection import (
    function_selection,
    runs_of_mean,
)

T, Session = oc.TradeoffFunction, oc.fdp.Session
RELATIONS = [one.name for one in NeighboringRelation]
ADD, ONE, SPECIAL = RELATIONS


def read(event, neighbours=ADD):
    return oc.fdp.from_dp_event(event, neighbours)


def both(function):
    return Session(function, function)


# --- mechanisms --------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_loss_of_a_mechanism(neighbours):
    moved = 2 if neighbours == ONE else 1
    assert read(e.NoOpDpEvent(), neighbours) == Session()
    assert read(e.NonPrivateDpEvent(), neighbours) == both(T.worst())
    assert read(e.GaussianDpEvent(4.0), neighbours) == both(T.gaussian(moved / 4))
    assert read(e.LaplaceDpEvent(4.0), neighbours) == both(T.laplace(moved / 4))
    assert read(e.DiscreteLaplaceDpEvent(0.25, 3), neighbours) == both(
        T.laplace(0.75 * moved, 3.0 * moved)
    )


@pytest.mark.parametrize("noise", [0.3, 1 / 3, 7.1, 1e-9, 3e7])
def test_noise_is_rounded_to_a_larger_loss(noise):
    exactly = 1 / Fraction(noise)
    found = read(e.LaplaceDpEvent(noise)).removed.epsilon(0.0)
    assert exactly <= Fraction(found) <= exactly * (1 + Fraction(1, 2**51))
    mu = read(e.GaussianDpEvent(noise)).removed.mu
    assert exactly <= Fraction(mu) <= exactly * (1 + Fraction(1, 2**51))


def test_the_ends_of_the_noise():
    assert read(e.GaussianDpEvent(0)) == read(e.LaplaceDpEvent(0.0)) == both(T.worst())
    assert read(e.GaussianDpEvent(inf)) == read(e.LaplaceDpEvent(inf)) == Session()
    assert read(e.DiscreteLaplaceDpEvent(0, 1)) == both(T.worst())
    assert read(e.GaussianDpEvent(5e-324)) == both(T.worst())


@pytest.mark.parametrize(("noise", "buckets"), [(0.1, 3), (0.5, 2), (1 / 3, 7), (0.999, 1000)])
def test_randomized_response(noise, buckets):
    truth = 1 - Fraction(noise) * Fraction(buckets - 1, buckets)
    other = Fraction(noise) / buckets
    replaced = read(e.RandomizedResponseDpEvent(noise, buckets), ONE).removed
    special = read(e.RandomizedResponseDpEvent(noise, buckets), SPECIAL)
    chance = Fraction(1, buckets)
    laws = {
        replaced: [(truth, other), (other, truth)],
        special.removed: [(truth, chance), (1 - truth, 1 - chance)],
        special.added: [(chance, truth), (1 - chance, 1 - truth)],
    }
    for epsilon in (0.0, 0.2, log(float(truth / other)) * 0.9, log(float(truth / chance)) * 0.9):
        with mp.workdps(40):
            t = mp.exp(mpf(epsilon))
            for found, pairs in laws.items():
                known = mp.fsum(
                    max(mpf(p.numerator) / p.denominator - t * mpf(q.numerator) / q.denominator, 0)
                    for p, q in pairs
                )
                assert known <= mpf(found.delta(epsilon)) <= known + mpf(1e-12)


@pytest.mark.parametrize(("noise", "buckets"), [(0.1, 3), (1 / 3, 7), (0.999, 1000), (1e-300, 2)])
def test_the_truth_is_rounded_up(noise, buckets):
    exactly = 1 - Fraction(noise) * Fraction(buckets - 1, buckets)
    found = Fraction(truth_up(noise, buckets))
    assert exactly <= found < exactly + Fraction(1, 2**53)
    assert Fraction(1.0 - float(found)) == 1 - found


def test_the_ends_of_randomized_response():
    for neighbours in (ONE, SPECIAL):
        assert read(e.RandomizedResponseDpEvent(0.0, 1), neighbours) == Session()
        assert read(e.RandomizedResponseDpEvent(1.0, 5), neighbours) == Session()
        assert read(e.RandomizedResponseDpEvent(0.0, 5), neighbours).epsilon(0.1) == inf


@pytest.mark.parametrize(
    ("steps", "levels"), [(1, 1), (2, 2), (3, 2), (4, 3), (1600, 11), ([3, 9, 1], 4)]
)
def test_a_tree_has_a_gaussian_for_each_level(steps, levels):
    event = e.SingleEpochTreeAggregationDpEvent(2.0, steps)
    assert read(event, SPECIAL) == both(T.gaussian(0.5).power(levels))


@pytest.mark.parametrize("rho", [0.001, 0.1, 2.0])
@pytest.mark.parametrize("xi", [0.0, 0.3, 3.0])
def test_zcdp_bounds_each_mechanism_that_satisfies_it(rho, xi):
    """Among them Gaussian noise, and that beside pure DP."""
    found = read(e.ZCDpEvent(rho, xi))
    best = T.gaussian(sqrt(2 * rho) * (1 - 1e-9)).compose(T.pure(xi))
    for delta in (0.1, 1e-3, 1e-9):
        assert best.epsilon_bounds(delta).lower <= found.epsilon(delta)
    at_orders = min(  # of RDP, by [CKS20, Proposition 12]
        xi + rho * a + log1p(-1 / a) - (log(1e-6) + log(a)) / (a - 1)
        for a in np.linspace(1.001, 300.0, 30000)
    )
    assert found.epsilon(1e-6) <= at_orders * 1.02 + 1e-3


def test_the_ends_of_zcdp():
    assert read(e.ZCDpEvent(0.0)) == Session()
    assert read(e.ZCDpEvent(0.0, 0.5)) == both(T.pure(0.5))
    assert read(e.ZCDpEvent(inf)) == both(T.worst())
    assert read(e.ZCDpEvent(0.5, 1e9)) == both(T.worst())


# --- sampling ----------------------------------------------------------------------------------


def poisson(rate, event):
    return e.PoissonSampledDpEvent(rate, event)


@pytest.mark.parametrize("neighbours", [ADD, SPECIAL])
def test_sampled_noise_is_that_of_a_session(neighbours):
    assert read(poisson(0.1, e.GaussianDpEvent(2.0)), neighbours) == Session.subsampled_gaussian(
        2.0, 0.1
    )
    assert read(poisson(0.1, e.LaplaceDpEvent(2.0)), neighbours) == Session.subsampled_laplace(
        0.5, 0.1
    )


def test_gaussians_on_one_sample_are_one_gaussian():
    three = [e.GaussianDpEvent(3.0), e.SelfComposedDpEvent(e.GaussianDpEvent(4.0), 1)]
    inner = e.ComposedDpEvent([*three, e.NoOpDpEvent()])
    found = read(poisson(0.25, inner))
    assert found.delta(1.0) >= Session.subsampled_gaussian(12 / 5, 0.25).delta_bounds(1.0).lower
    ((factor, count),) = found.removed.product.factors.items()
    assert count == 1
    assert factor.size == pytest.approx(5 / 12, rel=1e-14)
    assert Fraction(factor.size) ** 2 >= Fraction(1, 9) + Fraction(1, 16)


def test_a_sample_of_a_sample_is_a_sample():
    nested = read(poisson(0.5, poisson(0.25, e.GaussianDpEvent(2.0))))
    assert nested == read(poisson(0.125, e.GaussianDpEvent(2.0)))
    third = read(poisson(1 / 3, poisson(1 / 3, e.LaplaceDpEvent(2.0))))
    ((factor, _),) = third.removed.product.factors.items()
    assert Fraction(factor.rate) >= Fraction(1 / 3) ** 2
    assert factor.rate == pytest.approx(1 / 9, rel=1e-15)


def test_everyone_or_no_one_is_sampled():
    for event in (e.GaussianDpEvent(1.0), e.DiscreteLaplaceDpEvent(1.0, 2), e.ZCDpEvent(0.1)):
        for neighbours in RELATIONS:
            assert read(poisson(1, event), neighbours) == read(event, neighbours)
            assert read(poisson(0, event), neighbours) == Session()
    assert read(poisson(0.5, e.NoOpDpEvent())) == Session()


def test_a_sampled_release_of_the_data_fails_with_the_rate():
    assert read(poisson(0.1, e.NonPrivateDpEvent())) == both(T.approximate(0.0, 0.1))
    assert read(poisson(0.1, e.GaussianDpEvent(0))) == both(T.approximate(0.0, 0.1))


@pytest.mark.parametrize(
    ("event", "rate"),
    [
        (e.GaussianDpEvent(0.06), 0.1),
        (e.GaussianDpEvent(1e9), 0.1),
        (e.GaussianDpEvent(1.0), 1e-12),
        (e.GaussianDpEvent(1.0), 1 - 1e-12),
        (e.LaplaceDpEvent(0.03), 0.1),
        (e.LaplaceDpEvent(1e9), 0.1),
    ],
    ids=str,
)
def test_beyond_the_reach_of_the_quadrature_the_loss_is_rounded_up(event, rate, exact):
    noise = "gaussian" if isinstance(event, e.GaussianDpEvent) else "laplace"
    found = read(poisson(rate, event))
    for factor in found.removed.product.factors:
        assert getattr(factor, "rate", rate) == rate
        assert getattr(factor, "size", 1.0) >= 1e-6
    for unit in ("removed", "added"):
        for epsilon in (0.0, 1e-12, 0.01, 1.0):
            with mp.workdps(60):
                size = 1 / mpf(event.noise_multiplier)
                known = exact.subsampled_delta(noise, size, rate, unit, epsilon)
            assert known <= mpf(getattr(found, unit).delta(epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("rate", [1e-9, 0.3, 1 - 1e-9])
def test_amplified_pairs_hold_in_both_directions(epsilon, rate):
    """For randomized response that fails with δ: its four outcomes, one sampled record."""
    delta = 0.01
    more, failing = amplified(epsilon, delta, rate)
    assert more <= epsilon
    with mp.workdps(60):
        q, d, t = mpf(rate), mpf(delta), mp.exp(mpf(epsilon))
        true, lie = (1 - d) * t / (1 + t), (1 - d) / (1 + t)
        first, second = [d, true, lie, mpf(0)], [mpf(0), lie, true, d]
        mixed = [(1 - q) * two + q * one for one, two in zip(first, second, strict=True)]
        known = T.approximate(more, failing)
        for at in (0.0, more / 2, more, more + 0.1):
            scale = mp.exp(mpf(at))
            for one, two in ((mixed, second), (second, mixed)):
                reached = mp.fsum(max(p - scale * r, 0) for p, r in zip(one, two, strict=True))
                assert reached <= mpf(known.delta(at)) * (1 + mpf(1e-30))


@pytest.mark.parametrize(
    "inner",
    [
        e.DiscreteLaplaceDpEvent(0.5, 2),
        e.RandomizedResponseDpEvent(0.5, 3),
        e.ComposedDpEvent([e.LaplaceDpEvent(1.0), e.GaussianDpEvent(1.0)]),
        e.ZCDpEvent(0.1),
    ],
    ids=str,
)
def test_other_events_on_one_sample_have_the_sampled_profile(inner):
    rate, neighbours = 0.1, NeighboringRelation.REPLACE_SPECIAL
    whole, found = read(inner, neighbours), read(poisson(rate, inner), neighbours)
    for epsilon in (0.0, 0.01, 0.05, 0.12):
        least = rate * whole.delta(log1p((exp(epsilon) - 1) / rate))
        assert least <= found.delta(epsilon) * (1 + 1e-12)
        assert found.delta(epsilon) <= 1.01 * least + 1e-6


# --- trees -------------------------------------------------------------------------------------


def nested(depth):
    event = e.GaussianDpEvent(1.0)
    for _ in range(depth):
        event = e.ComposedDpEvent([event])
    return event


def test_a_deep_or_endless_tree_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "MOST_EVENTS", 1000)  # for speed
    assert read(nested(MOST_DEPTH - 1)) == both(T.gaussian(1.0))
    endless = e.ComposedDpEvent([])
    endless.events.append(endless)
    shared = e.GaussianDpEvent(1.0)
    for _ in range(60):
        shared = e.ComposedDpEvent([shared, shared])
    for event in (nested(MOST_DEPTH), endless, shared):
        with pytest.raises(InvalidValueError, match="SelfComposedDpEvent"):
            read(event)


# --- samples of other kinds, and selections ----------------------------------------------------

GAUSS, LAPLACE = e.GaussianDpEvent(2.0), e.LaplaceDpEvent(2.0)


def best_of(event, mean=10.0, shape=1.0):
    return e.RepeatAndSelectDpEvent(event, mean, shape)


@pytest.mark.parametrize(
    ("event", "neighbours", "what"),
    [
        (poisson(0.1, GAUSS), ONE, "ADD_OR_REMOVE_ONE"),
        (best_of(GAUSS, 10.0, inf), ADD, "Poisson number of runs"),
        (poisson(0.1, poisson(0.1, GAUSS)), ONE, "ADD_OR_REMOVE_ONE"),
        (poisson(0.1, e.ComposedDpEvent([poisson(0.1, GAUSS)] * 2)), ADD, "not supported"),
        (poisson(0.1, e.ComposedDpEvent([poisson(0.1, GAUSS), GAUSS])), ADD, "not supported"),
        (e.RandomizedResponseDpEvent(0.1, 3), ADD, "REPLACE_ONE or REPLACE_SPECIAL"),
        (e.SingleEpochTreeAggregationDpEvent(1.0, 4), ADD, "REPLACE_SPECIAL"),
        (e.SingleEpochTreeAggregationDpEvent(1.0, 4), ONE, "REPLACE_SPECIAL"),
    ],
    ids=str,
)
def test_why_an_event_is_refused(event, neighbours, what):
    with pytest.raises(UnsupportedEventError, match=what):
        read(event, neighbours)
    assert not oc.fdp.Accountant(neighbours).supports(event)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_the_best_of_several_runs(neighbours):
    moved = 2 if neighbours == ONE else 1
    runs = runs_of_mean(10.0, 1.0)
    found = read(best_of(GAUSS), neighbours)
    assert found == both(function_selection(runs, both(T.gaussian(moved / 2))))
    assert read(best_of(GAUSS, 1), neighbours) == both(T.gaussian(moved / 2))
    assert read(best_of(e.NoOpDpEvent()), neighbours) == Session()


def test_the_best_of_runs_that_sample_has_the_worse_of_both_directions():
    run = poisson(0.3, e.GaussianDpEvent(1.0))
    found, one = read(best_of(run)), read(run)
    runs = runs_of_mean(10.0, 1.0)
    for direction in (one.removed, one.added):
        alone = function_selection(runs, direction)
        for epsilon in (0.2, 1.0, 2.0):
            assert alone.delta(epsilon) <= found.removed.delta(epsilon) * (1 + 1e-3)


# --- refusals ----------------------------------------------------------------------------------

MIXTURE = e.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5])
NOT_SUPPORTED = [
    (e.UnsupportedDpEvent(), "says what was run"),
    (MIXTURE, "PoissonSampledDpEvent"),
    (e.TruncatedSubsampledGaussianDpEvent(10, 0.1, 5, 1.0), "accountant of dp_accounting"),
    (e.SampledWithoutReplacementDpEvent(100, 10, GAUSS), "PoissonSampledDpEvent"),
    (e.SampledWithReplacementDpEvent(100, 10, GAUSS), "PoissonSampledDpEvent"),
]


@pytest.mark.parametrize(("event", "what"), NOT_SUPPORTED, ids=str)
@pytest.mark.parametrize(
    "inside",
    [
        lambda one: one,
        lambda one: e.ComposedDpEvent([e.GaussianDpEvent(1.0), one]),
        lambda one: poisson(0, e.SelfComposedDpEvent(one, 3)),
    ],
    ids=["alone", "composed", "sampled"],
)
def test_what_is_not_supported_is_refused_by_its_name(event, what, inside):
    with pytest.raises(UnsupportedEventError, match=type(event).__name__) as caught:
        read(inside(event))
    assert what in str(caught.value)
    assert caught.value.event is event
    assert isinstance(caught.value, (oc.errors.UnsupportedEventError, InvalidValueError))
    assert isinstance(caught.value, dp_accounting.UnsupportedEventError)


def test_every_event_of_dp_accounting_is_read_or_refused_by_name():
    """A new class must be thought of here."""
    classes = {
        name
        for name, one in vars(e).items()
        if isinstance(one, type) and issubclass(one, e.DpEvent) and one is not e.DpEvent
    }
    assert classes <= {*reading._TREES, *reading._MECHANISMS, *reading._REFUSED}
    assert not {*reading._TREES, *reading._MECHANISMS} & {*reading._REFUSED}
    assert {type(event).__name__ for event, _ in NOT_SUPPORTED} == {*reading._REFUSED}


def test_a_class_of_the_same_name_or_below_is_not_the_mechanism():
    class Weaker(e.GaussianDpEvent):
        pass

    GaussianDpEvent = attr.make_class("GaussianDpEvent", ["noise_multiplier"], bases=(e.DpEvent,))
    for event in (Weaker(1.0), GaussianDpEvent(1.0)):
        with pytest.raises(UnsupportedEventError, match="not known"):
            read(event)


# --- events of later versions ------------------------------------------------------------------


@pytest.fixture
def later(monkeypatch):
    """Classes that dp-accounting has after 0.6, where the installed version lacks them."""
    fields = {
        "EpsilonDeltaDpEvent": {"epsilon": attr.ib(), "delta": attr.ib()},
        "DiscreteGaussianDpEvent": {
            "sigma": attr.ib(),
            "sensitivity": attr.ib(default=1.0),
            "dimension": attr.ib(default=None),
        },
        "ExponentialMechanismDpEvent": {"epsilon": attr.ib()},
        "PermuteAndFlipDpEvent": {"epsilon": attr.ib()},
    }
    for name, given in fields.items():
        if not hasattr(e, name):
            made = attr.make_class(name, given, bases=(e.DpEvent,), frozen=True)
            monkeypatch.setattr(e, name, made, raising=False)
    return e


def test_events_of_later_versions(later):
    assert read(later.EpsilonDeltaDpEvent(0.5, 0.1)) == both(T.approximate(0.5, 0.1))
    assert read(later.ExponentialMechanismDpEvent(0.5)) == both(T.pure(0.5))
    assert read(later.PermuteAndFlipDpEvent(0.5)) == both(T.pure(0.5))
    event = later.DiscreteGaussianDpEvent(3.0, 2, dimension=1)
    assert read(event) == both(T.discrete_gaussian(3.0, 2))
    assert read(event, ONE) == both(T.discrete_gaussian(3.0, 4))
    assert read(later.DiscreteGaussianDpEvent(4.0, 2.0)) == read(e.ZCDpEvent(0.125))
    assert read(later.ExponentialMechanismDpEvent(0.5)) == both(T.pure(0.5))
    ranged = read(e.SelfComposedDpEvent(later.ExponentialMechanismDpEvent(0.1), 100))
    assert 2.3 < ranged.epsilon(1e-6) < 2.43  # 4.77 as 0.1-DP
    assert ranged.epsilon(0.0) <= 10.0 + 1e-9
    with pytest.raises(InvalidValueError, match="sensitivity"):
        read(later.DiscreteGaussianDpEvent(3.0, 1.5, dimension=1))
    more, failing = amplified(0.5, 0.1, 0.25)
    assert read(poisson(0.25, later.EpsilonDeltaDpEvent(0.5, 0.1))) == both(
        T.approximate(more, failing)
    )
    assert more == pytest.approx(log1p(0.25 * (exp(0.5) - 1)), rel=1e-14)
