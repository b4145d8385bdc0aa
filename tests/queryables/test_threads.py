"""Many threads, one budget."""

import sys
from collections import Counter

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, ClosedChildError

from ..build import in_threads


@pytest.fixture(autouse=True)
def _switch_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_eight_threads_spend_exactly_a_budget_for_1_500(space):
    unit = dp.m.make_user_measurement(
        *space, dp.max_divergence(), lambda rows: 1, lambda d_in: 0.25 * d_in, TO="i32"
    )
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 375.0)([1, 2, 3])
    compositor = dp.c.make_adaptive_composition(*space, dp.max_divergence(), 1, [0.0] * 8 * 50)
    free = dp.m.make_user_measurement(
        *space, dp.max_divergence(), lambda rows: 2, lambda d_in: 0.0, TO="i32"
    )
    child = root(compositor)
    outcomes = [Counter() for _ in range(8)]

    def work(number):
        last = 0.0
        for turn in range(250):
            try:
                assert root(unit) == 1
                outcomes[number]["answered"] += 1
            except BudgetExceededError:
                outcomes[number]["refused"] += 1
            except Exception as error:
                outcomes[number][type(error).__name__] += 1
            if turn % 100 == 0:
                outcomes[number]["child"] += child(free) == 2
                reading = root.privacy_loss()
                assert reading >= last
                last = reading

    in_threads(work, range(8))
    total = sum(outcomes, Counter())
    assert total == {"answered": 1_500, "refused": 500, "child": 24}
    assert root.privacy_loss() == 375.0
    assert root.remaining() == 0.0


def test_threads_share_a_filter_whose_children_exclude_others(space):
    measure = dp.approximate(dp.zero_concentrated_divergence())
    gaussian = dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=1000.0))
    compositor = dp.c.make_adaptive_composition(*space, measure, 1, [(1e-6, 1e-12)] * 5)
    root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, measure), 1, (1.0, 1e-6))(
        [1] * 10
    )
    outcomes = [Counter() for _ in range(4)]

    def work(number):
        for _ in range(50):
            child = root(compositor)
            try:
                child(gaussian)
                outcomes[number]["answered"] += 1
            except Exception as error:
                outcomes[number][type(error).__name__] += 1

    in_threads(work, range(4))
    total = sum(outcomes, Counter())
    assert sum(total.values()) == 200
    assert set(total) <= {"answered", "ClosedChildError"}
    assert root.privacy_loss()[0] == pytest.approx(200 * 5e-6)


def test_threads_share_what_is_nested_below_a_child_that_excludes_others(space):
    """Grandchildren ask OpenDP's sequential compositor around the child: all must take turns."""
    measure = dp.approximate(dp.zero_concentrated_divergence())
    odometer = oc.make_concurrent_odometer(*space, measure)
    root = oc.make_concurrent_filter(odometer, 1, (50.0, 1e-3))([1] * 10)
    gaussian = dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=1e4))
    pure = oc.make_concurrent_odometer(*space, dp.max_divergence())
    bounded = oc.make_concurrent_filter(pure, 1, 1.0)
    whole = dp.c.make_approximate(dp.c.make_pureDP_to_zCDP(bounded))
    query = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1e5)
    native = dp.c.make_adaptive_composition(*space, dp.max_divergence(), 1, [1e-5] * 1000)
    child = root(
        dp.m.make_user_measurement(
            *space, measure, whole, lambda d_in: (1.0, 1e-6), TO="ExtrinsicObject"
        )
    )
    grandchild = child(native)
    outcomes = [Counter() for _ in range(4)]

    def work(number):
        for turn in range(100):
            try:
                if number == 3 and turn == 50:
                    root(gaussian)  # closes all the others
                else:
                    (child if number % 2 else grandchild)(query)
                outcomes[number]["answered"] += 1
            except Exception as error:
                outcomes[number][type(error).__name__] += 1

    in_threads(work, range(4))
    total = sum(outcomes, Counter())
    assert sum(total.values()) == 400
    assert set(total) <= {"answered", "ClosedChildError"}
    for closed in (child, grandchild):
        with pytest.raises(ClosedChildError):
            closed(query)
