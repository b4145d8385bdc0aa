"""No analyst exceeds what any measure and rule of the package promises.

The solver that finds the worst analyst is compared with brute force and closed forms.
"""

import math
import random
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from opendp_concurrent.measures import registered
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE
from opendp_concurrent.verify.adversary import Item, Lattice, Send, Stop

from .promises import (
    JUST_BELOW,
    ROUNDING,
    RULES,
    Outcome,
    promises,
)

PROMISES = promises()
MANY = 16  # menus for each promise, and a budget for each part of its distance
FEW = 3  # the wider a menu and the more menus, the longer: seconds for each promise
each_promise = pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
EXACT, LITTLE = 1.0, 1e-5


@pytest.mark.parametrize(
    ("pairs", "widest"), [(FEW, 3), pytest.param(MANY, 5, marks=pytest.mark.slow)]
)
@each_promise
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
    own = [one for one in registered() if one.__module__.startswith("opendp_concurrent.")]
    assert {name[0] for name in names} == {one.kind for one in own}
    for rule in (*RULES, "from_rule", "ladder", "residue"):
        assert any(rule in name for name in names)
        assert rule in oc.accumulators.__all__


MENUS = [([0.25, 0.5], [2, 1]), ([0.5, 1.0], [1, 2])]


@each_promise
def test_a_rule_that_admits_a_hundred_thousandth_too_much_is_noticed(promise):
    """The same analysts and rules; one part of the budget at a time, just below what is needed."""
    promise = next(one for one in promises(loosened=1 + LITTLE) if one.name == promise.name)
    for epsilons, counts in MENUS:
        outcomes = promise.check(epsilons, counts)
        for part in promise.parts:
            mine = [outcome for outcome in outcomes if outcome.part == part]
            assert max(outcome.excess for outcome in mine) > 100 * ROUNDING, (part, epsilons)


@each_promise
def test_a_budget_that_launches_use_up_is_used_up(promise):
    """So that what is noticed is the excess, not a promise that is far away."""
    outcomes = promise.check([0.25, 0.5], [2, 1], EXACT)
    assert max(outcome.share for outcome in outcomes) == pytest.approx(1.0, abs=1e-6)


def test_pure_privacy_is_judged_by_its_loss_however_little_mass_has_it():
    """41 launches of 0.05 under 2.0: a δ of 6e-14, which no tolerance for δ would notice."""
    menu = [Item("0.05", 0.05, verify.randomized_response(0.05))]
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

    menu, losses = [Item("0.1", 0.1, verify.randomized_response(0.1))], [Fraction(0.1)]
    worst = verify.worst_loss(menu, 0.0, Nearest(), losses=losses)
    assert Outcome("epsilon", "largest loss", worst, 0.3).excess > 0.0
    kept = verify.worst_loss(menu, MAX_DIVERGENCE.total(), Within(0.3), losses=losses)
    assert Outcome("epsilon", "largest loss", kept, 0.3).excess <= 0.0


def test_what_is_left_out_of_a_strategy_is_in_the_upper_bound():
    """Launches that gain less than 1e-15 each; the analyst who makes them is not believed away."""
    menu = [Item("rare", 1.0, verify.FiniteMechanism((1e-16, 1.0), (0.0, 1.0)))]
    found = verify.worst_analyst(menu, MAX_DIVERGENCE.total(), Within(9.0), 1.0)
    assert found.delta == 0.0
    assert 9e-16 <= found.delta_upper < 1e-13
    assert verify.worst_loss(menu, MAX_DIVERGENCE.total(), Within(9.0)) == inf


@each_promise
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
    leak = Item("leak", (0.0, 0.0), verify.FiniteMechanism((1, 0), (0, 1)))
    with pytest.raises(InvalidValueError, match="'leak' is admitted at no cost"):
        verify.worst_analyst([leak], start, Within((1.0, 0.0)), 0.5)
    idle = Item("idle", (0.0, 0.0), verify.FiniteMechanism((0.5, 0.5), (0.5, 0.5)))
    menu = [idle, *verify.response_menu(1.0)]
    found = verify.worst_analyst(menu, start, Within((1.0, 0.0)), 0.5)
    assert found.delta == pytest.approx(verify.randomized_response(1.0).delta(0.5))


# --- the solver --------------------------------------------------------------------------------


def views(menu, rule, state, children=()):
    """Laws of the views of all deterministic analysts, who also interleave queries."""
    yield ((1.0, 1.0),)
    for answers in moves(menu, rule, state, children):
        below = [list(views(menu, rule, *after)) for _, *after in answers]
        for onward in product(*below):
            yield tuple(
                (p * one, q * other)
                for ((p, q), *_), view in zip(answers, onward, strict=True)
                for one, other in view
            )


def moves(menu, rule, state, children):
    """For each launch and query: its answers, each with the state and the children after it."""
    for item in menu:
        after = rule.admits(state, item.d_mid)
        if isinstance(after, BudgetExceededError):
            continue
        if isinstance(item.mechanism, verify.FiniteMechanism):
            yield [(pair, after, children) for pair in item.mechanism.pairs]
        else:
            yield [((1.0, 1.0), after, (*children, (item.mechanism, ())))]
    for place, (machine, history) in enumerate(children):
        others = (*children[:place], *children[place + 1 :])
        for query in range(machine.queries(len(history))):
            answers = []
            for answer, pair in enumerate(machine.answers(history, query)):
                told = (*history, (query, answer))
                left = others if len(told) == machine.rounds else (*others, (machine, told))
                answers.append((pair, state, left))
            yield answers


def brute_force(menu, rule, state, leaf):
    both = leaf, lambda p, q: leaf(q, p)
    return max(
        sum(one(*pair) for pair in view) for view in views(menu, rule, state) for one in both
    )


def excess(epsilon):
    return lambda p, q: max(0.0, p - math.exp(epsilon) * q)


@pytest.mark.parametrize("seed", range(220))
def test_the_solver_equals_the_enumeration_of_all_analysts(seed):
    generator = np.random.default_rng(seed)
    answers = [2, 2] if seed % 2 else [2, 3]
    depth = 3 if seed % 2 else 2
    bounds = generator.uniform(0.2, 2, size=2)
    mechanisms = [
        verify.random_mechanism(1000 * seed + index, count, epsilon=float(bound))
        for index, (count, bound) in enumerate(zip(answers, bounds, strict=True))
    ]
    if seed % 5 == 0:  # answers that are impossible on one dataset
        mechanisms[0] = verify.randomized_response(0.5, 0.125)
        depth = 2 if seed % 2 else 1
    menu = [
        Item(str(index), float(generator.integers(1, 3)), one)
        for index, one in enumerate(mechanisms)
    ]
    rule, start = Within(float(depth)), MAX_DIVERGENCE.total()
    for epsilon in (0.0, 0.4, 1.1):
        worst = verify.worst_analyst(menu, start, rule, epsilon)
        exact = brute_force(menu, rule, start, excess(epsilon))
        assert worst.delta == pytest.approx(exact, abs=1e-12)
        assert worst.view.delta(epsilon) == pytest.approx(worst.delta, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_an_analyst_who_interleaves_queries_and_launches_equals_the_enumeration(seed):
    """One machine of two rounds and a coin, or the coin alone, four times."""
    machine = verify.random_interactive(seed, queries=1 + seed % 2, sharp=0.3 + seed % 3)
    if seed > 2:  # the first answer alone tells nothing: histories of one likelihood ratio
        first, second = machine.tables
        machine = verify.FiniteInteractiveMechanism((0 * first + first.mean(axis=0), second))
    coin = verify.random_mechanism(seed, 2, epsilon=1.0)
    menu = [Item("machine", 3.0, machine), Item("coin", 1.0, coin)]
    rule, start = Within(4.0), MAX_DIVERGENCE.total()
    for epsilon in (0.0, 0.4, 1.1):
        worst = verify.worst_analyst(menu, start, rule, epsilon)
        exact = brute_force(menu, rule, start, excess(epsilon))
        assert worst.delta == pytest.approx(exact, abs=1e-12)
        assert worst.delta <= worst.delta_upper <= exact + 1e-12
    for order in (1.0, 2.0, 6.0):
        moment = brute_force(menu, rule, start, power(order))
        exact = moment if order == 1.0 else math.log(moment) / (order - 1)
        assert verify.worst_renyi(menu, start, rule, order) == pytest.approx(exact, rel=1e-9)
    ratio = max(max(p / q, q / p) for view in views(menu, rule, start) for p, q in view)
    assert verify.worst_loss(menu, start, rule) == pytest.approx(math.log(ratio), rel=1e-9)


def power(order):
    def leaf(p, q):
        return p * math.log(p / q) if order == 1.0 else p**order * q ** (1 - order)

    return leaf


@pytest.mark.parametrize(
    ("spent", "admitted"),
    [
        (lambda launched, d_mid: sum(launched) + d_mid, 2),
        (lambda launched, d_mid: sum(launched[1:]) + d_mid, 3),
        (lambda launched, d_mid: sum(launched), 3),
    ],
    ids=["right", "forgets a child", "reads before it charges"],
)
def test_accounts_that_admit_one_child_too_many_are_noticed(spent, admitted):
    class Rule:
        def admits(self, launched, d_mid):
            if spent(launched, d_mid) > 1.2:
                return BudgetExceededError(None, d_mid, None)
            return (*launched, d_mid)

    machine = verify.random_interactive(3, queries=1)
    tables = [0.85 * one + 0.15 * one.mean(axis=0) for one in machine.tables]
    machine = verify.FiniteInteractiveMechanism(tuple(tables))
    menu = [Item("machine", 0.5, machine)]
    loss = machine.epsilon() / 0.5
    assert verify.worst_loss(menu, (), Rule()) == pytest.approx(admitted * machine.epsilon())
    worst = verify.worst_analyst(menu, (), Rule(), 1.2 * loss)
    assert (worst.delta > 1e-4) is (admitted == 3)


@pytest.mark.parametrize("epsilon0", [0.1, 1.0])
@pytest.mark.parametrize("k", [1, 2, 20])
@pytest.mark.parametrize("epsilon", [0.0, 0.8, 2.0])
def test_launches_of_one_kind_reach_the_optimal_composition(epsilon0, k, epsilon):
    """[KOV15]: the closed form is a binomial tail."""
    truth = 1 / (1 + math.exp(-epsilon0))
    lie, exact = 1 - truth, 0.0
    for j in range(k + 1):
        p, q = truth**j * lie ** (k - j), truth ** (k - j) * lie**j
        exact += math.comb(k, j) * max(0.0, p - math.exp(epsilon) * q)
    menu = verify.response_menu(epsilon0)
    state = (APPROXIMATE_MAX_DIVERGENCE.total(), k)
    found = verify.worst_analyst(menu, state, verify.Limited(Within((1e6, 0.0))), epsilon)
    assert found.delta == pytest.approx(exact, abs=1e-12)


def test_edges_of_the_solver():
    start = APPROXIMATE_MAX_DIVERGENCE.total()
    menu, one = verify.response_menu(1.0), Within((1.0, 0.0))
    for epsilon, error in ((math.nan, InvalidValueError), ("1", InvalidTypeError)):
        with pytest.raises(error, match="^epsilon"):
            verify.worst_analyst(menu, start, one, epsilon)
    with pytest.raises(InvalidValueError, match="^most .300. launches"):
        verify.worst_analyst(verify.response_menu(0.5), start, Within((500.0, 0.0)), 1.0)
    huge = verify.worst_analyst(verify.response_menu(30.0), start, Within((90.0, 0.0)), 1.0)
    assert huge.delta == pytest.approx(1.0)
    assert verify.worst_analyst(menu, start, Within((2.0, 0.0)), 1e3).delta == 0
    fails = [Item("fails", (0.5, 0.1), verify.randomized_response(0.5, 0.1))]
    assert verify.worst_renyi(fails, start, Within((1.0, 0.2)), 2.0) == inf


def pairs_of(menu):
    return [pair for one in menu for pair in one.pairs]


def test_rational_losses_share_a_step():
    menu = [verify.randomized_response(epsilon) for epsilon in (0.5, 0.75, 1.0)]
    lattice = Lattice(pairs_of(menu))
    assert lattice.steps == [pytest.approx(0.25)]
    counted = [sorted(lattice.steps_of(*pair) for pair in one.pairs) for one in menu]
    assert counted == [[(-2,), (2,)], [(-3,), (3,)], [(-4,), (4,)]]


def test_no_step_misses_its_loss_by_more_than_is_said():
    menu = [verify.random_mechanism(seed, 4, epsilon=2.0) for seed in range(20)]
    lattice = Lattice(
        pairs_of([*menu, *(verify.randomized_response(one / 7) for one in range(1, 8))])
    )
    for one in menu:
        for p, q in one.pairs:
            assert abs(lattice.log(lattice.steps_of(p, q)) - math.log(p / q)) <= lattice.error
    assert lattice.error < 1e-12


def by_enumeration(readings, epsilon):
    """Each rule when to stop is a set of answers so far that no other of them begins."""
    up = 1 / (1 + math.exp(-epsilon))

    def best(seen):
        first = math.prod(up if one else 1 - up for one in seen)
        second = math.prod(1 - up if one else up for one in seen)
        stopped = max(0.0, first - math.exp(readings[len(seen) - 1]) * second) if seen else 0.0
        if len(seen) == len(readings):
            return stopped
        return max(stopped, sum(best((*seen, one)) for one in (True, False)))

    return best(())


def test_the_worst_time_is_that_of_all_rules():
    for readings in product([0.0, 0.4, 1.1], repeat=4):
        found = oc.verify.worst_stopping(readings, 0.5)
        assert found == pytest.approx(by_enumeration(readings, 0.5), abs=1e-14)


def test_the_strategy_can_be_read():
    menu, start = verify.response_menu(0.5, 1.0), APPROXIMATE_MAX_DIVERGENCE.total()
    found = verify.worst_analyst(menu, start, Within((1.5, 0.0)), 1.0)
    assert isinstance(found.strategy, Send)
    text = str(found.strategy)
    assert text.startswith("launch 0.5\n  answer 0 (0.6225 | 0.3775): launch 1")
    assert "stop at loss 1.5" in text
    nothing = verify.worst_analyst(menu, start, Within((0.1, 0.0)), 1.0)
    assert isinstance(nothing.strategy, Stop)
    assert nothing.delta == 0.0


def test_the_worse_order_of_the_datasets_is_told_and_answers_keep_their_numbers():
    one = verify.FiniteMechanism((0.0, 0.5, 0.5, 0.0), (0.0, 0.7, 0.2, 0.1))
    for mechanism, swapped in ((one, True), (one.swapped, False)):
        menu = [Item("x", 1.0, mechanism)]
        found = verify.worst_analyst(menu, MAX_DIVERGENCE.total(), Within(1.0), 1.0)
        assert found.swapped is swapped
        assert found.delta == pytest.approx(0.1)
        assert found.view.delta(1.0) == pytest.approx(0.1)
        branches = found.strategy.branches
        assert [pair[:2] for pair in branches] == list(
            zip(mechanism.first, mechanism.second, strict=True)
        )
        assert branches[3][2].loss == (-inf if swapped else inf)
