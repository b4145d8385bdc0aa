"""Accumulators and accountings as values: frozen, with a record and a name; what they refuse."""

import dataclasses
import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import accounting
from opendp_concurrent.accounting.best_rule import Zcdp
from opendp_concurrent.accounting.store import Limit, Terms, require_same_terms
from opendp_concurrent.errors import InvalidTypeError, LimitMismatchError
from opendp_concurrent.measures.measure import Basic
from opendp_concurrent.measures.slots import AnyOrder, Slots

PURE = oc.TradeoffFunction.pure


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


# --- terms of a limit, which do not change -------------------------------------------------------


TERMS = {
    "measure": "MaxDivergence",
    "accumulator": Basic(),
    "metric": "SymmetricDistance()",
    "d_in": 1,
    "d_out": 0.5,
}


def test_equal_terms_are_the_same():
    require_same_terms(("a",), Terms(**TERMS), Terms(**TERMS))
    arrays = [Terms(**TERMS | {"d_in": (np.array([1.0, 2.0]),)}) for _ in range(2)]
    require_same_terms(("a",), *arrays)
    require_same_terms(("a",), Terms(**TERMS), Terms(**TERMS | {"d_in": 1.0}))  # the same number


@pytest.mark.parametrize(
    ("field", "argument", "other"),
    [
        ("measure", "output_measure", "ZeroConcentratedDivergence"),
        ("accumulator", "accumulator", Zcdp(1e-6)),
        ("metric", "input_metric", "InsertDeleteDistance()"),
        ("d_in", "d_in", 2),
        ("d_out", "d_out", 0.25),
    ],
)
def test_other_terms_are_refused_by_the_name_of_the_argument(field, argument, other):
    said = f"^{argument} of the limit 'team' > 'ann' does not match: it was opened with"
    with pytest.raises(LimitMismatchError, match=said) as refusal:
        require_same_terms(("team", "ann"), Terms(**TERMS), Terms(**TERMS | {field: other}))
    assert refusal.value.limit == ("team", "ann")
    assert (refusal.value.name, refusal.value.given) == (argument, repr(other))


def test_other_arrays_are_other_terms():
    arrays = [Terms(**TERMS | {"d_in": (np.array([1.0, end]),)}) for end in (2.0, 3.0)]
    with pytest.raises(LimitMismatchError, match="^d_in"):
        require_same_terms(("a",), *arrays)


def test_a_limit_is_shown_short():
    assert str(Limit("ann", Terms(**TERMS | {"d_out": 1 / 3}))) == "'ann', 0.333333 at d_in=1"
