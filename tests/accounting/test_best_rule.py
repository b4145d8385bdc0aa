"""The choice of the accumulator that admits the most launches of a kind."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.accounting.best_rule import _candidates


@given(
    st.floats(0.001, 0.3),
    st.floats(0.3, 8.0),
    st.sampled_from([1e-4, 1e-6, 1e-9]),
)
@settings(max_examples=10)
def test_the_best_rule_is_never_below_the_others(epsilon, bound, delta):
    d_out, typical = (bound, delta), [(epsilon, 0.0)]
    best = oc.accumulators.launches_admitted(
        oc.accumulators.best_rule(d_out, typical), d_out, typical
    )
    for rule in (
        oc.accumulators.basic(),
        oc.accumulators.advanced(delta),
        oc.accumulators.zcdp(delta),
        oc.accumulators.renyi(10.0, delta),
    ):
        assert best >= oc.accumulators.launches_admitted(rule, d_out, typical)


@pytest.mark.filterwarnings("error")
def test_the_best_rule_for_tiny_launches():
    rule = oc.accumulators.best_rule((1.0, 1e-6), [(1e-200, 0.0)])
    assert oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(1e-200, 0.0)]) == 10**15


def test_the_best_rule_leaves_delta_for_the_launches():
    d_out, typical = (1.0, 1e-6), [(0.01, 1e-9)]
    best = oc.accumulators.best_rule(d_out, typical)
    admitted = oc.accumulators.launches_admitted(best, d_out, typical)
    slack = best.rules[1].delta_slack
    assert admitted > 450
    assert slack + admitted * 1e-9 <= 1e-6
    assert admitted >= oc.accumulators.launches_admitted(oc.accumulators.zcdp(5e-7), d_out, typical)


def test_the_slack_leaves_the_average_delta_of_the_launches():
    d_out = (1.0, 1e-6)
    by_turns = oc.accumulators.best_rule(d_out, [(0.01, 0.0), (0.01, 2e-9)])
    assert by_turns == oc.accumulators.best_rule(d_out, [(0.01, 1e-9)])


@pytest.mark.parametrize(
    ("epsilon", "bound"),
    [(1e-7, 0.5), (1e-6, 8.0), (1e-5, 0.5), (1e-3, 2.0), (0.1, 2.0), (0.05, 20.0), (1.0, 5000.0)],
)
def test_the_order_of_the_best_rule_is_best_among_its_neighbours(epsilon, bound):
    d_out, typical = (bound, 1e-6), [(epsilon, 0.0)]
    found = _candidates(d_out, typical)[2]
    order = found.order
    assert found.delta_slack == 1e-6  # all of it, as the launches need none

    def admitted(factor):
        near = oc.accumulators.renyi(1.0 + (order - 1.0) * factor, 1e-6)
        return oc.accumulators.launches_admitted(near, d_out, typical)

    best = oc.accumulators.launches_admitted(oc.accumulators.renyi(order, 1e-6), d_out, typical)
    assert best >= (1 - 1e-4) * max(map(admitted, (0.5, 0.8, 0.95, 1.05, 1.2, 2.0)))


def test_counting_ends_at_its_limit_whatever_the_length_of_a_turn():
    for turn in (1, 2, 3, 7):
        assert (
            oc.accumulators.launches_admitted(
                oc.accumulators.basic(), (1.0, 0.0), [(1e-200, 0.0)] * turn
            )
            == 10**15
        )


def test_the_best_rule_for_a_mixture_of_launches():
    d_out, typical = (2.0, 1e-6), [(0.01, 0.0), (0.05, 0.0), (0.02, 0.0)]
    best = oc.accumulators.best_rule(d_out, typical)
    admitted = oc.accumulators.launches_admitted(best, d_out, typical)
    assert (
        admitted > oc.accumulators.launches_admitted(oc.accumulators.basic(), d_out, typical) == 74
    )
    state = best.start(None)
    for index in range(admitted):
        state = state.after(typical[index % 3])
    assert state.within(d_out)
    assert not state.after(typical[admitted % 3]).within(d_out)


@pytest.mark.parametrize(
    ("d_out", "typical"),
    [
        ((1.0, 0.0), [(0.01, 0.0)]),  # no δ for a slack
        ((1.0, 1e-9), [(0.01, 1e-9)]),  # one launch takes it all
        ((1.0, 1e-6), [(1.0, 0.0)]),  # one launch takes all ε
        ((math.inf, 1e-6), [(1.0, 0.0)]),
        ((1.0, 1e-6), [(1e200, 0.0)]),
        ((0.0, 1e-6), [(1.0, 0.0)]),
        ((1.0, 0.0), [(0.01, 1e-9)]),
        ((1.0, 1.0), [(0.01, 0.0)]),  # a slack of 1 is no slack
        ((1.0, 1e-9), [(0.01, 1e-8)]),  # no launch fits
    ],
)
def test_the_best_rule_is_basic_where_a_slack_gains_nothing(d_out, typical):
    assert oc.accumulators.best_rule(d_out, typical) == oc.accumulators.basic()
