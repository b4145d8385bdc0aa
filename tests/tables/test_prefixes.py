"""Strategies for prefix counts: errors against published optima, tails, and intervals."""

from math import sqrt

import numpy as np
import pytest

from opendp_concurrent.mechanisms.noise import LaplaceNoise
from opendp_concurrent.tables import moments as prefixes
from opendp_concurrent.tables.moments import Strategy, strategy_for

OPTIMA = {8: 1.494414, 16: 1.6909, 64: 2.1010}  # by 13 iterations or a descent over all matrices


@pytest.mark.parametrize("cells", OPTIMA)
def test_gaussian_strategies_are_near_the_optimum(cells):
    found = strategy_for(cells, "l2").error("l2")
    assert 0.999 * OPTIMA[cells] <= found <= 1.01 * OPTIMA[cells]


@pytest.mark.parametrize(("cells", "most"), [(16, 4.0), (64, 5.85), (90, 6.38)])
def test_laplace_strategies_are_better_than_a_noisy_histogram(cells, most):
    flat = Strategy.of(np.eye(cells, dtype=np.int64)).error("l1")
    assert flat == pytest.approx(sqrt((cells + 1) / 2))
    assert sqrt(2) * strategy_for(cells, "l1").error("l1") <= most * sqrt(2)
    assert strategy_for(cells, "l1").error("l1") < flat


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("cells", [1, 2, 3, 17, 40])
def test_prefix_counts_come_back_exactly(norm, cells):
    strategy = strategy_for(cells, norm)
    counts = [(7 * i) % 11 for i in range(cells)]
    back = strategy.prefixes @ np.array(strategy.combine(counts), dtype=float)
    assert back == pytest.approx(np.cumsum(counts), abs=1e-6)
    assert strategy.matrix.dtype == np.int64
    columns = np.abs(strategy.matrix).T.tolist()
    norms = strategy.per_row
    assert norms.l1 == max(map(sum, columns))
    assert norms.l2_squared == max(sum(one * one for one in column) for column in columns)
    assert norms.linf == max(map(max, columns))


def test_large_counts_are_combined_exactly():
    strategy = strategy_for(9, "l2")
    counts = [2**60 + i for i in range(9)]
    exact = [
        sum(a * x for a, x in zip(row, counts, strict=True)) for row in strategy.matrix.tolist()
    ]
    assert strategy.combine(counts) == exact


@pytest.mark.parametrize("laplace", [True, False])
def test_tails_hold(laplace):
    noise, weights, scale = LaplaceNoise(4.0, 1024), np.array([1.0, -0.5, 0.25, 0.0]), 4.0
    rng = np.random.default_rng(1)
    runs = 4000
    drawn = (
        np.array([noise.draw() for _ in range(4 * runs)]).reshape(runs, 4)
        if laplace
        else rng.normal(0, scale, (runs, 4))
    )
    for alpha in (0.5, 0.1, 0.01):
        most = prefixes._tail(weights, laplace, scale, alpha)
        assert (np.abs(drawn @ weights) > most).mean() <= alpha
    assert prefixes._tail(0 * weights, laplace, scale, 0.1) == 0.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_intervals_have_the_quantile(norm):
    cuts, strategy = list(range(0, 50, 2)), strategy_for(26, norm)
    rng, missed, widths = np.random.default_rng(2), 0, []
    counts = rng.integers(0, 30, 26).tolist()
    below = np.cumsum(counts)
    truth = cuts[int(np.nonzero(below[:-1] <= 0.3 * below[-1])[0][-1])]
    scale = 3.0 * (sqrt(strategy.per_row.l2_squared) if norm == "l2" else strategy.per_row.l1)
    exact = np.array(strategy.combine(counts))
    for _ in range(300):
        draw = (
            rng.laplace(0, scale, len(exact)) if norm == "l1" else rng.normal(0, scale, len(exact))
        )
        noisy = np.rint(exact + draw).astype(int).tolist()
        (found,) = strategy.quantiles(noisy, cuts, 0.3, (norm == "l1", scale), 0.1)
        missed += not found.lower <= truth <= found.upper
        assert found.lower <= found.value <= found.upper
        widths.append(found.upper - found.lower)
    assert missed <= 30
    assert np.mean(widths) < 30
    (sure,) = strategy.quantiles(exact.tolist(), cuts, 0.3, (norm == "l1", 1e-9), 0.1)
    assert sure.value == sure.lower == sure.upper == truth
