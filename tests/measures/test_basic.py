"""The measure's own sum, and the plain sum of ε as one of several rules."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.measure import Basic, PlainSum
from opendp_concurrent.measures.sums import PairSum, ScalarSum


def test_the_sum_is_that_of_the_measure():
    for measure, d_mid, total in (
        (MAX_DIVERGENCE, 0.25, 0.5),
        (APPROXIMATE_MAX_DIVERGENCE, (0.25, 0.125), (0.5, 0.25)),
    ):
        state = Basic().start(measure).after(d_mid, 2)
        assert state.loss == total
        assert Basic().from_record(measure, state.to_record()) == state


@pytest.mark.parametrize("measure", [None, "MaxDivergence", 1.0])
def test_a_sum_needs_a_measure(measure):
    assert Basic.needs_measure
    with pytest.raises(InvalidTypeError, match="^measure must be a composition measure"):
        Basic().start(measure)


def test_shares_are_those_of_the_measure():
    assert Basic().shares(MAX_DIVERGENCE, 1.0, [Fraction(1), Fraction(3)]) == [0.25, 0.75]


def test_as_a_rule_it_adds_up_epsilon_exactly_and_has_no_slack():
    (rule,) = Basic().parts()
    assert rule == PlainSum()
    assert rule.delta_slack == 0.0
    cost = rule.cost(0.1) + rule.cost(0.2)
    assert rule.spent(cost) == math.nextafter(0.3, 1.0)  # the least double above the exact sum
    assert rule.epsilon(rule.largest(0.75)) == 0.75


losses = st.one_of(
    st.floats(0.0, width=64), st.integers(0, 3), st.sampled_from([math.inf, 5e-324, -0.0, 0.1])
)
bounds = st.one_of(losses, st.fractions(0, 3))


@given(st.lists(st.tuples(losses, losses, st.integers(1, 5))), bounds, bounds)
def test_a_pair_is_the_sums_of_both_components(launches, one, other):
    pair, first, second = PairSum(), ScalarSum(), ScalarSum()
    exact = [Fraction(0), Fraction(0)]
    for a, b, count in launches:
        pair = pair.after((a, b), count)
        first, second = first.after(a, count), second.after(b, count)
        for place, loss in enumerate((a, b)):
            endless = math.inf in (loss, exact[place])
            exact[place] = math.inf if endless else exact[place] + count * Fraction(loss)
    assert pair.loss == (first.loss, second.loss)
    for loss, sum_ in zip(pair.loss, exact, strict=True):
        assert loss >= sum_ > math.nextafter(loss, -1.0)
    assert pair.within((one, other)) == (exact[0] <= one and exact[1] <= other)
    assert pair.remaining((one, other)) == (first.remaining(one), second.remaining(other))
    assert PairSum.from_record(pair.to_record()) == pair


BAD = [math.nan, -1.0, -5e-324, "1", None, True, (1.0, 0.0), [1.0]]


@pytest.mark.parametrize(("bad", "place", "start"), list(product(BAD, (0, 1), (0.0, math.inf))))
def test_a_pair_adds_no_value_that_is_no_loss(bad, place, start):
    pair = PairSum().after((start, start))
    loss = (bad, 0.5) if place == 0 else (0.5, bad)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="d_mid"):
        pair.after(loss)
