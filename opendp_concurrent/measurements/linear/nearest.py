"""The histogram whose answers are nearest to noisy answers, with a certified duality gap.

Let f(h) = |Q h - y|², r = Q h - y and g = Qᵀ r at the histogram h that was found. The histograms
allowed are nonnegative and have a known sum n, or any sum up to 2^32. Let G be twice the largest
<r, Q h - Q v> over the histograms v that are allowed: 2 (<g, h> - n min g) for a known sum, else
2 (<g, h> + 2^32 max(0, -min g)). For every v that is allowed, whatever h is:

* f is convex, so f(v) >= f(h) - G: no histogram is nearer than f(h) - G.
* |y - Q v|² = |Q h - Q v|² - 2 <r, Q h - Q v> + |r|² >= |Q h - Q v|² - G + |r|². So if G <= |r|²,
  then Q h is at most as far from Q v as y is. Let v be the truth: the error is at most the noise.

G is computed in the longest floats of the machine, with a bound on the rounding error: a sum of m
products of floats with relative error u is within m u / (1 - m u) of the sum of magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

import numpy as np
import scipy

from .histogram import MOST_RECORDS, Array

FIRM = 1e6  # weight of the sum, relative to the largest value of a query
ENOUGH = 1e-9  # a gap of this part of the squared distance is small enough


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """A histogram, and how near its answers are.

    :ivar histogram: shape (cells,), nonnegative
    :ivar gap: upper bound on how far its squared distance is above the least possible one
    :ivar never_worse: whether its answers are proven to be at most as far from the answers of each
        allowed histogram as the noisy answers are
    """

    histogram: Array
    gap: float
    never_worse: bool


def nearest(answers: Array, queries: Array, size: int | None) -> Nearest:
    """Return the histogram whose answers are nearest in L2.

    :param answers: noisy, shape (queries,), in units of their noise
    :param queries: shape (queries, cells), nonnegative, each in units of its noise
    :param size: the sum of the histogram; None if only a sum of at most 2^32 is known
    """
    found = certify(_solve(answers, queries, size), answers, queries, size)
    squared = float(np.sum(np.square(queries @ found.histogram - answers)))
    if found.gap <= ENOUGH * squared:
        return found
    histogram = _polish(found.histogram, answers, queries, size)
    return min(found, certify(histogram, answers, queries, size), key=lambda one: one.gap)


def _solve(answers: Array, queries: Array, size: int | None) -> Array:
    """Nonnegative least squares; a known sum is one more answer, of a large weight."""
    cells, matrix, target = queries.shape[1], queries, answers
    if size is not None:
        firm = FIRM * max(float(queries.max()), 1e-300)
        matrix = np.vstack([queries, np.full((1, cells), firm)])
        target = np.append(answers / size, firm)
    if len(matrix) > 16 * cells:  # the same distances, up to a constant
        short: Any = np.linalg.qr(np.column_stack([matrix, target]), mode="r")
        matrix, target = short[:, :-1], short[:, -1]
    try:
        histogram: Array = scipy.optimize.nnls(matrix, target)[0]
    except (RuntimeError, scipy.linalg.LinAlgError):  # too many rounds: the gap will say so
        histogram = np.zeros(cells)
    return _feasible(histogram, size)


def _feasible(histogram: Array, size: int | None) -> Array:
    histogram = np.maximum(np.nan_to_num(histogram), 0.0)
    total = float(histogram.sum())
    if size is None:
        return histogram if total <= MOST_RECORDS else histogram * (MOST_RECORDS / total)
    if not 0.0 < total < inf:
        return np.full(len(histogram), size / len(histogram))
    return histogram * (size / total)


def _polish(histogram: Array, answers: Array, queries: Array, size: int | None) -> Array:
    """One Newton step over the cells that are not empty, which keeps the sum."""
    cells = np.flatnonzero(histogram > 0.0)
    if len(cells) == 0:
        return histogram
    rest = int(cells[np.argmax(histogram[cells])])
    columns = queries[:, cells]
    if size is not None:
        columns = columns - queries[:, [rest]]
        kept = cells != rest
        cells, columns = cells[kept], columns[:, kept]
    if len(cells) == 0:  # one cell has the whole sum
        return histogram
    residual = answers - queries @ histogram
    try:
        step = scipy.linalg.cho_solve(
            scipy.linalg.cho_factor(columns.T @ columns), columns.T @ residual
        )
    except (scipy.linalg.LinAlgError, ValueError):  # dependent columns
        return histogram
    moved = histogram.copy()
    moved[cells] += step
    if size is not None:
        moved[rest] -= step.sum()
    return _feasible(moved, size)


def certify(histogram: Array, answers: Array, queries: Array, size: int | None) -> Nearest:
    """Return a histogram with its gap, rounded up, and whether it is never worse than the noise."""
    count, cells = queries.shape
    long: Any = np.longdouble
    unit = max(float(np.finfo(long).eps), 2.0**-63)  # twice that of an operation; not of pairs
    h, y, q = histogram.astype(long), answers.astype(long), queries.astype(long)
    magnitude = q @ h + np.abs(y)
    residual = q @ h - y
    wrong = (cells + 2) * unit * magnitude
    gradient = residual @ q
    most = np.abs(residual) + wrong
    slack = (wrong + (count + 2) * unit * most) @ q
    high, low = gradient + slack, gradient - slack
    least = float(low.min())
    other = MOST_RECORDS * max(0.0, -least) if size is None else -size * least
    total = h @ np.abs(high) + abs(other)
    gap = 2 * (float(h @ high) + other) + 4 * (cells + 8) * 2.0**-52 * float(total)
    gap = nextafter(max(0.0, gap) * (1 + 2.0**-40), inf)
    if not gap < inf:
        return Nearest(histogram, inf, never_worse=False)
    certain = np.maximum(np.abs(residual) - wrong, 0.0)
    distance = float((certain * certain).sum()) * (1 - (count + 2) * 2.0**-50)
    return Nearest(histogram, gap, never_worse=gap <= distance)
