"""No analyst exceeds what any measure and rule of the package promises."""

import random
from fractions import Fraction
from math import inf

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError
from opendp_concurrent.measures import registered
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE

from ...build import APPROXIMATE
from .promises import (
    JUST_BELOW,
    OMEGA,
    ROUNDING,
    RULES,
    Budget,
    Outcome,
    promises,
    steep_mechanism,
    theorem_epsilon,
)

PROMISES = promises()
MANY = 16  # menus for each promise, and a budget for each part of its distance
FEW = 3  # the wider a menu and the more menus, the longer: seconds for each promise


EXACT, LITTLE = 1.0, 1e-5


@pytest.mark.parametrize(
    ("pairs", "widest"), [(FEW, 3), pytest.param(MANY, 5, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_no_analyst_exceeds_a_promise(promise, pairs, widest):
    generator = random.Random(promise.name)  # seeded; no privacy hangs on it
    outcomes = []
    for _ in range(pairs):
        unit = generator.choice([0.2, 0.25, 0.5])
        epsilons = [unit * multiple for multiple in generator.sample(range(1, widest + 1), 2)]
        share = generator.choice([EXACT, JUST_BELOW, 0.9])
        counts = generator.choice([(1, 1), (2, 1), (1, 2), (3, 1)])
        outcomes += promise.check(epsilons, counts, share)
    assert len(outcomes) >= pairs
    assert {outcome.part for outcome in outcomes} == set(promise.parts)
    assert max(outcome.excess for outcome in outcomes) <= ROUNDING


def test_every_measure_and_rule_is_held_against_analysts():
    assert sum(len(promise.parts) for promise in PROMISES) * FEW >= 75
    names = [promise.name.split(", ") for promise in PROMISES]
    families = {name[0] for name in names}
    assert families == {
        known.kind for known in registered() if known.__module__.startswith("opendp_concurrent.")
    }
    for rule in (*RULES, "from_rule", "ladder", "residue"):
        assert any(rule in name for name in names)
        assert rule in oc.accumulators.__all__


MENUS = [([0.25, 0.5], [2, 1]), ([0.5, 1.0], [1, 2])]


@pytest.mark.parametrize("index", range(len(PROMISES)), ids=lambda one: PROMISES[one].name)
def test_a_rule_that_admits_a_hundred_thousandth_too_much_is_noticed(index):
    """The same analysts and rules; one part of the budget at a time, just below what is needed."""
    promise = promises(loosened=1 + LITTLE)[index]
    for epsilons, counts in MENUS:
        outcomes = promise.check(epsilons, counts)
        for part in promise.parts:
            mine = [outcome for outcome in outcomes if outcome.part == part]
            assert max(outcome.excess for outcome in mine) > 100 * ROUNDING, (part, epsilons)


@pytest.mark.parametrize("index", range(len(PROMISES)), ids=lambda one: PROMISES[one].name)
def test_a_budget_that_launches_use_up_is_used_up(index):
    """So that what is noticed is the excess, not a promise that is far away."""
    outcomes = PROMISES[index].check([0.25, 0.5], [2, 1], EXACT)
    assert max(outcome.share for outcome in outcomes) == pytest.approx(1.0, abs=1e-6)


def test_pure_privacy_is_judged_by_its_loss_however_little_mass_has_it():
    """41 launches of 0.05 under 2.0: a δ of 6e-14, which no tolerance for δ would notice."""
    menu = [verify.Item("0.05", 0.05, verify.randomized_response(0.05))]
    start, rule = MAX_DIVERGENCE.total(), Within(2.05 + 1e-9)
    assert verify.worst_analyst(menu, start, rule, 2.0).delta_upper < 1e-12
    assert verify.worst_loss(menu, start, rule) == pytest.approx(2.05, abs=1e-12)
    exact = verify.worst_loss(menu, start, rule, losses=[Fraction(0.05)])
    assert exact == 41 * Fraction(0.05)


def test_one_unit_in_the_last_place_is_noticed_under_pure_privacy():
    """A rule that rounds to nearest admits 0.1 three times under the double 0.3."""

    class Nearest:
        def admits(self, state, d_mid):
            after = state + d_mid
            return after if after <= 0.1 + 0.1 + 0.1 else BudgetExceededError(0, 0, 0)

    menu, losses = [verify.Item("0.1", 0.1, verify.randomized_response(0.1))], [Fraction(0.1)]
    worst = verify.worst_loss(menu, 0.0, Nearest(), losses=losses)
    assert Outcome("epsilon", "largest loss", worst, 0.3).excess > 0.0
    kept = verify.worst_loss(menu, MAX_DIVERGENCE.total(), Within(0.3), losses=losses)
    assert Outcome("epsilon", "largest loss", kept, 0.3).excess <= 0.0


def test_what_is_left_out_of_a_strategy_is_in_the_upper_bound():
    """Launches that gain less than 1e-15 each; the analyst who makes them is not believed away."""
    menu = [verify.Item("rare", 1.0, verify.FiniteMechanism((1e-16, 1.0), (0.0, 1.0)))]
    found = verify.worst_analyst(menu, MAX_DIVERGENCE.total(), Within(9.0), 1.0)
    assert found.delta == 0.0
    assert 9e-16 <= found.delta_upper < 1e-13
    told = verify.worst_loss(menu, MAX_DIVERGENCE.total(), Within(9.0))
    assert told == inf


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_no_analyst_of_many_small_launches_exceeds_a_promise(promise):
    assert max(outcome.excess for outcome in promise.check([0.1, 0.3], [4, 1])) <= ROUNDING


def test_a_launch_that_costs_nothing_and_tells_something_raises():
    class Never:
        def admits(self, state, d_mid):
            return state

    start = APPROXIMATE_MAX_DIVERGENCE.total()
    for worst, at in ((verify.worst_analyst, 0.5), (verify.worst_renyi, 2.0)):
        with pytest.raises(InvalidValueError, match="admitted at no cost, so without limit"):
            worst(verify.response_menu(1.0), start, Never(), at)
    leak = verify.Item("leak", (0.0, 0.0), verify.FiniteMechanism((1, 0), (0, 1)))
    with pytest.raises(InvalidValueError, match="'leak' is admitted at no cost"):
        verify.worst_analyst([leak], start, Within((1.0, 0.0)), 0.5)
    idle = verify.Item("idle", (0.0, 0.0), verify.FiniteMechanism((0.5, 0.5), (0.5, 0.5)))
    menu = [idle, *verify.response_menu(1.0)]
    found = verify.worst_analyst(menu, start, Within((1.0, 0.0)), 0.5)
    assert found.delta == pytest.approx(verify.randomized_response(1.0).delta(0.5))


def test_the_steep_mechanism_is_worse_above_omega_than_below():
    """Its divergence over the order grows: a promise at more orders is broken by it."""
    steep = steep_mechanism()
    shares = [steep.renyi(order) / order for order in (2.0, 4.0, OMEGA, 2 * OMEGA)]
    assert shares == sorted(shares)
    assert shares[-1] > 1.05 * shares[-2]


def test_a_theorem_is_never_above_what_its_rule_declares():
    measure = oc.extend.composition_measure(APPROXIMATE)
    for rule in RULES.values():
        accounting = rule(Budget([0.25], [40], "epsilon", 1.0, 1.0))
        declared = accounting.start(measure).after((0.25, 0.0), 40).loss[0]
        told = theorem_epsilon(accounting, [verify.randomized_response(0.25)], [40])
        assert told <= declared * (1 + 1e-12)
