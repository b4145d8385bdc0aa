"""Equal finite pairs, run together: the outcomes of pairs that are multiplied one by one."""

import math

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.fdp.finite import repeated

T = oc.TradeoffFunction
SKEW = T.finite((0.2, 0.3, 0.5), (0.5, 0.3, 0.2))
FACTORS = {
    "pure": T.pure(0.3),
    "two that fail": T.approximate(0.3, 0.1),
    "two, not symmetric": T.finite((0.9, 0.1), (0.6, 0.4)),
    "three": SKEW,
    "one": T.finite((0.7, 0.3), (1.0, 0.0)),
    "one that fails": T.finite((1.0, 0.0), (0.7, 0.3)),
}


def factor_of(function):
    ((factor, count),) = function.product.factors.items()
    assert count == 1
    return factor


def one_by_one(factor, n):
    total = factor.atoms
    for _ in range(n - 1):
        total = total.times(factor.atoms)
    return total


def tail(atoms, loss):
    """P-probability of a loss of at least so much."""
    return float(np.sum(atoms.masses[atoms.losses >= loss])) + atoms.infinite


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("name", FACTORS)
def test_outcomes_are_those_of_a_multiplication_one_by_one(name, n):
    factor = factor_of(FACTORS[name])
    made, expected = repeated(factor, n, 10_000), one_by_one(factor, n)
    assert made.infinite == pytest.approx(expected.infinite, rel=1e-12)
    assert float(np.sum(made.masses)) == pytest.approx(float(np.sum(expected.masses)), rel=1e-12)
    for loss in np.linspace(-2.0, 2.0, 41) + 1e-3:  # between the outcomes
        assert tail(made, loss) == pytest.approx(tail(expected, loss), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", FACTORS)
def test_more_outcomes_than_are_wanted_are_not_listed(name):
    factor = factor_of(FACTORS[name])
    assert repeated(factor, 4, 0) is None
    assert repeated(factor, 1, 0) is None


def test_a_thousand_fair_responses_are_binomial():
    atoms = repeated(factor_of(T.pure(0.1)), 1000, 5000)
    truth = 1 / (1 + math.exp(-0.1))
    assert float(np.sum(atoms.masses * atoms.losses)) == pytest.approx(
        1000 * 0.1 * (2 * truth - 1), rel=1e-9
    )
    assert repeated(factor_of(T.pure(0.1)), 1000, 100) is None
    uneven = factor_of(T.finite([0.5, 0.3, 0.2], [0.45, 0.33, 0.22]))
    assert repeated(uneven, 1000, 100_000) is None  # 3^64 and more
