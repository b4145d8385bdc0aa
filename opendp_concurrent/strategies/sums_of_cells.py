"""Strategies for Laplace noise: cells with sums over blocks, and cells with weighted sums.

A tree has the cells and the sums over blocks of b, b², ... cells, but not the sum of all, which
only costs. A p-identity strategy has the cells and p weighted sums T, with columns divided by their
sums D = 1 + Σ T, so that a record moves each column by 1 in L1 [MMHM18]. With the identity I, its
squared error is tr((I + TᵀT)^-1 D G D), G = WᵀW. T is found by descent: its error is that of the
strategy that was found, and no bound on the best one is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
BRANCHES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
ROUNDS = 150  # of the descent
SHARE = 16  # cells to a weighted sum


def tree(cells: int, branch: int) -> NDArray[np.int64]:
    """Return the cells, and sums over blocks of b, b², ... cells; not over all."""
    rows, size = [np.eye(cells, dtype=np.int64)], branch
    while size < cells:
        blocks = np.arange(-(-cells // size))[:, None]
        rows.append((np.arange(cells) // size == blocks).astype(np.int64))
        size *= branch
    return np.vstack(rows)


def p_identity(gram: Array) -> Array:
    """Return a strategy whose columns have entries of at least 0 and sums of 1.

    :param gram: WᵀW, shape (cells, cells)
    """
    cells = len(gram)
    sums, diagonal = max(2, cells // SHARE), np.diag(gram)

    def error(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(sums, cells)
        total = 1.0 + weights.sum(axis=0)
        inverse = np.linalg.solve(np.eye(sums) + weights @ weights.T, weights)
        product = (inverse * total) @ gram * total
        inner = product @ weights.T
        value = float(diagonal @ np.square(total) - np.trace(inner))
        slope = diagonal * total - (weights * product).sum(axis=0) / total
        gradient: Any = 2 * (slope - product + inner @ inverse)
        return value, gradient.ravel()

    noise = np.random.default_rng(0).random((sums, cells))  # the same in each call
    blocks = np.arange(cells) * sums // cells == np.arange(sums)[:, None]
    found: Any = min(
        (
            scipy.optimize.minimize(
                error,
                start.ravel(),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * start.size,
                options={"maxiter": ROUNDS},
            )
            for start in (0.5 * noise, blocks + 0.05 * noise)
        ),
        key=lambda one: float(one.fun),
    )
    weights = found.x.reshape(sums, cells)
    strategy: Array = np.vstack([np.eye(cells), weights]) / (1.0 + weights.sum(axis=0))
    return strategy
