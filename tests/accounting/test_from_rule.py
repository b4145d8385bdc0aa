"""Lemma 2.19: an accumulator from a continuation rule."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE


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
