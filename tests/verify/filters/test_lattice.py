"""Likelihood ratios as whole numbers of steps."""

import itertools
import math

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE
from opendp_concurrent.verify.adversary import Item, Lattice, Send, Stop


def pairs_of(menu):
    return [pair for one in menu for pair in one.pairs]


def test_rational_losses_share_a_step():
    menu = [verify.randomized_response(epsilon) for epsilon in (0.5, 0.75, 1.0)]
    lattice = Lattice(pairs_of(menu))
    assert lattice.steps == [pytest.approx(0.25)]
    counted = [sorted(lattice.steps_of(*pair) for pair in one.pairs) for one in menu]
    assert counted == [[(-2,), (2,)], [(-3,), (3,)], [(-4,), (4,)]]


def test_other_losses_have_steps_of_their_own():
    lattice = Lattice(pairs_of(map(verify.randomized_response, (1.0, math.sqrt(2)))))
    assert lattice.steps == [pytest.approx(1.0), pytest.approx(math.sqrt(2))]


def test_ratios_do_not_depend_on_the_order_of_launches():
    menu = [verify.random_mechanism(seed, 3, epsilon=1.0) for seed in range(3)]
    lattice = Lattice(pairs_of(menu))
    answers = [(*one.pairs[0], lattice.steps_of(*one.pairs[0])) for one in menu]

    def ratio(order):
        found = lattice.origin
        for index in order:
            found = lattice.after(found, answers[index][2])
        return found

    assert ratio((0, 1, 2, 0)) == ratio((2, 0, 0, 1))
    exact = sum(math.log(answers[index][0] / answers[index][1]) for index in (0, 1, 2, 0))
    assert lattice.log(ratio((0, 1, 2, 0))) == pytest.approx(exact, abs=4 * lattice.error)


def test_no_step_misses_its_loss_by_more_than_is_said():
    menu = [verify.random_mechanism(seed, 4, epsilon=2.0) for seed in range(20)]
    lattice = Lattice(
        pairs_of([*menu, *(verify.randomized_response(one / 7) for one in range(1, 8))])
    )
    for one in menu:
        for p, q in one.pairs:
            assert abs(lattice.log(lattice.steps_of(p, q)) - math.log(p / q)) <= lattice.error
    assert lattice.error < 1e-12


# --- the largest divergence of an order, over all analysts ---------------------------------------


def test_infinite_divergences_are_told():
    menu = [Item("fails", (0.5, 0.1), verify.randomized_response(0.5, 0.1))]
    start = APPROXIMATE_MAX_DIVERGENCE.total()
    assert verify.worst_renyi(menu, start, Within((1.0, 0.2)), 2.0) == math.inf


# --- test_stopping -------------------------------------------------------------------------------


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
    for readings in itertools.product([0.0, 0.4, 1.1], repeat=4):
        found = oc.verify.worst_stopping(readings, 0.5)
        assert found == pytest.approx(by_enumeration(readings, 0.5), abs=1e-14)


# --- strategies are read, followed and printed ---------------------------------------------------


def test_the_strategy_can_be_read():
    menu = verify.response_menu(0.5, 1.0)
    found = verify.worst_analyst(menu, APPROXIMATE_MAX_DIVERGENCE.total(), Within((1.5, 0.0)), 1.0)
    assert isinstance(found.strategy, Send)
    text = str(found.strategy)
    assert text.startswith("launch 0.5\n  answer 0 (0.6225 | 0.3775): launch 1")
    assert "stop at loss 1.5" in text
    nothing = verify.worst_analyst(
        menu, APPROXIMATE_MAX_DIVERGENCE.total(), Within((0.1, 0.0)), 1.0
    )
    assert isinstance(nothing.strategy, Stop)
    assert nothing.delta == 0.0


def test_the_worse_order_of_the_datasets_is_told_and_answers_keep_their_numbers():
    one = verify.FiniteMechanism((0.0, 0.5, 0.5, 0.0), (0.0, 0.7, 0.2, 0.1))
    for mechanism, swapped in ((one, True), (one.swapped, False)):
        found = verify.worst_analyst(
            [Item("x", 1.0, mechanism)], MAX_DIVERGENCE.total(), Within(1.0), 1.0
        )
        assert found.swapped is swapped
        assert found.delta == pytest.approx(0.1)
        assert found.view.delta(1.0) == pytest.approx(0.1)
        branches = found.strategy.branches
        assert [pair[:2] for pair in branches] == list(
            zip(mechanism.first, mechanism.second, strict=True)
        )
        assert branches[3][2].loss == (-math.inf if swapped else math.inf)
