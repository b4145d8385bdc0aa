"""Which mechanism answers a batch of linear queries best, by the error that each can promise.

Let y = Q x + σ w be noisy answers to the batch Q about the histogram x, w noise of scale 1, and z =
Q h the projection of y onto the answers of the histograms that are allowed, x among them.

* The projection lies in the span of the columns of Q, whose dimension is the rank r. So
  |z - Q x| is at most σ times the norm of w projected onto the span, whose square is r times the
  variance in expectation.
* <y - z, Q x - z> <= 0, so |z - Q x|² <= σ <w, z - Q x> = σ Σ (h_j - x_j) <w, Q_j - c>, for any
  c if h and x have the same sum n. This is at most 2 n σ max_j |<w, Q_j - c>| [NTZ13]. Here c is
  the mean of the columns.

A gap G of the projection, as in ``nearest.py``, adds at most sqrt(G) noise scales to its norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from .histogram import FRACTION, Array
from .tails import Shape, Tails

QUERIES, HISTOGRAM, PROJECTION, WEIGHTS = "queries", "histogram", "projection", "weights"
METHODS = (QUERIES, HISTOGRAM, PROJECTION, WEIGHTS)
CRITERIA = ("root_mean_square", "largest")
MARGIN = 0.85  # measured: see planner_regret in benchmarks/mechanisms.py
ROUNDING = 1 / FRACTION  # of answers up to 2^32 to doubles


@dataclass(frozen=True)
class Promise:
    """The error that a mechanism promises for a batch.

    :ivar method: ``"queries"``, ``"histogram"``, ``"projection"`` or ``"weights"``
    :ivar root_mean_square: bound on the root of the expected mean of the squared errors, in
        records; exact for noise that is not projected; equal to ``largest`` for weights
    :ivar largest: bound on the largest error, in records, with probability at least 1 - β
    :ivar reason: why nothing is promised, if both are infinite
    """

    method: str
    root_mean_square: float
    largest: float
    reason: str = ""


@dataclass(frozen=True)
class LinearPlan:
    """Which mechanism was chosen for a batch, and what each one promises.

    :ivar method: the mechanism that answers
    :ivar minimize: the error that was compared: ``"root_mean_square"`` or ``"largest"``
    :ivar beta: probability that a promise of the largest error fails
    :ivar promises: one for each mechanism
    """

    method: str
    minimize: str
    beta: float
    promises: tuple[Promise, ...]

    @property
    def promise(self) -> Promise:
        """What the chosen mechanism promises."""
        return next(one for one in self.promises if one.method == self.method)

    def __repr__(self) -> str:
        lines = [("", "root mean square", f"largest ({1 - self.beta:g})")]
        for one in self.promises:
            name = f"{one.method} (chosen)" if one.method == self.method else one.method
            if one.reason:
                lines.append((f"{name}: {one.reason}", "", ""))
            else:
                lines.append((name, f"{one.root_mean_square:.4g}", f"{one.largest:.4g}"))
        wide = max(len(name) for name, number, _ in lines if number)
        return "\n".join(f"{a:<{wide}}{b:>18}{c:>18}".rstrip() for a, b, c in lines)


@dataclass(frozen=True, slots=True)
class Workload:
    """A batch, as far as it matters to the errors.

    :ivar count: number of queries
    :ivar rank: bound on the rank of the batch
    :ivar rows: shape of the matrix of queries by cells
    :ivar columns: shape of the matrix of cells by queries, less the mean column
    :ivar square: mean squared norm of a query
    """

    count: int
    rank: int
    rows: Shape
    columns: Shape
    square: float

    @staticmethod
    def of(matrix: Array) -> Workload:
        """Return the workload of a matrix, shape (queries, cells)."""
        centred = (matrix - matrix.mean(axis=1, keepdims=True)).T
        rank = min(matrix.shape)
        if matrix.size <= 2**24:
            rank = min(len(np.unique(one, axis=0)) for one in (matrix, matrix.T))
        square = float(np.square(matrix).sum() / len(matrix))
        return Workload(len(matrix), rank, Shape.of(matrix), Shape.of(centred), square)

    @staticmethod
    def unknown(count: int, cells: int) -> Workload:
        """Return the worst workload of so many queries with values in [0, 1]."""

        def shape(rows: int, columns: int, top: float) -> Shape:
            norm = np.full(1, top * sqrt(columns))
            return Shape(norm, top, top * sqrt(rows * columns), rows)

        # columns are taken less 1/2, so that entries are at most 1/2
        return Workload(
            count, min(count, cells), shape(count, cells, 1.0), shape(cells, count, 0.5), cells
        )


def direct(work: Workload, tails: Tails, scale: float, beta: float) -> Promise:
    """Noise of this scale on each answer."""
    largest = scale * tails.largest_of(work.count, beta)
    return _promise(QUERIES, scale * sqrt(tails.variance), largest)


def cells(
    work: Workload, tails: Tails, scale: float, beta: float, *, projects: bool = False
) -> Promise:
    """Noise of this scale on each cell. A projection keeps the norm of the errors, at most."""
    largest = tails.largest(work.rows, beta)
    if projects:
        largest = min(sqrt(work.count) * largest, tails.norm(work.rows, beta))
    return _promise(HISTOGRAM, scale * sqrt(tails.variance * work.square), scale * largest)


def projected(work: Workload, tails: Tails, scale: float, beta: float, size: int | None) -> Promise:
    """The same noise as :func:`direct`, projected; the least of the bounds holds."""
    expected = scale * scale * tails.variance * work.rank
    squared = scale * scale * tails.energy(work.rank, beta)
    if size is not None:
        expected = min(expected, 2 * size * scale * tails.expected(work.columns))
        squared = min(squared, 2 * size * scale * tails.largest(work.columns, beta))
    return _promise(PROJECTION, sqrt(expected / work.count), sqrt(squared))


def _promise(method: str, root_mean_square: float, largest: float) -> Promise:
    return Promise(method, root_mean_square + ROUNDING, largest + ROUNDING)


def nothing(method: str, reason: str) -> Promise:
    """Return a promise of nothing, with the reason."""
    return Promise(method, inf, inf, reason)


def choose(promises: tuple[Promise, ...], minimize: str) -> str:
    """Return the mechanism with the least promise; of equals, the first of the better ones.

    The promise of a projection leaves out what nonnegative cells remove. Such a gain is larger
    where the noise is on the answers. So it is chosen at a root mean square somewhat above.
    """
    better = (PROJECTION, HISTOGRAM, QUERIES, WEIGHTS)  # projection is never worse than queries

    def cost(one: Promise) -> tuple[float, int]:
        known = one.method == PROJECTION and minimize == "root_mean_square"
        return getattr(one, minimize) * (MARGIN if known else 1.0), better.index(one.method)

    return min(promises, key=cost).method
