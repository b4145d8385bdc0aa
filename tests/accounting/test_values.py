"""Accumulators and accountings as values: frozen, with a record and a name; what they refuse."""

import dataclasses
import inspect
import pkgutil
from importlib import import_module

import pytest

import opendp_concurrent as oc
from opendp_concurrent import accounting
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.renyi import CurveSum, GridCurve, OnOrders
from opendp_concurrent.measures.slots import AnyOrder, Products, Slots
from opendp_concurrent.measures.sums import Planned, ScalarSum, SquareSum
from opendp_concurrent.measures.truncated import TruncatedSum

PURE = oc.TradeoffFunction.pure
GRID = OnOrders((2.0, 3.0))


def dataclasses_of(package):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for name, one in inspect.getmembers(import_module(module.name), inspect.isclass):
            if dataclasses.is_dataclass(one) and one.__module__ == module.name:
                yield pytest.param(one, id=f"{module.name.split('.', 1)[1]}.{name}")


@pytest.mark.parametrize("value", list(dataclasses_of(accounting)))
def test_values_are_frozen_and_have_slots(value):
    """A charge is one rebinding in one place."""
    assert value.__dataclass_params__.frozen
    assert "__slots__" in vars(value)


class Rule:
    start = 0.0

    def after(self, state, d_mid):
        return state + d_mid

    def continues(self, state, d_out):
        return state <= d_out

    def __repr__(self):
        return "mine"


@pytest.mark.parametrize(
    ("accounting", "text"),
    [
        (oc.accumulators.basic(), "basic()"),
        (oc.accumulators.advanced(0.25), "advanced(delta_slack=0.25)"),
        (oc.accumulators.zcdp(0.25), "zcdp(delta_slack=0.25)"),
        (oc.accumulators.any_time(0.25), "any_time(delta_slack=0.25, planned=1.0)"),
        (oc.accumulators.renyi(2, 0.25), "renyi(order=2.0, delta_slack=0.25)"),
        (
            oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.zcdp(0.25)),
            "either(basic(), zcdp(delta_slack=0.25))",
        ),
        (oc.accumulators.from_rule(Rule()), "from_rule(mine)"),
        (oc.accumulators.ladder(PURE(0.5)), f"ladder({PURE(0.5)})"),
        (oc.accumulators.residue(0.5), "residue(mu=0.5)"),
        (GRID, "basic sums at orders (2.0, 3.0)"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_an_accounting_says_what_it_is(accounting, text):
    assert repr(accounting) == text


@pytest.mark.parametrize(
    ("start", "d_mid"),
    [
        (oc.accumulators.basic().start(MAX_DIVERGENCE), 0.5),
        (oc.accumulators.basic().start(APPROXIMATE_MAX_DIVERGENCE), (0.5, 0.25)),
        (oc.accumulators.zcdp(0.25).start(None), (0.5, 0.25)),
        (oc.accumulators.from_rule(Rule()).start(0.0), 0.5),
        (oc.accumulators.ladder(PURE(0.5)).start(None), PURE(0.5)),
        (oc.accumulators.residue(0.5).start(None), PURE(0.5)),
        (SquareSum(), 0.5),
        (TruncatedSum(), oc.TruncatedConcentrated(0.5, 8.0)),
        (Products().start(oc.TradeoffFunction.identity()), PURE(0.5)),
        (Slots((PURE(0.5),), (PURE(0.5),)), PURE(0.5)),
        (Planned((0.5,), 0, ScalarSum()), 0.5),
        (CurveSum(), abs),
        (GRID.start(None), GridCurve((2.0, 3.0), (0.5, 0.75))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_is_counted_is_the_loss_itself(start, d_mid):
    assert start.read(d_mid) == d_mid


def test_a_rule_of_ones_own_has_no_record():
    rule = oc.accumulators.from_rule(Rule())
    with pytest.raises(InvalidTypeError, match="no exact record"):
        rule.start(0.0).to_record()
    with pytest.raises(InvalidTypeError, match="no exact record"):
        rule.from_record(0.0, None)
    for missing in ("start", "after", "continues"):
        methods = {name: None for name in ("start", "after", "continues") if name != missing}
        partial = type("Partial", (), methods)()
        with pytest.raises(InvalidTypeError, match=f"Partial has no {missing};"):
            oc.accumulators.from_rule(partial)


def test_a_record_of_slots_has_the_places_that_are_left():
    small, large = PURE(0.25), PURE(1.0)
    plan = (small, large, small)
    slots = Slots(plan, tuple(sorted(plan, key=lambda slot: slot.affinity_cost)))
    assert slots.to_record() == [0, 1, 2]
    assert slots.after(large).to_record() == [0, 2]
    assert slots.after(small).to_record() == [0, 1]
    assert slots.after(small, 2).to_record() == [1]
    assert slots.after(large).within(oc.TradeoffFunction.identity().compose(*plan))
    assert not slots.after(large).within(large)
    assert slots.remaining() == AnyOrder().remaining(slots) == slots.left
