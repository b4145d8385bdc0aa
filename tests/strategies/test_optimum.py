"""The optimum of the matrix mechanism: its certificate, and numbers found in other ways."""

from math import sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from opendp_concurrent.strategies.optimum import determined, optimum, root_of

GENERATOR = np.random.default_rng(0)
WORKLOADS = {
    "prefixes": np.tri(12),
    "ranges": np.array([[i <= x <= j for x in range(6)] for i in range(6) for j in range(i, 6)]),
    "few": GENERATOR.random((3, 9)),
    "dependent": np.vstack([np.eye(4).repeat(2, axis=1), np.ones((1, 8))]),
    "one": np.ones((1, 1)),
}


def squared_error(strategy, work):
    """tr(G X^-1) times the largest squared column of A."""
    inverse = np.linalg.pinv(strategy)
    assert work @ inverse @ strategy == pytest.approx(work, abs=1e-8)
    return np.square(strategy).sum(axis=0).max() * np.square(work @ inverse).sum()


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_strategy_has_the_error_that_is_certified(name):
    work = WORKLOADS[name].astype(float)
    found = optimum(work)
    assert sqrt(squared_error(found.matrix, work)) == pytest.approx(found.reached, rel=1e-6)
    assert found.least <= found.reached <= 1.005 * found.least * (1 + 1e-12)
    assert np.square(found.matrix).sum(axis=0).max() <= 1 + 1e-12
    full = determined(found.matrix)
    assert np.linalg.matrix_rank(full) == work.shape[1]
    assert sqrt(squared_error(full, work)) <= 1.001 * found.reached


@pytest.mark.parametrize("name", ["prefixes", "ranges", "few"])
def test_no_strategy_is_below_the_lower_bound(name):
    """Descent over all square matrices with columns of norm 1, from several starts."""
    work = WORKLOADS[name].astype(float)
    cells, least = work.shape[1], optimum(work, 1.0001).least
    gram = work.T @ work

    def error(flat):
        matrix = flat.reshape(cells, cells)
        matrix = matrix / np.linalg.norm(matrix, axis=0)
        return np.trace(np.linalg.solve(matrix.T @ matrix + 1e-9 * np.eye(cells), gram))

    found = min(
        minimize(error, np.eye(cells).ravel() + GENERATOR.normal(size=cells**2) / 3).fun
        for _ in range(2)
    )
    assert least <= sqrt(found) * (1 + 1e-6)
    assert sqrt(found) <= 1.05 * least


@pytest.mark.parametrize(("cells", "rmse"), [(8, 1.494414), (16, 1.6899), (64, 2.1002)])
def test_published_optima_of_prefixes(cells, rmse):
    found = optimum(np.tri(cells))
    assert found.least <= rmse * sqrt(cells) <= found.reached


def test_marginals_have_the_closed_form():
    """All pairs of 5 bits: (sum over S of sqrt g_S)² / N, g_S = sum of 2^3 over pairs above S."""
    bits, pairs = 5, 10
    values = np.arange(2**bits)
    work = np.array(
        [
            [(v >> i & 1, v >> j & 1) == cell for v in values]
            for i in range(bits)
            for j in range(i)
            for cell in ((0, 0), (0, 1), (1, 0), (1, 1))
        ],
        dtype=float,
    )
    total = sqrt(8 * pairs) + 5 * sqrt(8 * 4) + pairs * sqrt(8)
    found = optimum(work)
    assert found.least == pytest.approx(total / sqrt(2**bits), rel=1e-6)
    assert found.reached == pytest.approx(total / sqrt(2**bits), rel=1e-6)


def test_a_root_has_the_same_products():
    for work in WORKLOADS.values():
        root = root_of(work.astype(float))
        assert root.T @ root == pytest.approx(work.T.astype(float) @ work, abs=1e-9)
        assert len(root) <= min(work.shape)
