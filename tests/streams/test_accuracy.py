"""Error formulas against sums taken one by one."""

import math

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.streams.digits import best_digits
from opendp_concurrent.streams.factors import (
    HORIZONS,
    buffered,
    decoder,
    parameters,
    prefix_squares,
    squared_norm,
)

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


@pytest.mark.parametrize("exponent", HORIZONS)
def test_errors_in_closed_form_agree_with_steps(exponent):
    """Against sums of the first 2,000 entries, and norms against exact integers."""
    factor = buffered(2**exponent)
    found = parameters(factor.buffers)
    exact = factor.norm_squared(2**exponent) / 4**64
    assert squared_norm(*found, 2**exponent) == pytest.approx(exact, rel=1e-12)
    steps = min(2**exponent, 2000)
    lam, factors = decoder(*found)
    entries = np.sum(factors * (1 - lam) ** np.arange(steps)[:, None], axis=1)
    coder = factor.coder()
    sums = np.cumsum([coder.decode(int(k == 0) << 60) for k in range(steps)]).astype(float)
    assert entries == pytest.approx(sums * 2.0**-60, rel=1e-9)
    rows = np.cumsum(entries**2)
    squares, total, inner = prefix_squares(*found, np.array([1.0, steps]))
    assert squares == pytest.approx([1.0, rows[-1]], rel=1e-8)
    assert total == pytest.approx([1.0, rows.sum()], rel=1e-8)
    ages = (1 - lam) ** np.arange(steps)[:, None]
    assert inner[1] == pytest.approx(entries @ ages, rel=1e-8)


def test_a_tree_of_digits():
    digits = best_digits(1000)
    nodes = np.mean([digits.nodes(step) for step in range(1, 1001)])
    found = oc.streams.counter_rmse(1000, PURE)
    assert found == pytest.approx(digits.height * math.sqrt(2 * nodes), rel=1e-12)


@pytest.mark.parametrize("steps", [2**41, 2**50, 2**62])
def test_errors_of_any_number_of_steps(steps):
    assert (
        9.0 < oc.streams.counter_rmse(steps) <= oc.streams.counter_rmse(steps, endless=True) * 1.001
    )
    assert 10.0 < oc.streams.window_rmse(steps) < 1e9
