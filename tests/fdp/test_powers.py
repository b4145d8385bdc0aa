"""How many units one trade-off function is worth: found, and neither one too few nor too many."""

import pytest

import opendp_concurrent as oc
from opendp_concurrent.fdp.order import MOST, largest_power, least_power

T = oc.TradeoffFunction


def product(function):
    return function.product


UNITS = [
    (T.pure(0.1), T.pure(0.25)),
    (T.pure(0.1), T.laplace(0.7)),
    (T.gaussian(0.25), T.gaussian(0.6)),
    (T.gaussian(0.25), T.pure(0.3)),
    (T.laplace(0.2), T.laplace(0.2).power(3)),
]


@pytest.mark.parametrize(("unit", "other"), UNITS, ids=str)
def test_a_least_power_covers_and_one_less_does_not(unit, other):
    count = least_power(product(unit), product(other))
    assert other <= unit.power(count)
    assert not other <= unit.power(count - 1)


@pytest.mark.parametrize(("unit", "budget"), UNITS, ids=str)
def test_a_largest_power_fits_and_one_more_does_not(unit, budget):
    count = largest_power(product(unit), product(budget))
    assert budget.admits(unit) == count
    assert count == 0 or unit.power(count) <= budget
    assert not unit.power(count + 1) <= budget


def test_powers_of_the_unit_are_counted_exactly():
    for unit in (T.gaussian(0.01), T.laplace(0.2, 4), T.pure(0.1)):
        many = product(unit.power(100_000))
        assert least_power(product(unit), many) == 100_000
        assert largest_power(product(unit), many) == 100_000


def test_what_no_number_of_units_covers_has_none():
    assert least_power(product(T.pure(0.1)), product(T.approximate(0.1, 1e-9))) is None
    assert least_power(product(T.pure(1e-9)), product(T.pure(1.0))) is None  # more than MOST
    assert largest_power(product(T.pure(1e-9)), product(T.worst())) == MOST


@pytest.mark.parametrize("sigma", [0.06, 0.01, 1e-3, 1e-160])
def test_sampled_noise_below_a_sixteenth_has_bounds(sigma):
    one = T.subsampled_gaussian(sigma, 1e-3, unit="removed")
    for f in (one.power(1000), one.power(1000).inverse()):
        basic, whole = T.approximate(0.0, 1e-3).power(1000), T.gaussian(1 / sigma).power(1000)
        assert f.epsilon(0.7) <= basic.epsilon(0.7) == 0.0
        assert f.epsilon(1e-6) <= 1.001 * whole.epsilon(1e-6)


def test_nothing_is_worth_no_unit():
    assert least_power(product(T.pure(0.1)), product(T.identity())) == 0
    assert largest_power(product(T.gaussian(0.1)), product(T.identity())) == 0
