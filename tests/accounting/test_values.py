"""Accumulators and accountings as values: frozen, with a record and a name; what they refuse."""

import dataclasses
import inspect
import math
import pkgutil
from fractions import Fraction
from importlib import import_module

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent import accounting
from opendp_concurrent.accounting.best_rule import Zcdp
from opendp_concurrent.accounting.store import Terms, require_same_terms
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LimitMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE
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


def arrays(*ends):
    return [Terms(**TERMS | {"d_in": (np.array([1.0, end]),)}) for end in ends]


def test_equal_terms_are_the_same():
    require_same_terms(("a",), Terms(**TERMS), Terms(**TERMS | {"d_in": 1.0}))  # the same number
    require_same_terms(("a",), *arrays(2.0, 2.0))
    with pytest.raises(LimitMismatchError, match="^d_in"):
        require_same_terms(("a",), *arrays(2.0, 3.0))


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


# --- lemma 2.19: an accumulator from a continuation rule ------------------------------------------


class SumRule:
    """F for pure DP, on exact fractions of doubles."""

    start = 0

    def after(self, state, d_mid):
        return state + Fraction(d_mid)

    def continues(self, state, d_out):
        return state <= d_out

    def __repr__(self):
        return "SumRule()"


@given(st.lists(st.floats(0.0, 10.0), max_size=6), st.floats(0.0, 30.0))
def test_an_accumulator_from_the_rule_of_the_sum_is_the_sum(losses, d_out):
    inverted, plain = (
        oc.accumulators.from_rule(SumRule()).start(0.0),
        oc.accumulators.basic().start(MAX_DIVERGENCE),
    )
    for loss in losses:
        inverted, plain = inverted.after(loss), plain.after(loss)
    assert inverted.loss == plain.loss
    assert inverted.within(d_out) == plain.within(d_out)
    if plain.within(d_out):
        assert inverted.remaining(d_out) == plain.remaining(d_out)


# --- distances that are no numbers ---------------------------------------------------------------

UNIT = oc.TradeoffFunction.gaussian(0.125)


class ByHand:
    """[HSTVVXZ23, Theorem 3.7], with a slack of 1e-7, in fractions."""

    start = Fraction(0), Fraction(0)

    def after(self, state, d_mid):
        epsilon, delta = map(Fraction, d_mid)
        return state[0] + epsilon**2, state[1] + delta

    def continues(self, state, d_out):
        (squares, deltas), (epsilon, delta) = state, d_out
        if epsilon == math.inf or not (squares or deltas):
            return True
        gap = Fraction(epsilon) - squares / 2
        log = Fraction(math.log(1e7)) * (1 + Fraction(1, 2**40))
        enough = gap >= 0 and 2 * squares * log <= gap**2
        return enough and deltas + Fraction(1e-7) <= Fraction(delta)


class Units:
    """The proven rule of ``ladder``: whole launches of one trade-off function."""

    start = 0

    def after(self, state, d_mid):
        return state + d_mid.units(UNIT)

    def continues(self, state, d_out):
        return UNIT.power(state) <= d_out if state else True


class Truncated:
    start = 0, math.inf

    def after(self, state, d_mid):
        return state[0] + Fraction(d_mid.rho), min(state[1], d_mid.omega)

    def continues(self, state, d_out):
        return state[0] <= d_out.rho and state[1] >= d_out.omega


dp.enable_features("contrib", "honest-but-curious")  # measures are made here
OMEGA = oc.truncated_concentrated_divergence(8.0)
APPROXIMATE = dp.approximate(dp.max_divergence())
RULES = {
    "(ε, δ)": (
        (APPROXIMATE, ByHand(), lambda epsilon: (epsilon, 1e-6)),
        ((0.0625, 1e-9), (1.0, 1e-6), oc.accumulators.advanced(1e-7), 7),
        lambda loss: loss[0],
    ),
    "f-DP": (
        (oc.tradeoff(), Units(), oc.TradeoffFunction.gaussian),
        (UNIT, oc.TradeoffFunction.gaussian(0.5), oc.accumulators.ladder(UNIT), 16),
        lambda loss: loss.epsilon(1e-3),
    ),
    "tCDP": (
        (OMEGA, Truncated(), lambda rho: oc.TruncatedConcentrated(rho, 8.0)),
        (oc.TruncatedConcentrated(0.25, 8.0), oc.TruncatedConcentrated(1.0, 8.0), None, 4),
        lambda loss: loss.rho,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_along_a_family_decides_as_the_proven_accumulator(space, name):
    (measure, rule, along), (d_mid, d_out, proven, most), read = RULES[name]
    own = oc.accumulators.from_rule(rule, along=along)
    launch = dp.m.make_user_measurement(*space, measure, lambda _: 0, lambda d_in: d_mid, TO="i32")
    roots = [
        oc.make_concurrent_filter(
            oc.make_concurrent_odometer(*space, measure, accumulator=one), 1, d_out
        )([1])
        for one in (own, proven)
    ]
    assert roots[0].privacy_loss() == oc.extend.composition_measure(measure).zero
    for count in range(1, most + 20):
        admitted = [root.admits(launch) for root in roots]
        if not admitted[1]:
            break
        assert admitted == [True, True]
        losses = [read([root(launch), root.privacy_loss()][1]) for root in roots]
        assert losses[1] <= losses[0] * (1 + 1e-12) <= losses[1] * (1 + 1e-6) + 1e-9, count
        assert roots[0].privacy_loss() <= d_out
    assert admitted == [False, False]
    with pytest.raises(BudgetExceededError) as refused:
        roots[0](launch)
    assert count == most + 1
    assert refused.value.remaining == roots[0].remaining()


@pytest.mark.parametrize("name", RULES)
def test_distances_that_are_none_are_refused(space, name):
    (measure, rule, along), _, _ = RULES[name]
    known = oc.extend.composition_measure(measure)
    with pytest.raises(UnsupportedMeasureError, match="^accumulator"):
        oc.make_concurrent_odometer(*space, measure, accumulator=oc.accumulators.from_rule(rule))
    state = oc.accumulators.from_rule(rule, along=along).start(known)
    for wrong in (math.nan, (math.nan, 0.0), None, "0.1"):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="d_mid"):
            state.after(wrong)
    wrong = oc.accumulators.from_rule(rule, along=lambda number: "no distance").start(known)
    with pytest.raises(InvalidTypeError, match="^along"):
        assert wrong.after(RULES[name][1][0]).loss


def test_a_family_is_a_function_and_starts_at_a_measure():
    with pytest.raises(InvalidTypeError, match="^along must be a function"):
        oc.accumulators.from_rule(SumRule(), along=1.0)
    with pytest.raises(InvalidTypeError, match="^measure must be"):
        oc.accumulators.from_rule(ByHand(), along=lambda epsilon: (epsilon, 1e-6)).start()
