"""Rules for f-DP: ladder, residue and slots, and the product that only a compositor may use."""

import math
import random
from itertools import islice, pairwise

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.accumulators.slots import AnyOrder, Slots, covers
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.conversions.pure_to_gaussian import pure_to_gaussian
from opendp_concurrent.measures.sums.tradeoff_product import Products

T = oc.TradeoffFunction


def pures(*epsilons):
    return tuple(T.pure(epsilon) for epsilon in epsilons)


# --- ladder --------------------------------------------------------------------------------


def test_equal_launches_reach_the_optimal_composition():
    """562 of 562 at ε = 0.01 and (1, 1e-6): theory 7.13."""
    unit, budget = T.pure(0.01), T.approximate(1.0, 1e-6)
    assert oc.accumulators.launches_admitted(oc.accumulators.ladder(unit), budget, [unit]) == 562
    assert unit.power(562).delta(1.0) <= 1e-6 < unit.power(563).delta_bounds(1.0).lower


APPROXIMATE = dp.approximate(dp.max_divergence())


def test_pairs_reach_the_optimal_composition():
    """562 launches of (0.01, 0) within (1, 1e-6), where best_rule admits 490: theory 12.11."""
    rule, d_out, typical = oc.accumulators.ladder(T.pure(0.01), 1e-6), (1.0, 1e-6), [(0.01, 0.0)]
    assert oc.accumulators.launches_admitted(rule, d_out, typical) == 562
    spent = rule.start(APPROXIMATE).after((0.01, 0.0), 562)
    assert spent.within(d_out)
    assert spent.loss[0] <= 1.0 < spent.after((0.01, 0.0)).loss[0]
    best = oc.accumulators.best_rule(d_out, typical, alike=True)
    assert best == oc.accumulators.ladder(T.approximate(0.01, 0.0), 1e-6)
    assert (
        oc.accumulators.launches_admitted(oc.accumulators.best_rule(d_out, typical), d_out, typical)
        == 490
    )


def test_a_filter_of_pairs_by_ladder_refuses_the_next_launch():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    rule = oc.accumulators.ladder(T.pure(0.25), 1e-3)
    odometer = oc.make_concurrent_odometer(*space, APPROXIMATE, accumulator=rule)
    admitted = oc.accumulators.launches_admitted(rule, (1.0, 1e-3), [(0.25, 0.0)])
    assert admitted == 4
    root = oc.make_concurrent_filter(odometer, 1, (1.0, 1e-3))([1, 2])
    query = dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_laplace(4.0))
    for _ in range(admitted):
        assert isinstance(root(query), int)
    epsilon, delta = root.privacy_loss()
    assert delta == 1e-3
    assert T.pure(0.25).power(admitted).delta(epsilon) <= 1e-3
    with pytest.raises(BudgetExceededError):
        root(query)


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


def test_a_failing_launch_needs_a_unit_that_fails():
    assert oc.accumulators.ladder(T.pure(0.1), 1e-6).start().after((0.1, 1e-9)).spent is None
    assert (
        oc.accumulators.ladder(T.approximate(0.1, 1e-9), 1e-6).start().after((0.1, 1e-9)).spent == 1
    )


def test_a_slack_above_the_budget_is_refused():
    with pytest.raises(InvalidValueError, match=r"d_out\[1\]"):
        oc.accumulators.ladder(T.pure(0.1), 1e-3).check_budget((1.0, 1e-6))


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


def test_units_that_are_spent_are_those_of_the_record():
    rule = oc.accumulators.ladder(T.laplace(0.3))
    after = rule.start(None).after(T.laplace(0.2), 3).after(T.laplace(0.3))
    assert after.loss == T.laplace(0.3).power(4)
    assert rule.from_record(None, after.to_record()) == after
    assert after.remaining(T.laplace(0.3).power(6)) == T.laplace(0.3).power(2)


@pytest.mark.parametrize("unit", [T.identity(), T.worst()])
def test_a_unit_without_loss_or_without_privacy_is_refused(unit):
    with pytest.raises(InvalidValueError, match="unit"):
        oc.accumulators.ladder(unit)


def test_a_unit_must_be_a_function():
    with pytest.raises(InvalidTypeError, match="unit must be a TradeoffFunction, found float"):
        oc.accumulators.ladder(0.1)


# --- residue -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "mu", "left"),
    [(0.5, 1.0, 0.8599904568), (1.0, 2.0, 1.7291408254), (0.1, 1.0, 0.9949810922)],
)
def test_what_is_left_of_a_budget(epsilon, mu, left):
    after = oc.accumulators.residue(mu).start(None).after(T.pure(epsilon))
    assert after.left == pytest.approx(left, abs=2e-9)
    assert after.left <= left + 1e-10
    assert after.remaining(T.gaussian(mu)) == T.gaussian(after.left)


@given(epsilon=st.floats(0.02, 1.5), mu=st.floats(0.5, 3.0))
@settings(max_examples=25, deadline=None)
def test_residue_is_never_worse_than_the_sum_of_squares_and_is_safe(epsilon, mu):
    child, after = T.pure(epsilon), oc.accumulators.residue(mu).start(None).after(T.pure(epsilon))
    own = pure_to_gaussian(epsilon)
    if own <= mu:
        assert after.left >= math.sqrt(mu**2 - own**2) * (1 - 1e-9)
    if after.left is None:
        return
    whole, budget = child.compose(T.gaussian(after.left)), T.gaussian(mu)
    for point in (-3.0, -1.0, 0.0, 0.3, 1.0, 2.0, 4.0, 8.0, 12.0):
        assert whole.delta_bounds(point).lower <= budget.delta(point)
    # and nothing much larger would be: the search is tight
    more = child.compose(T.gaussian(min(mu, after.left * 1.05 + 1e-3)))
    if after.left < 0.99 * mu and epsilon > 0.2:
        assert any(
            more.delta_bounds(point).lower > budget.delta_bounds(point).upper
            for point in [0.02 * n for n in range(600)]
        )


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
    """(sensitivity + 1) / scale, proven in measurements/gaussian.py."""
    child = T.discrete_gaussian(10.0)
    assert child.gaussian_bound == 0.2
    assert oc.accumulators.residue(1.0).start(None).after(child).left == pytest.approx(
        math.sqrt(0.96)
    )
    assert child.units(T.gaussian(0.11)) == 4


def test_what_is_left_below_the_budget_is_that_of_the_squares():
    after = oc.accumulators.residue(1.0).start(None).after(T.gaussian(0.6))
    assert after.remaining(T.gaussian(0.9)).mu == pytest.approx(math.sqrt(0.81 - 0.36))


def test_nothing_remains_of_a_budget_that_a_child_used_up():
    budget = T.gaussian(1.0)
    used = oc.accumulators.residue(mu=1.0).start(None).after(T.worst())
    assert used.remaining(budget) == T.gaussian(0.0)
    assert used.remaining(T.gaussian(0.5)) == T.gaussian(0.0)


def test_a_record_of_residues_continues_identically():
    rule = oc.accumulators.residue(1.0)
    after = rule.start(None).after(T.pure(0.3)).after(T.laplace(0.2))
    restored = rule.from_record(None, after.to_record())
    assert restored == after
    assert restored.after(T.pure(0.1)) == after.after(T.pure(0.1))


@pytest.mark.parametrize("mu", [0.0, math.inf, 1e3])
def test_a_residue_needs_a_finite_budget(mu):
    with pytest.raises(InvalidValueError, match="mu"):
        oc.accumulators.residue(mu)


# --- slots ---------------------------------------------------------------------------------


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


def test_a_child_without_loss_takes_nothing():
    plan = slots(*pures(0.5))
    assert plan.taking(T.identity()) == plan


def test_the_loss_is_that_of_all_slots_from_the_first_launch_on():
    plan = slots(T.gaussian(0.5), T.pure(0.1))
    assert plan.loss == T.identity()
    assert plan.after(T.pure(0.1)).loss == T.gaussian(0.5).compose(T.pure(0.1))
    assert plan.after(T.worst()).left == ()


def test_the_refusal_tells_what_is_left():
    refusal = AnyOrder().admits(slots(*pures(0.5, 0.1)), T.gaussian(1.0))
    assert isinstance(refusal, BudgetExceededError)
    assert refusal.remaining == pures(0.1, 0.5)


def test_covers_come_in_order_of_their_cost():
    random.seed(0)
    left = pures(*(random.uniform(0.05, 0.6) for _ in range(6)))
    costs = [
        sum(one.affinity_cost for one in taken) for taken in islice(covers(left, T.pure(0.2)), 12)
    ]
    assert len(costs) == 12
    assert costs == sorted(costs)


def test_a_long_plan_is_searched_and_the_answer_is_sound():
    left = pures(*(0.01 * n for n in range(1, 25)))
    plan = slots(*left)
    child = T.laplace(0.4)
    after = plan.taking(child)
    assert after is not None
    taken = list(plan.left)
    for slot in after.left:
        taken.remove(slot)
    assert child <= T.identity().compose(*taken)


# --- the product ---------------------------------------------------------------------------


def test_when_the_search_is_given_up_what_is_not_needed_is_kept():
    """Of nine kinds at once none is looked for; the dearest that cover are taken, less spare ones.

    The dearest slot never fails, so it covers no failure; the next one does, and is what is asked.
    """
    child = T.approximate(0.0, 0.3)
    cheap = pures(*(0.001 * n for n in range(1, 40)))
    plan = slots(*cheap, child, T.pure(2.0))
    assert plan.taking(child).left == slots(*cheap, T.pure(2.0)).left


def test_a_product_composes_and_compares():
    start = Products().start(T.identity())
    after = start.after(T.pure(0.1), 3).after(T.gaussian(0.2))
    assert after.loss == T.pure(0.1).power(3).compose(T.gaussian(0.2))
    assert after.within(after.loss)
    assert not after.within(T.pure(0.1))
    with pytest.raises(InvalidTypeError, match="d_mid must be a TradeoffFunction, found float"):
        start.after(0.5)
