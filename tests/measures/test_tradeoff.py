"""f-DP as a measure: compositor, slots, filters and casts."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.slots import AnyOrder, Slots

from ..build import DATA, RENYI, SPACE, an_odometer, costing

T = oc.TradeoffFunction
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def count(scale):
    noise = oc.m.then_certified_laplace(scale=scale, output_measure=oc.tradeoff())
    return SPACE >> dp.t.then_count() >> noise


def compositor(d_mids, **kwargs):
    return oc.make_concurrent_composition(*SPACE, oc.tradeoff(), 1, d_mids, **kwargs)


# --- the measure ---------------------------------------------------------------------------


def test_a_map_that_returns_no_function_is_refused_and_charges_nothing():
    liar = costing(lambda d_in: 0.5, measure=oc.tradeoff())
    root = compositor([T.pure(1.0)])(DATA)
    with pytest.raises(PrivacyMapError, match="must be a TradeoffFunction, found float"):
        root(liar)
    assert root.remaining() == (T.pure(1.0),)


# --- the compositor ------------------------------------------------------------------------


def test_the_loss_of_a_compositor_is_the_tensor_product():
    measurement = compositor([T.pure(0.1), T.gaussian(0.5), T.pure(0.1)])
    assert measurement.map(1) == T.pure(0.1).power(2).compose(T.gaussian(0.5))
    root = measurement(DATA)
    first = root(compositor([T.pure(0.05)] * 2))
    assert root.remaining() == (T.gaussian(0.5), T.pure(0.1))
    assert isinstance(first(count(20.0)), int)
    assert isinstance(root(count(10.0)), int)
    assert isinstance(first(count(20.0)), int)  # interleaved
    with pytest.raises(BudgetExceededError):
        root(count(5.0))


def test_any_order_is_for_trade_off_functions():
    with pytest.raises(UnsupportedMeasureError, match="make_concurrent_filter"):
        oc.make_concurrent_composition(*SPACE, dp.max_divergence(), 1, [0.5], order="any")
    with pytest.raises(InvalidValueError, match="order"):
        compositor([T.pure(0.5)], order="none")


# --- losses chosen on the way --------------------------------------------------------------


@pytest.mark.parametrize("accumulator", [None, oc.accumulators.advanced(1e-6)])
def test_an_odometer_needs_a_rule_that_is_valid(accumulator):
    with pytest.raises(UnsupportedMeasureError, match=r"is not a bound .*docs/refused.rst"):
        an_odometer(oc.tradeoff(), accumulator=accumulator)
    for rule in (oc.accumulators.ladder(T.pure(0.1)), oc.accumulators.residue(1.0)):
        with pytest.raises(UnsupportedMeasureError, match="supports Tradeoff, but output_measure"):
            an_odometer(accumulator=rule)


# --- casts ---------------------------------------------------------------------------------


def test_casts_to_functions_are_exact_where_the_measure_is_a_family():
    pure = dp.m.make_laplace(*REAL, scale=2.0)
    assert oc.c.cast(pure, oc.tradeoff()).map(1.0) == T.pure(0.5)
    approximate = dp.c.make_approximate(pure)
    assert oc.c.cast(approximate, oc.tradeoff()).map(1.0) == T.pure(0.5)
    gaussian = oc.m.make_certified_gaussian(*REAL, 2.0, oc.gaussian_tradeoff())
    assert oc.c.cast(gaussian, oc.tradeoff()).map(1.0) == T.gaussian(gaussian.map(1.0))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0])
def test_chords_of_a_profile_are_close_to_it_and_above_the_mechanism(epsilon):
    """They may be below it: a bound that is not convex in e^ε is better than it says."""
    gaussian = dp.m.make_gaussian(*REAL, scale=2.0)
    smoothed = oc.c.cast(gaussian, dp.smoothed_max_divergence())
    truth = T.gaussian(0.5).delta_bounds(epsilon).lower
    for under in (gaussian, smoothed):
        delta = oc.c.cast(under, oc.tradeoff()).map(1.0).delta(epsilon)
        assert truth <= delta <= smoothed.map(1.0).delta(epsilon) * 1.02


def test_renyi_and_truncated_losses_have_functions():
    fixed, truncated = oc.fixed_renyi_divergence(8.0), oc.truncated_concentrated_divergence(30.0)
    for measure, orders in ((fixed, None), (truncated, None), (RENYI, [2, 4, 8, 16])):
        mechanism = oc.m.make_certified_gaussian(*REAL, 2.0, measure)
        function = oc.c.cast(mechanism, oc.tradeoff(), orders=orders).map(1.0)
        profile = oc.c.cast(mechanism, dp.smoothed_max_divergence(), orders=orders).map(1.0)
        for epsilon in (0.5, 2.0, 5.0):
            assert T.gaussian(0.5).delta_bounds(epsilon).lower <= function.delta(epsilon)
            assert function.delta(epsilon) <= profile.delta(epsilon) * 1.05 + 1e-9


def test_a_function_is_read_as_epsilon_and_delta():
    mechanism = oc.m.make_certified_laplace(*REAL, 1.0, oc.tradeoff())
    approximate = oc.c.cast(mechanism, dp.approximate(dp.max_divergence()), delta=1e-3)
    epsilon, delta = approximate.map(1.0)
    assert delta == 1e-3
    assert epsilon == pytest.approx(1.0 + 2 * math.log(1 - 1e-3), rel=1e-9)
    fixed = dp.c.make_fix_delta(oc.c.cast(mechanism, dp.smoothed_max_divergence()), 1e-3)
    assert fixed.map(1.0)[0] == pytest.approx(epsilon, rel=1e-6)


def test_a_bounded_function_is_read_as_gaussian():
    mechanism = oc.m.make_certified_laplace(*REAL, 1.0, oc.tradeoff())
    mu = oc.c.cast(mechanism, oc.gaussian_tradeoff()).map(1.0)
    assert T.laplace(1.0) <= T.gaussian(mu)
    assert 1.0 < mu < oc.c.cast(dp.m.make_laplace(*REAL, 1.0), oc.gaussian_tradeoff()).map(1.0)


# --- context -------------------------------------------------------------------------------


def context(function, **split):
    unit, loss = dp.unit_of(contributions=1), oc.loss_of(tradeoff=function)
    return oc.concurrent_context(data=DATA, privacy_unit=unit, privacy_loss=loss, **split)


def test_a_context_splits_a_gaussian_function_or_a_power():
    halves = context(T.gaussian(1.0), split_evenly_over=2)
    for _ in range(2):
        assert isinstance(halves.query().count().laplace().release(), int)
    assert halves.remaining_privacy_loss() == []
    thirds = context(T.pure(0.1).power(6), split_by_weights=[1, 2])
    assert thirds.remaining_privacy_loss() == [T.pure(0.1).power(2), T.pure(0.1).power(4)]
    with pytest.raises(InvalidValueError, match="cannot be split"):
        context(T.pure(1.0), split_evenly_over=2)


def test_a_budget_must_bound_something():
    odometer = an_odometer(oc.tradeoff(), accumulator=oc.accumulators.ladder(T.pure(0.1)))
    with pytest.raises(InvalidValueError, match="d_out .* must bound the loss"):
        oc.make_concurrent_filter(odometer, 1, T.worst())
    with pytest.raises(InvalidTypeError, match="d_out must be a TradeoffFunction"):
        oc.make_concurrent_filter(odometer, 1, 1.0)


# --- slots in any order --------------------------------------------------------------------


def pures(*epsilons):
    return tuple(T.pure(epsilon) for epsilon in epsilons)


def slots(*functions):
    plan = tuple(sorted(functions, key=lambda one: one.affinity_cost))
    return Slots(plan, plan)


def test_the_cheapest_cover_is_taken():
    plan = slots(*pures(1.0, 0.2, 0.1))
    assert plan.taking(T.pure(0.1)).left == pures(0.2, 1.0)
    assert plan.taking(T.pure(0.15)).left == pures(0.1, 1.0)
    assert plan.taking(T.laplace(0.9)).left == pures(0.1, 0.2)
    assert plan.taking(T.pure(1.2)) is None  # 1.3 in all, and not enough mass in the tails


def test_several_slots_together_cover_a_larger_child():
    plan = slots(*pures(0.3, 0.3, 0.3, 0.3, 0.3))
    after = plan.taking(T.laplace(0.5))
    assert after is not None
    assert len(after.left) == 1
    assert T.laplace(0.5) <= T.pure(0.3).power(4)
    assert not T.laplace(0.5) <= T.pure(0.3).power(3)


def test_the_loss_is_that_of_all_slots_from_the_first_launch_on():
    plan = slots(T.gaussian(0.5), T.pure(0.1))
    assert plan.loss == T.identity()
    assert plan.taking(T.identity()) == plan
    assert plan.after(T.pure(0.1)).loss == T.gaussian(0.5).compose(T.pure(0.1))
    assert plan.after(T.worst()).left == ()


def test_the_refusal_tells_what_is_left():
    refusal = AnyOrder().admits(slots(*pures(0.5, 0.1)), T.gaussian(1.0))
    assert isinstance(refusal, BudgetExceededError)
    assert refusal.remaining == pures(0.1, 0.5)


def test_a_long_plan_is_searched_and_the_answer_is_sound():
    left = pures(*(0.01 * n for n in range(1, 25)))
    plan, child = slots(*left), T.laplace(0.4)
    after = plan.taking(child)
    assert after is not None
    taken = list(plan.left)
    for slot in after.left:
        taken.remove(slot)
    assert child <= T.identity().compose(*taken)


def test_when_the_search_is_given_up_what_is_not_needed_is_kept():
    """Of nine kinds at once none is looked for; the dearest that cover are taken, less spare ones.

    The dearest slot never fails, so it covers no failure; the next one does, and is what is asked.
    """
    child = T.approximate(0.0, 0.3)
    cheap = pures(*(0.001 * n for n in range(1, 40)))
    plan = slots(*cheap, child, T.pure(2.0))
    assert plan.taking(child).left == slots(*cheap, T.pure(2.0)).left
