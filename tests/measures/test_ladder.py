"""Whole units of one trade-off function."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidValueError

T = oc.TradeoffFunction


def test_equal_launches_reach_the_optimal_composition():
    """562 of 562 at ε = 0.01 and (1, 1e-6): theory 7.13."""
    unit, budget = T.pure(0.01), T.approximate(1.0, 1e-6)
    assert oc.accumulators.launches_admitted(oc.accumulators.ladder(unit), budget, [unit]) == 562
    assert unit.power(562).delta(1.0) <= 1e-6 < unit.power(563).delta_bounds(1.0).lower


def test_a_child_of_twice_the_loss_costs_more_than_four_units():
    assert T.pure(0.02).units(T.pure(0.01)) == 7
    assert T.pure(0.02).delta(0.0) <= T.pure(0.01).power(7).delta(0.0)
    assert T.pure(0.02).delta_bounds(0.0).lower > T.pure(0.01).power(6).delta(0.0)


@pytest.mark.parametrize("mu", [0.1, 0.25, 1.0])
def test_gaussian_units_count_squares(mu):
    unit = T.gaussian(mu)
    assert T.gaussian(2 * mu).units(unit) == 4
    assert T.gaussian(2 * mu * (1 + 1e-9)).units(unit) == 5
    assert T.gaussian(3 * mu).admits(unit) == 9


def test_what_no_number_of_units_covers_is_refused():
    rule = oc.accumulators.ladder(T.pure(0.1))
    start = rule.start(None)
    for child in (T.gaussian(0.1), T.approximate(0.1, 1e-9), T.worst()):
        after = start.after(child)
        assert after.loss == T.worst()
        assert not after.within(T.approximate(5.0, 1e-3))
        verdict = Within(T.approximate(1.0, 1e-6)).admits(start, child)
        assert isinstance(verdict, BudgetExceededError)
        assert after.remaining(T.pure(1.0)) == T.identity()


def test_units_that_are_spent_are_those_of_the_record():
    rule = oc.accumulators.ladder(T.laplace(0.3))
    after = rule.start(None).after(T.laplace(0.2), 3).after(T.laplace(0.3))
    assert after.loss == T.laplace(0.3).power(4)
    assert rule.from_record(None, after.to_record()) == after
    assert after.remaining(T.laplace(0.3).power(6)) == T.laplace(0.3).power(2)


@pytest.mark.parametrize("unit", [T.identity(), T.worst()])
def test_a_unit_without_loss_or_without_privacy_is_refused(unit):
    with pytest.raises(InvalidValueError, match="unit"):
        oc.accumulators.ladder(unit)
