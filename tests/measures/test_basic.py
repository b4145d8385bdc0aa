"""The measure's own sum, and the plain sum of ε as one of several rules."""

import math
from fractions import Fraction

import pytest

from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.measures.approximate import APPROXIMATE_MAX_DIVERGENCE
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.measure import Basic, PlainSum


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
