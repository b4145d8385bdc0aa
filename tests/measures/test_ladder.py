"""Rules for trade-off functions: whole units of one, and residuals of a Gaussian budget."""

import dataclasses
import math
from itertools import pairwise

import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError

T = oc.TradeoffFunction


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
