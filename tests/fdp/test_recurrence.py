"""What is left of a characteristic function beyond a frequency, against sums over many nodes."""

from math import inf, pi

import numpy as np
import pytest

from opendp_concurrent.fdp.discrete_gaussian import discrete_gaussian
from opendp_concurrent.fdp.finite import Finite, response
from opendp_concurrent.fdp.laplace import Laplace
from opendp_concurrent.fdp.recurrence import tail

SKEW = Finite(np.array([-0.4, 0.7]), np.array([0.35, 0.65]))
CASES = [
    ([(discrete_gaussian(1.0, 1), 3)], 3.0),
    ([(discrete_gaussian(1.2, 1), 2), (discrete_gaussian(1.7, 2), 1)], 4.0),
    ([(response(0.5), 30)], 2.0),
    ([(response(0.5), 10), (response(0.37), 10), (response(0.81), 5)], 2.0),
    ([(SKEW, 12), (response(0.3), 20)], 2.0),
    ([(Laplace(0.6), 20), (Laplace(0.45), 20)], 2.0),
    ([(Laplace(0.5, 3.0), 10), (discrete_gaussian(2.0, 1), 4)], 5.0),
]


def summed(factors, tau, start, normal, nodes=60_000, step=0.01):
    """Both integrals up to a far frequency, by the rectangle rule, with |ρ| computed."""
    rho = np.ones(nodes)
    for factor, n in factors:
        rho *= np.abs(factor.transform(tau, step, nodes).values) ** n
    omega = step * np.arange(nodes)
    rho *= np.exp(-normal * (omega**2 - start**2) / 2)
    keep = omega >= start
    return [float(np.sum(rho[keep] * one)) * step / pi for one in (omega[keep] ** -2.0, 1.0)]


@pytest.mark.parametrize("normal", [0.0, 1e-4])
@pytest.mark.parametrize("tau", [0.2, 3.0])
@pytest.mark.parametrize(("factors", "start"), CASES)
def test_bounds_are_above_the_integrals(factors, start, tau, normal):
    exact = summed(factors, tau, start, normal)
    for wanted in (1e-3, 1e-9):
        found = tail(factors, tau, start, normal, wanted, normal)
        assert found[0] >= exact[0] * 0.999
        assert found[1] >= exact[1] * 0.999
    assert (found[1] < inf) == (normal > 0.0)


def test_bounds_are_near_the_integrals_where_lattices_recur():
    for factors, start in CASES[:4]:
        exact = summed(factors, 0.2, start, 1e-4)
        found = tail(factors, 0.2, start, 1e-4, 1e-12, 1e-4)
        assert found[0] <= 4 * exact[0]
        assert found[1] <= 4 * exact[1]


def test_different_lattices_hardly_recur():
    """Where one would, the others do not."""
    many = [(discrete_gaussian(5.0 + 0.1 * i, 1), 1) for i in range(100)]
    start, s2 = 15.0, 1e-8
    found = tail(many, 3.0, start, s2, 1e-12, s2)
    assert found[0] + s2 * found[1] <= 1e-12
    alone = tail(many[:1], 3.0, start, s2, 1e-12, s2)
    assert alone[0] + s2 * alone[1] > 1e-6


def test_without_a_gaussian_the_end_is_counted_in_full():
    found = tail([(discrete_gaussian(1000.0, 1), 10**6)], 0.5, 8.0, 0.0, 1e-12, 0.0)
    assert 1 / (pi * 8.0 * 2.0**24) <= found[0] <= 1e-8
