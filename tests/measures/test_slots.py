"""Slots of a plan that a child of another loss may take."""

import random
from itertools import islice

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.measures.slots import AnyOrder, Slots, covers

T = oc.TradeoffFunction


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
