"""The residual of a Gaussian budget: from below, and never worse than squares."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from opendp_concurrent.fdp.function import TradeoffFunction as T
from opendp_concurrent.fdp.order import gaussian_bound, residual
from opendp_concurrent.fdp.product import with_few_outcomes

PRINTED = [(1.0, 0.5, 0.8599904568), (2.0, 1.0, 1.7291408254), (1.0, 0.1, 0.9949810922)]
GRID = [0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0]


def pure_to_gaussian(epsilon):
    with mp.workdps(400):
        return mp.sqrt(2) * -2 * mp.erfinv(2 / (1 + mp.exp(mpf(epsilon))) - 1)


@pytest.mark.parametrize(("budget", "epsilon", "printed"), PRINTED)
def test_printed_values_are_reached_from_below(budget, epsilon, printed):
    found = residual(budget, T.pure(epsilon).product)
    assert found == pytest.approx(printed, abs=1e-8)
    assert found <= printed + 1e-10
    assert T.gaussian(budget).residual(T.pure(epsilon)) == found


CHILDREN = [
    [("pure", (0.5,), 1)],
    [("pure", (0.3,), 2)],
    [("laplace_steps", (0.5, 5), 1)],
    [("randomized_response", (0.5, 4), 1)],
    [("finite", ((0.5, 0.5), (0.4, 0.6)), 1)],
    [("finite", ((0.5, 0.5), (0.4, 0.6)), 2), ("pure", (0.2,), 1)],
    [("finite", ((0.1, 0.9), (0.02, 0.98)), 1)],
    [("inverse", ((0.1, 0.9), (0.02, 0.98)), 1)],
    [("gaussian", (0.5,), 1), ("pure", (0.5,), 1)],
]


@pytest.mark.parametrize("parts", CHILDREN)
@pytest.mark.parametrize("budget", [1.0, 3.0])
def test_child_and_residual_are_within_the_budget(parts, budget, exact):
    child = exact.build(parts)
    found = residual(budget, child.product)
    top = max(child.product.largest_loss, child.inverse().product.largest_loss)
    if found is None:
        assert budget < float(pure_to_gaussian(min(top, 50.0)))
        return
    swap = {"finite": "inverse", "inverse": "finite"}
    other = [(swap.get(kind, kind), a, n) for kind, a, n in parts]
    for each in (parts, other):
        delta = exact.profile([*each, ("gaussian", (found,), 1)])
        for epsilon in GRID:
            assert delta(epsilon) <= exact.gaussian_delta(budget, epsilon)


@pytest.mark.parametrize("parts", [c for c in CHILDREN if c[0][0] != "gaussian"])
@pytest.mark.parametrize("budget", [1.0, 3.0])
def test_it_is_never_worse_than_the_difference_of_squares(parts, budget, exact):
    child = exact.build(parts)
    top = max(child.product.largest_loss, child.inverse().product.largest_loss)
    mu = float(pure_to_gaussian(top))
    if mu < budget * (1 - 1e-9):
        naive = math.sqrt(budget**2 - mu**2)
        assert residual(budget, child.product) >= naive * (1 - 1e-11)


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.0])
def test_gaussians_leave_the_difference_of_squares(budget):
    for share in (0.0, 0.3, 0.8, 1.0):
        found = residual(budget, T.gaussian(share * budget).product)
        exact = mp.sqrt(mpf(budget) ** 2 - mpf(share * budget) ** 2)
        assert mpf(found) <= exact * (1 + mpf("1e-30"))
        assert found == pytest.approx(float(exact), rel=1e-14)
    assert residual(budget, T.gaussian(1.1 * budget).product) is None
    assert residual(budget, T.identity().product) == budget


def test_what_does_not_fit_is_refused():
    for budget, child in (
        (1.0, T.pure(3.0)),
        (1.0, T.approximate(0.1, 1e-9)),
        (5.0, T.worst()),
        (1.0, T.gaussian(0.99).compose(T.pure(1.0))),
        (0.0, T.pure(0.1)),
        (1.0, T.laplace(700.0)),
    ):
        assert residual(budget, child.product) is None


def test_a_chain_of_children_stays_within_the_budget(exact):
    left, parts = 1.0, []
    for epsilon in (0.3, 0.2, 0.4, 0.1):
        left = residual(left, T.pure(epsilon).product)
        parts.append(("pure", (epsilon,), 1))
    delta = exact.profile([*parts, ("gaussian", (left,), 1)])
    for epsilon in GRID:
        assert delta(epsilon) <= exact.gaussian_delta(1.0, epsilon)


def test_a_child_with_many_outcomes_is_rounded_outward(exact):
    for child in (T.laplace(0.7), T.pure(0.05).power(150), T.laplace(0.5, 300)):
        small = with_few_outcomes(child.product, 96)
        at = np.linspace(-0.5, 0.7, 13)
        mine, theirs = small.profile(at), child.delta_bounds(at)
        assert np.all(mine.upper >= theirs.lower)
        assert np.all(mine.lower <= theirs.upper + 1e-2)
        found = residual(2.0, child.product)
        assert child.compose(T.gaussian(found)) <= T.gaussian(2.0)
        assert found < 2.0
    assert with_few_outcomes(T.pure(1.0).product, 96) == T.pure(1.0).product


@pytest.mark.parametrize("f", [T.laplace(0.5), T.pure(0.5), T.pure(0.2).power(3), T.gaussian(0.3)])
def test_gaussian_bound_is_a_bound(f):
    bound = gaussian_bound(f.product)
    assert f.gaussian_bound == bound
    for epsilon in GRID:
        assert f.delta_bounds(epsilon).lower <= T.gaussian(bound).delta_bounds(epsilon).upper
    assert gaussian_bound(T.worst().product) == math.inf


@pytest.mark.parametrize("first", [(0.9, 0.1, 0.0), (0.97, 0.03)])
def test_both_directions_count(first):
    """The losses of one direction say nothing of those of the other."""
    f = T.finite(first, (0.8, 0.1, 0.1) if 0.0 in first else (0.999, 0.001))
    for child in (f, f.inverse()):
        one, other = (residual(2.0, each.product) for each in (child, child.inverse()))
        assert (one is None) == (other is None)
        assert one is None or (one == pytest.approx(other, rel=1e-8) and 0.0 not in first)
        bound = gaussian_bound(child.product)
        assert (bound == math.inf) == (0.0 in first)
        assert bound == math.inf or f <= T.gaussian(bound * (1 + 1e-9))
