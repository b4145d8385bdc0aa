"""Equal finite pairs, run together: the outcomes of pairs that are multiplied one by one."""

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.fdp.bounds import TINY
from opendp_concurrent.fdp.repeated import repeated

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


def test_losses_at_equal_distances_are_added_up_wherever_they_come_from():
    """Three losses -l, 0 and l; and the same, one of which is moved by more than rounding."""
    factor = factor_of(SKEW)
    made = repeated(factor, 1000, 100_000)
    assert 1000 < len(made.losses) <= 2001  # masses below 1e-300 are not counted
    mean = float(factor.masses @ factor.losses)
    assert float(made.masses @ made.losses) == pytest.approx(1000 * mean, rel=1e-9)
    moved = replace(factor, losses=factor.losses + np.array([0.0, 1e-11, 0.0]))
    assert repeated(moved, 1000, 100_000) is None
    near = replace(factor, losses=factor.losses + np.array([0.0, 5e-14, 0.0]))
    assert repeated(near, 1000, 100_000).loss_error >= 1000 * 4e-14


LATTICES = {
    "discrete Gaussian": T.discrete_gaussian(1.5, 2),
    "wide": T.discrete_gaussian(4.0),
    "grid": T.laplace(0.7, 5.0),
}


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("name", LATTICES)
def test_equal_sums_on_a_lattice_are_added_up(name, n):
    """Against convolutions of integers' masses in big floats."""
    factor = factor_of(LATTICES[name])
    made = repeated(factor, n, 2**14)
    with mp.workdps(40):
        each = [mp.mpf(mass) for mass in factor.masses.tolist()]
        keep = [index for index, mass in enumerate(each) if mass > mp.mpf("1e-22")]
        low = keep[0]
        some, total = each[low : keep[-1] + 1], [mp.mpf(1)]
        for _ in range(n):
            onward = [mp.mpf(0)] * (len(total) + len(some) - 1)
            for i, one in enumerate(total):
                for j, other in enumerate(some):
                    onward[i + j] += one * other
            total = onward
        distance = mp.mpf(float(factor.losses[-1] - factor.losses[0])) / (len(each) - 1)
        first = n * (mp.mpf(float(factor.losses[0])) + low * distance)
        for k in range(0, len(total), 5):
            if total[k] < mp.mpf("1e-10"):
                continue
            loss = first + k * distance
            index = int(np.argmin(np.abs(made.losses - float(loss))))
            assert abs(loss - mp.mpf(float(made.losses[index]))) <= made.loss_error
            relative = abs(mp.mpf(float(made.masses[index])) / total[k] - 1)
            assert relative <= made.mass_error + 1e-11 / n
    assert made.mass_error <= 1e-11
    if n == 4:
        assert len(made.losses) <= n * len(factor.losses)
        expected = one_by_one(factor, 2).times(one_by_one(factor, 2)) if name == "grid" else None
        for loss in np.linspace(-1.0, 1.0, 21) + 1e-3 if expected else ():
            assert tail(made, loss) == pytest.approx(tail(expected, loss), rel=1e-12)


def test_masses_that_underflow_on_a_lattice_are_left_out_and_counted():
    made = repeated(factor_of(LATTICES["wide"]), 4, 2**14)
    assert float(np.min(made.masses)) >= TINY
    assert made.omitted >= TINY
    kept = repeated(factor_of(LATTICES["grid"]), 4, 2**14)
    assert kept.omitted == 0.0
    assert len(kept.losses) == 21
