"""How far one unit moves C x: the norm of a column, or of a few columns together.

A unit contributes vectors of norm at most 1 to some steps S. So C x moves by at most the root of
Σ |G_ij| over i, j in S, in the Frobenius norm, where G = C'C. One step: the norm of a column. More
steps: the sum over i of Σ_j |G_ij| is bounded for each i by itself, by dynamic programming over the
steps that a unit may take part in beside i. This is exact if columns that far apart are orthogonal.
For a Toeplitz matrix whose column never rises it is exact by ``exact/participations.py``, as for
counters.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp

import numpy as np

from ..errors import InvalidValueError
from ..exact.participations import Participations, never_rises, spaced_square
from ..exact.rounding import SMALLEST, sqrt_up, to_units
from .bounds import UNIT, Array

MOST_COLUMNS = 4096  # whose inner products are computed


def column_mu(encoder: Array, sigma: Fraction, participations: int, separation: int) -> float:
    """The largest distance over ``sigma``, rounded up to a double.

    :param encoder: finite, with rows for outputs and columns for steps
    """
    if not np.any(encoder):
        return 0.0
    if participations == 1 or separation >= encoder.shape[1]:
        squares = _largest_column(encoder)
    elif _is_toeplitz(encoder) and never_rises(encoder[:, 0].tolist()):
        column, unit = encoder[:, 0].tolist(), Participations(participations, separation)
        units = spaced_square([to_units(entry) for entry in column], len(column), unit)
        squares = Fraction(units, 1 << 2 * SMALLEST)
    else:
        squares = _largest_set(encoder, participations, separation)
    ratio = squares / sigma**2
    return sqrt_up(-(-(ratio.numerator << 2 * SMALLEST) // ratio.denominator))


def _is_toeplitz(encoder: Array) -> bool:
    """Whether it is square and lower triangular, with one value on each diagonal."""
    same = np.array_equal(encoder[1:, 1:], encoder[:-1, :-1])
    return encoder.shape[0] == encoder.shape[1] and same and not encoder[0, 1:].any()


def _largest_column(encoder: Array) -> Fraction:
    """The largest sum of squares, exactly: of the columns that are near it in doubles."""
    scaled = np.ldexp(encoder, -frexp(float(np.max(np.abs(encoder))))[1])
    norms = np.einsum("ij,ij->j", scaled, scaled)
    near = np.flatnonzero(norms >= np.max(norms) * (1 - 1e-8))  # at most 10^7 roundings
    units = max(
        sum(to_units(abs(entry)) ** 2 for entry in encoder[:, j].tolist() if entry) for j in near
    )
    return Fraction(units, 1 << 2 * SMALLEST)


def _largest_set(encoder: Array, participations: int, separation: int) -> Fraction:
    """An upper bound on the largest Σ |G_ij| over steps i and j of one unit."""
    rows, columns = encoder.shape
    if columns > MOST_COLUMNS:
        raise InvalidValueError(
            f"encoder must have at most {MOST_COLUMNS} columns for several participations, found "
            f"{columns}; pass a bound on the sensitivity to TradeoffFunction.gaussian"
        )
    count = min(participations, -(-columns // separation))
    exponent = frexp(float(np.max(np.abs(encoder))))[1]
    scaled = np.ldexp(encoder, -exponent)  # products that underflow are far below the margin
    sizes = np.abs(scaled)
    inner = np.abs(scaled.T @ scaled) + (2 * rows + 16) * UNIT * (sizes.T @ sizes)
    left = _sums(inner, count, separation)
    right = _sums(inner[::-1, ::-1], count, separation)[:, ::-1]
    beside = np.max([left[m] + right[count - 1 - m] for m in range(count)], axis=0)
    each = np.diagonal(inner) + beside
    total = _best(each, count, separation)
    margin = 1 + Fraction(64 * (count + 4)) * Fraction(UNIT)
    return Fraction(total) * margin * Fraction(2) ** (2 * exponent)


def _sums(inner: Array, count: int, separation: int) -> Array:
    """For each step i, the largest sums of G_ij over at most 0, ..., count - 1 steps before i."""
    columns = len(inner)
    found = np.zeros((count, columns))
    best = np.zeros((separation + 1, count, columns))  # after step j, at j modulo its length
    for j in range(columns):
        before, earlier = best[(j - 1) % len(best)], best[(j - separation) % len(best)]
        now = best[j % len(best)]
        now[0] = 0.0
        now[1:] = np.maximum(before[1:], earlier[:-1] + inner[:, j])
        if j + separation < columns:
            found[:, j + separation] = now[:, j + separation]
    return found


def _best(each: Array, count: int, separation: int) -> float:
    """The largest sum over at most ``count`` steps."""
    best = np.zeros((len(each) + separation, count + 1))
    for j, value in enumerate(each.tolist(), separation):
        best[j] = best[j - 1] if j > separation else 0.0
        best[j, 1:] = np.maximum(best[j, 1:], best[j - separation, :-1] + value)
    return float(best[-1, -1])
