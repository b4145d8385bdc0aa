"""Promises of f-DP and Gaussian DP: binned noise, plans and rungs."""

import pytest

import opendp_concurrent as oc

from .promise import Budget
from .promised_tradeoffs import (
    binned_gaussian,
    compositor,
    ladder_units,
)


@pytest.mark.parametrize("mu", [0.25, 1.0])
def test_binned_noise_loses_no_more_than_the_noise_and_almost_as_much(mu):
    binned, gaussian = binned_gaussian(mu), oc.TradeoffFunction.gaussian(mu)
    for epsilon in (0.0, 0.25, 0.5, 1.0):
        bounds = gaussian.delta_bounds(epsilon)
        assert binned.delta(epsilon) <= bounds.upper * (1 + 1e-12)
        assert binned.delta(epsilon) >= 0.9 * bounds.lower


@pytest.mark.parametrize("check", [compositor, ladder_units])
def test_a_plan_is_kept_and_one_with_more_is_not(check):
    kept = list(check(Budget([0.5, 1.0], [1, 1], "function", 1.0, 1.0)))
    broken = list(check(Budget([0.5, 1.0], [1, 1], "function", 0.9, 1.2)))
    assert max(one.excess for one in kept) <= 1e-12
    assert max(one.excess for one in broken) > 1e-3
