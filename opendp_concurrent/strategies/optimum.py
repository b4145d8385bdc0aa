"""The best strategy for Gaussian noise, by a fixed point, with a certificate.

A workload W asks W x of counts x. A strategy A with columns of norm at most 1 answers it from
A x + noise, with the squared error tr(G X^-1), where G = WᵀW and X = AᵀA. Let V = diag(v) for any
v > 0, and S = (V^½ G V^½)^½. Then X = V^-½ S V^-½ has the diagonal r = diag(S)/v, and

    (tr S)² / Σ v  <=  the least squared error  <=  tr S · max r,

by the dual with multipliers proportional to v, and by the strategy X / max r. The fixed point sets
v to diag(S) [DMRST22, Algorithm 1] until both bounds are close. That it converges is not needed:
the best strategy so far is kept, and the bounds hold at every step.

If G = BᵀB and B V Bᵀ = L s² Lᵀ, then tr S = Σ s, and A = s^-½ Lᵀ B has AᵀA = X.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CLOSE = 1.005  # bounds on the root of the error: closer is not worth more steps
MOST_STEPS = 200
NOTHING = 1e-12  # of the largest eigenvalue: others belong to the null space
FAINT = 2.0**-7  # least weight of single cells, where a workload does not determine them


@dataclass(frozen=True, eq=False)
class Optimum:
    """A strategy, and bounds on the least error that any strategy has.

    :ivar matrix: A, shape (rows, cells), with columns of norm at most 1
    :ivar least: no strategy has a smaller root of the squared error
    :ivar reached: A has at most this; greater than ``least`` by the certificate's factor
    """

    matrix: Array
    least: float
    reached: float


def root_of(work: Array) -> Array:
    """Return B with BᵀB = WᵀW and at most as many rows as W has rows or columns."""
    if len(work) <= work.shape[1]:
        return work
    values, vectors = np.linalg.eigh(work.T @ work)
    kept = values > NOTHING * values[-1]
    root: Array = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    return root


def optimum(work: Array, close: float = CLOSE) -> Optimum:
    """Return a strategy for Gaussian noise whose error is at most ``close`` times the least.

    :param work: shape (queries, cells), without columns of zeros
    """
    root = root_of(work)
    v, least, reached, best = np.ones(root.shape[1]), 0.0, inf, root
    for _ in range(MOST_STEPS):
        values, vectors = np.linalg.eigh(root * v @ root.T)
        kept = values > NOTHING * values[-1]
        s = np.sqrt(values[kept])
        found: Any = (vectors[:, kept] / np.sqrt(s)).T @ root
        r = np.square(found).sum(axis=0)
        least = max(least, s.sum() / sqrt(v.sum()))
        if sqrt(s.sum() * r.max()) < reached:
            reached, best = sqrt(s.sum() * r.max()), found / sqrt(r.max())
        if reached <= close * least:
            break
        v = v * r
    return Optimum(best, float(least), float(reached))


def determined(strategy: Array, step: float = 0.0) -> Array:
    """Return a strategy that determines all cells, so that it can be rounded.

    If rows are missing, rounding moves the space of the rows, and the workload is no longer in it.
    Single cells with a small weight are added. They cost a part of 2^-14 of the squared error.

    :param step: what entries are rounded to multiples of; the weight is not smaller
    """
    if len(strategy) >= strategy.shape[1]:
        return strategy
    return np.vstack([strategy, max(FAINT, step) * np.eye(strategy.shape[1])])
