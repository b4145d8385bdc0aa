"""0.1.0 took for the same, kept by reference, or took back what must be values."""

import math

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError
from opendp_concurrent.ledger import create_ledger

from ..build import PURE, RENYI, SPACE, an_odometer, costing, laplace, opened

LAPLACE = laplace(0.25)


def test_what_would_happen_does_not_leave_out_launches_that_do_not_fit():
    root = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.125])([1])
    assert root.loss_after([LAPLACE]) == 0.25
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE, LAPLACE])
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE] * 3)
    assert (root.privacy_loss(), root.remaining()) == (0.0, (0.25, 0.125))
    limit = opened(0.5)
    assert limit.loss_after([LAPLACE] * 3) == 0.75  # a filter says how much it would be


def test_slots_likewise():
    functions = [oc.TradeoffFunction.pure(0.25), oc.TradeoffFunction.pure(0.125)]
    root = oc.make_concurrent_composition(*SPACE, oc.tradeoff(), 1, functions, order="any")([1])
    dear = oc.c.cast(laplace(2.0), oc.tradeoff())
    with pytest.raises(BudgetExceededError):
        root.loss_after([dear])


def test_a_curve_is_what_it_was_when_it_was_launched():
    slope = [1.0]
    user = costing(lambda d_in: lambda alpha: slope[0] * alpha, measure=RENYI)
    root = an_odometer(RENYI)([1])
    root.privacy_loss(1)
    root(user)
    slope[0] = 0.0
    loss = root.privacy_loss(1)
    assert [loss(2.0), loss(16.0), loss(2.2)] == [2.0, 16.0, 2.5]
    assert loss(1e9) == math.inf


# --- priced and run ------------------------------------------------------------------------------


ODOMETER, COUNT = an_odometer(), laplace(0.2)


class Copies:
    """A transformation whose function copies each row, as often as its stability says."""

    def __init__(self, times=1):
        self.times, self.ran = times, []
        self.transformation = dp.t.make_user_transformation(
            *SPACE, *SPACE, self._copied, lambda d_in: d_in * self.times
        )

    def _copied(self, rows):
        self.ran.append(self.times)
        return list(rows) * self.times


def test_a_child_odometer_keeps_the_stability_of_its_data():
    copies = Copies(50)
    root = opened(100.0)
    child = root(copies.transformation >> ODOMETER)
    child(COUNT)
    copies.times = 1
    child(COUNT)
    assert root.privacy_loss() == child.privacy_loss(1) == 20.0


@pytest.mark.parametrize("composed", ["odometer", "filter", "ledger"])
def test_the_root_keeps_the_stability_of_its_data(tmp_path, composed):
    copies = Copies(50)
    odometer = copies.transformation >> ODOMETER
    if composed == "ledger":
        ledger = create_ledger(tmp_path / "b.db", "b")
        odometer = copies.transformation >> oc.make_concurrent_odometer(
            *SPACE, PURE, ledger=ledger, d_in=1
        )
    made = oc.make_concurrent_filter(odometer, 1, 99.0) if composed == "filter" else odometer
    root = made([1, 2, 3])
    copies.times = 1
    root(COUNT)
    assert root.privacy_loss(1) == 10.0
    assert copies.ran == [50]


def test_partial_constructors_and_several_transformations_are_one_map():
    outer, inner = Copies(2), Copies(3)
    chained = outer.transformation >> inner.transformation >> oc.then_concurrent_odometer(PURE)
    root = opened(100.0)
    child = root(chained)
    child(COUNT)
    outer.times = inner.times = 1
    child(COUNT)
    assert root.privacy_loss() == pytest.approx(2 * 6 * 0.2)


def test_a_part_is_not_opened_at_a_price_that_was_not_charged():
    epsilon = [0.1]
    part = costing(lambda _: epsilon[0], lambda rows: epsilon[0])
    parallel = oc.c.make_parallel_composition(
        *SPACE, oc.c.by_values({"a": [1], "b": [2]}), {"a": part, "b": COUNT}
    )
    root = opened(100.0)
    parts, others = root(parallel), root(parallel)
    epsilon[0] = 10.0
    with pytest.raises(InvalidValueError, match="privacy map of the part's measurement"):
        parts["a"]
    parts["b"]
    epsilon[0] = 0.1
    assert others["a"] == 0.1
    assert root.privacy_loss() == 0.4
