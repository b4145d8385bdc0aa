"""Lemma 2.19: an accumulator from a continuation rule."""

from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE


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


def test_a_rule_of_ones_own_makes_odometers_and_filters(space):
    measure = dp.max_divergence()
    odometer = oc.make_concurrent_odometer(
        *space, measure, accumulator=oc.accumulators.from_rule(SumRule())
    )
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    root = oc.make_concurrent_filter(odometer, 1, 0.5)([1, 2, 3])
    assert [isinstance(root(count), int) for _ in range(2)] == [True, True]
    with pytest.raises(BudgetExceededError):
        root(count)
    assert root.privacy_loss() == 0.5
    assert root.remaining() == 0.0
    assert "from_rule(SumRule())" in repr(odometer)
