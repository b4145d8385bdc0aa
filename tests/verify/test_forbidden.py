"""Rules that the package refuses fail: the counterexamples, with their numbers."""

import random

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.measures.conversion import largest_divergence
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE

from .forbidden import BestOrder, EitherUndivided, NaturalOptimal, optimal_delta, second_stage_gain


def test_the_natural_filter_fails_with_pure_children_only():
    """ε = 0.5: first 0.5, then 1 or twice 0.7425 by the answer; 0.2876 claimed, 0.3543 true."""
    claimed, true = second_stage_gain(0.5, [(1.0,), (0.7425, 0.7425)], 0.5)
    assert claimed == pytest.approx(0.2876491366, abs=1e-10)
    assert true == pytest.approx(0.3542546401, abs=1e-10)
    menu = verify.response_menu(0.5, 0.7425, 1.0)
    worst = verify.worst_analyst(menu, (), NaturalOptimal(0.5, claimed), 0.5)
    assert worst.delta == pytest.approx(true, abs=1e-10)
    assert str(worst.strategy).startswith("launch 0.5\n")


def test_the_natural_filter_fails_by_a_larger_factor():
    """Found by a search: a small probe, then one large launch or nine small ones."""
    probe, large, small, count, epsilon = WORSE
    claimed, true = second_stage_gain(probe, [(large,), (small,) * count], epsilon)
    assert true / claimed > 1.47
    assert optimal_delta((probe, large), epsilon) == pytest.approx(claimed, rel=1e-6)
    menu = verify.response_menu(probe, small, large)
    rule = verify.Limited(NaturalOptimal(epsilon, claimed * (1 + 1e-9)))
    worst = verify.worst_analyst(menu, ((), 1 + count), rule, epsilon)
    assert worst.delta >= true * (1 - 1e-9)
    assert worst.delta > 1.47 * claimed


def test_the_natural_filter_fails_with_children_that_fail():
    """7.8(a): RR_1, then RR_1 again, or one that tells all with probability 0.21."""
    delta = 0.2102883690
    menu = [
        *verify.response_menu(1.0),
        verify.Item("tell", (0.0, delta), verify.randomized_response(0.0, delta)),
    ]
    natural = NaturalOptimal(1.5, delta + 1e-9)
    worst = verify.worst_analyst(menu, (), natural, 1.5)
    assert worst.delta == pytest.approx(0.2668436218, abs=1e-8)


def test_no_counterexample_is_known_to_either_of_two_orders_at_an_undivided_slack():
    """Evidence, not proof: renyi at two orders, randomized responses, at most four launches."""
    generator, largest = random.Random(1), 0.0
    for _ in range(12):
        delta, epsilon = generator.choice([0.5, 0.3, 0.1]), generator.uniform(1.0, 5.0)
        orders = sorted(generator.sample([1.2, 1.5, 2.0, 3.0, 6.0, 20.0], 2))
        menu = verify.response_menu(*(generator.uniform(0.3, 4.0) for _ in range(3)))
        start = oc.accumulators.either(
            *(oc.accumulators.renyi(order, delta) for order in orders)
        ).start(None)
        rule = verify.Limited(EitherUndivided(epsilon, delta))
        worst = verify.worst_analyst(menu, (start, 4), rule, epsilon)
        largest = max(largest, worst.delta / delta)
    assert 0.5 < largest <= 1.0


@pytest.mark.parametrize(
    "other", [oc.accumulators.renyi(20.0, delta_slack=1e-11), oc.accumulators.basic()], ids=str
)
def test_the_least_of_two_losses_at_an_undivided_slack_fails(other):
    """ε = 3, δ = 0.0324, one order: a child that may fail goes to the rule without a slack."""
    delta = 0.0324
    large = oc.accumulators.renyi(20.0, delta_slack=delta)
    menu = [
        *verify.response_menu(1.0, 2.0512),
        verify.Item("tell", (0.0, 0.032), verify.randomized_response(0.0, 0.032)),
    ]
    start = oc.accumulators.either(other, large).start(None)
    undivided = verify.Limited(EitherUndivided(3.0, delta))
    worst = verify.worst_analyst(menu, (start, 2), undivided, epsilon=3.0)
    assert worst.delta == pytest.approx(0.0409, abs=5e-5)
    for rule in (
        large,
        oc.accumulators.either(other, oc.accumulators.renyi(20.0, delta_slack=delta - 1e-4)),
    ):
        worst = verify.worst_analyst(
            menu, rule.start(APPROXIMATE_MAX_DIVERGENCE), Within((3.0, delta)), 3.0
        )
        assert worst.delta <= delta


WORSE = (0.0237811294, 1.312543194, 0.2510465329, 9, 1.2895172438)


def test_the_best_order_along_the_path_fails():
    """ε = 3.1, δ = 1e-3, orders 4 and 60, conversion as tight as ours: 1.898e-3 true."""
    rule = BestOrder((4.0, 60.0), 3.1, 1e-3)
    assert largest_divergence(4.0, 3.1, 1e-3) == pytest.approx(1.5471950998, abs=1e-10)
    assert largest_divergence(60.0, 3.1, 1e-3) == pytest.approx(3.0691221909, abs=1e-10)
    menu = [
        rule.bit("probe", 0.0577, 0.0506),
        rule.bit("wide", 0.9519797737, 0.0480202260),
        rule.bit("rare", 0.0038474, 0.00012904),
    ]
    worst = verify.worst_analyst(menu, (rule.start, 2), verify.Limited(rule), 3.1)
    assert worst.delta == pytest.approx(1.8980e-3, abs=1e-7)
    assert worst.delta > 1e-3
    assert "launch wide" in str(worst.strategy)
    assert "launch rare" in str(worst.strategy)


@pytest.mark.parametrize("order", [4.0, 60.0])
def test_one_order_fixed_up_front_holds_on_the_same_menu(order):
    rule = BestOrder((order,), 3.1, 1e-3)
    menu = [
        rule.bit("probe", 0.0577, 0.0506),
        rule.bit("wide", 0.9519797737, 0.0480202260),
        rule.bit("rare", 0.0038474, 0.00012904),
    ]
    for launches in (1, 2, 4):
        worst = verify.worst_analyst(menu, (rule.start, launches), verify.Limited(rule), 3.1)
        assert worst.delta <= 1e-3


def test_two_orders_hold_where_their_budgets_are_at_half_of_delta():
    rule = BestOrder((4.0, 60.0), 3.1, 0.5e-3)
    menu = [
        rule.bit("probe", 0.0577, 0.0506),
        rule.bit("wide", 0.9519797737, 0.0480202260),
        rule.bit("rare", 0.0038474, 0.00012904),
        rule.bit("less wide", 0.95, 0.05),
    ]
    worst = verify.worst_analyst(menu, (rule.start, 3), verify.Limited(rule), 3.1)
    assert worst.delta <= 1e-3


def test_optimal_composition_against_printed_values():
    assert optimal_delta((0.2, 0.2, 0.3, 0.5), 0.5303065627) == pytest.approx(0.1, rel=1e-6)
    assert optimal_delta((0.1,) * 10, 0.9936911768) == pytest.approx(1e-5, rel=1e-5)
    assert optimal_delta((0.1,) * 10, 0.7535731549) == pytest.approx(1e-3, rel=1e-6)
