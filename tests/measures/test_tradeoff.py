"""f-DP as a measure: compositor, slots, casts, contexts, and rules for such losses."""

import dataclasses
import math
from itertools import pairwise

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
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


# --- rules: whole units of one function, and residuals of a Gaussian budget ----------------------


def test_equal_launches_reach_the_optimal_composition():
    """562 of 562 at ε = 0.01 and (1, 1e-6): theory 7.13."""
    unit, budget = T.pure(0.01), T.approximate(1.0, 1e-6)
    assert oc.accumulators.launches_admitted(oc.accumulators.ladder(unit), budget, [unit]) == 562
    assert unit.power(562).delta(1.0) <= 1e-6 < unit.power(563).delta_bounds(1.0).lower


def test_a_child_of_twice_the_loss_costs_more_than_four_units():
    assert T.pure(0.02).units(T.pure(0.01)) == 7
    assert T.pure(0.02).delta(0.0) <= T.pure(0.01).power(7).delta(0.0)
    assert T.pure(0.02).delta_bounds(0.0).lower > T.pure(0.01).power(6).delta(0.0)


@pytest.mark.parametrize("mu", [0.1, 0.25, 1.0])
def test_gaussian_units_count_squares(mu):
    unit = T.gaussian(mu)
    assert T.gaussian(2 * mu).units(unit) == 4
    assert T.gaussian(2 * mu * (1 + 1e-9)).units(unit) == 5
    assert T.gaussian(3 * mu).admits(unit) == 9


def test_what_no_number_of_units_covers_is_refused():
    rule = oc.accumulators.ladder(T.pure(0.1))
    start = rule.start(None)
    for child in (T.gaussian(0.1), T.approximate(0.1, 1e-9), T.worst()):
        after = start.after(child)
        assert after.loss == T.worst()
        assert not after.within(T.approximate(5.0, 1e-3))
        verdict = Within(T.approximate(1.0, 1e-6)).admits(start, child)
        assert isinstance(verdict, BudgetExceededError)
        assert after.remaining(T.pure(1.0)) == T.identity()


def test_pairs_reach_the_optimal_composition():
    """562 launches of (0.01, 0) within (1, 1e-6), where best_rule admits 490: theory 12.11."""
    rule, d_out, typical = oc.accumulators.ladder(T.pure(0.01), 1e-6), (1.0, 1e-6), [(0.01, 0.0)]
    assert oc.accumulators.launches_admitted(rule, d_out, typical) == 562
    spent = rule.start().after((0.01, 0.0), 562)
    assert spent.within(d_out)
    assert spent.loss[0] <= 1.0 < spent.after((0.01, 0.0)).loss[0]
    best = oc.accumulators.best_rule(d_out, typical, alike=True)
    assert best == oc.accumulators.ladder(T.approximate(0.01, 0.0), 1e-6)
    assert (
        oc.accumulators.launches_admitted(oc.accumulators.best_rule(d_out, typical), d_out, typical)
        == 490
    )


def test_a_unit_covers_failures_and_what_is_left_is_its_loss_if_it_is_finite():
    rule, d_out = oc.accumulators.ladder(T.pure(0.5), 1e-6), (1.0, 1e-6)
    assert rule.start().after((0.5, 0.0)).remaining(d_out) == (0.5, 0.0)
    assert rule.start().after((0.5, 0.0), 2).remaining(d_out) == (0.0, 0.0)
    assert rule.start().after((0.1, 1e-9)).spent is None
    assert (
        oc.accumulators.ladder(T.approximate(0.1, 1e-9), 1e-6).start().after((0.1, 1e-9)).spent == 1
    )


def test_units_that_are_spent_are_those_of_the_record():
    rule = oc.accumulators.ladder(T.laplace(0.3))
    after = rule.start(None).after(T.laplace(0.2), 3).after(T.laplace(0.3))
    assert after.loss == T.laplace(0.3).power(4)
    assert rule.from_record(None, after.to_record()) == after
    assert after.remaining(T.laplace(0.3).power(6)) == T.laplace(0.3).power(2)


def test_what_remains_of_a_ladder_is_admitted():
    rule, d_out = oc.accumulators.ladder(T.approximate(0.1, 1e-9), 1e-6), (1.0, 1e-6)
    spent = rule.start().after((0.1, 1e-9), 7)
    epsilon, delta = spent.remaining(d_out)
    assert 0.1 < epsilon < 1.0
    assert 1e-9 < delta < 1e-6
    assert spent.after((epsilon, 0.0)).within(d_out)
    assert not spent.after((epsilon * 1.001, 0.0)).within(d_out)
    assert spent.after((0.0, delta)).within(d_out)
    assert spent.after((0.1, 1.5)).loss == (math.inf, 1e-6)
    assert spent.after((0.1, 1.5)).remaining(d_out) == (0.0, 0.0)


def test_a_slack_above_the_budget_is_refused():
    with pytest.raises(InvalidValueError, match=r"d_out\[1\]"):
        oc.accumulators.ladder(T.pure(0.1), 1e-3).check_budget((1.0, 1e-6))


@pytest.mark.parametrize("spent", [0, 100])
@pytest.mark.parametrize(
    "unit",
    [T.pure(0.01), T.approximate(0.01, 1e-9), T.gaussian(0.01), T.discrete_laplace(100.0, 1)],
)
def test_what_remains_is_admitted_and_no_more(unit, spent):
    start = oc.accumulators.ladder(unit, 1e-6).start()
    state = start.after((0.0, 0.0)) if not spent else dataclasses.replace(start, spent=spent)
    largest, _ = state.remaining((1.0, 1e-6))
    assert state.after((largest, 0.0)).within((1.0, 1e-6))
    assert not state.after((largest * 1.0001, 0.0)).within((1.0, 1e-6))


def test_the_larger_of_two_counts_is_kept_if_they_are_near():
    """Another version may show that one unit less covers a launch."""
    for rule in (oc.accumulators.ladder(T.pure(0.1)), oc.accumulators.ladder(T.pure(0.1), 1e-6)):
        one = rule.from_record(None, 6)
        assert one.merged(rule.from_record(None, 5)) == one
        assert rule.from_record(None, 5).merged(one) == one
        for far in (2, 13, 0, None):
            assert one.merged(rule.from_record(None, far)) is None
        other = type(rule)(T.pure(0.2), *dataclasses.astuple(rule)[1:])
        assert one.merged(other.from_record(None, 6)) is None


def test_a_gaussian_child_takes_its_square():
    after = oc.accumulators.residue(1.0).start(None).after(T.gaussian(0.6))
    assert after.left == pytest.approx(0.8, abs=1e-15)
    assert after.loss == T.gaussian(0.6)


def test_the_loss_of_an_odometer_by_residue():
    """The sum of squares up to the budget, then the budget while something is left, then more."""
    state, losses = oc.accumulators.residue(1.0).start(None), []
    assert state.loss == T.identity()
    for _ in range(8):
        state = state.after(T.pure(0.5))
        losses.append(state.loss)
        assert state.within(T.gaussian(1.0)) == (state.left is not None)
    assert losses[0] == T.gaussian(T.pure(0.5).gaussian_bound)
    assert losses[2] == T.gaussian(1.0)  # the sum of squares would be 1.08 by now
    assert losses[-1] > T.gaussian(1.0)
    assert all(one <= other for one, other in pairwise(losses))


def test_what_has_no_gaussian_bound_leaves_nothing():
    start = oc.accumulators.residue(1.0).start(None)
    for child in (T.approximate(0.1, 1e-6), T.discrete_gaussian(0.4), T.worst()):
        after = start.after(child)
        assert after.left is None
        assert after.loss == T.worst()
        assert isinstance(Within(T.gaussian(1.0)).admits(start, child), BudgetExceededError)


def test_a_discrete_gaussian_leaves_what_its_certificate_allows():
    """(sensitivity + 1) / scale, proven in mechanisms/certified.py."""
    child = T.discrete_gaussian(10.0)
    assert child.gaussian_bound == 0.2
    assert oc.accumulators.residue(1.0).start(None).after(child).left == pytest.approx(
        math.sqrt(0.96)
    )
    assert child.units(T.gaussian(0.11)) == 4


def test_nothing_remains_of_a_budget_that_a_child_used_up():
    used = oc.accumulators.residue(mu=1.0).start(None).after(T.worst())
    for bound in (0.5, 1.0):
        assert used.remaining(T.gaussian(bound)) == T.gaussian(0.0)


def test_what_the_squares_leave_remains_also_beyond_the_budget():
    """A bound above the budget: a Gaussian of what remains fits, and a larger one does not."""
    for launched in ([], [T.gaussian(0.6)], [T.pure(0.5), T.gaussian(0.3)], [T.gaussian(1.0)] * 2):
        after = oc.accumulators.residue(1.0).start(None)
        for one in launched:
            after = after.after(one)
        root = math.sqrt(sum(one.gaussian_bound**2 for one in launched))
        for bound in (0.9, 1.0, 1.2, 2.0):
            d_out = T.gaussian(bound)
            remaining = after.remaining(d_out)
            assert remaining.mu >= math.sqrt(max(0.0, bound**2 - root**2)) - 1e-9
            if root < bound:
                assert after.after(remaining).within(d_out)
                if bound > 1.0:
                    assert not after.after(T.gaussian(remaining.mu + 1e-6)).within(d_out)


def test_a_record_of_residues_continues_identically():
    rule = oc.accumulators.residue(1.0)
    after = rule.start(None).after(T.pure(0.3)).after(T.laplace(0.2, 3))
    restored = rule.from_record(None, after.to_record())
    assert restored == after
    assert restored.after(T.gaussian(0.1)) == after.after(T.gaussian(0.1))
