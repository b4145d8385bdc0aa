"""Residuals of a Gaussian budget."""

import math
from itertools import pairwise

import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import BudgetExceededError

T = oc.TradeoffFunction


def test_a_gaussian_child_takes_its_square():
    after = oc.accumulators.residue(1.0).start(None).after(T.gaussian(0.6))
    assert after.left == pytest.approx(0.8, abs=1e-15)
    assert after.loss == T.gaussian(0.6)


def test_the_loss_of_an_odometer_by_residue():
    """The sum of squares up to the budget, then the budget while something is left, then more."""
    state, losses = oc.accumulators.residue(1.0).start(None), []
    assert state.loss == T.identity()
    for _ in range(8):
        state = state.after(T.pure(0.5))
        losses.append(state.loss)
        assert state.within(T.gaussian(1.0)) == (state.left is not None)
    assert losses[0] == T.gaussian(T.pure(0.5).gaussian_bound)
    assert losses[2] == T.gaussian(1.0)  # the sum of squares would be 1.08 by now
    assert losses[-1] > T.gaussian(1.0)
    assert all(one <= other for one, other in pairwise(losses))


def test_what_has_no_gaussian_bound_leaves_nothing():
    start = oc.accumulators.residue(1.0).start(None)
    for child in (T.approximate(0.1, 1e-6), T.discrete_gaussian(0.4), T.worst()):
        after = start.after(child)
        assert after.left is None
        assert after.loss == T.worst()
        assert isinstance(Within(T.gaussian(1.0)).admits(start, child), BudgetExceededError)


def test_a_discrete_gaussian_leaves_what_its_certificate_allows():
    """(sensitivity + 1) / scale, proven in mechanisms/certified.py."""
    child = T.discrete_gaussian(10.0)
    assert child.gaussian_bound == 0.2
    assert oc.accumulators.residue(1.0).start(None).after(child).left == pytest.approx(
        math.sqrt(0.96)
    )
    assert child.units(T.gaussian(0.11)) == 4


def test_what_is_left_below_the_budget_is_that_of_the_squares():
    after = oc.accumulators.residue(1.0).start(None).after(T.gaussian(0.6))
    assert after.remaining(T.gaussian(0.9)).mu == pytest.approx(math.sqrt(0.81 - 0.36))


def test_nothing_remains_of_a_budget_that_a_child_used_up():
    budget = T.gaussian(1.0)
    used = oc.accumulators.residue(mu=1.0).start(None).after(T.worst())
    assert used.remaining(budget) == T.gaussian(0.0)
    assert used.remaining(T.gaussian(0.5)) == T.gaussian(0.0)


def test_beyond_the_budget_what_the_squares_leave_remains():
    """A bound above the budget: a Gaussian of what remains fits, and a larger one does not."""
    for launched in ([], [T.gaussian(0.6)], [T.pure(0.5), T.gaussian(0.3)], [T.gaussian(1.0)] * 2):
        after = oc.accumulators.residue(1.0).start(None)
        for one in launched:
            after = after.after(one)
        root = math.sqrt(sum(one.gaussian_bound**2 for one in launched))
        for bound in (1.0, 1.2, 2.0):
            d_out = T.gaussian(bound)
            remaining = after.remaining(d_out)
            assert remaining.mu >= math.sqrt(max(0.0, bound**2 - root**2)) - 1e-9
            if root < bound:
                assert after.after(remaining).within(d_out)
                if bound > 1.0:
                    assert not after.after(T.gaussian(remaining.mu + 1e-6)).within(d_out)
    assert oc.accumulators.residue(1.0).start(None).remaining(T.gaussian(2.0)).mu == pytest.approx(
        2.0
    )


def test_a_record_of_residues_continues_identically():
    rule = oc.accumulators.residue(1.0)
    after = rule.start(None).after(T.pure(0.3)).after(T.laplace(0.2, 3))
    restored = rule.from_record(None, after.to_record())
    assert restored == after
    assert restored.after(T.gaussian(0.1)) == after.after(T.gaussian(0.1))
