"""Errors of factorisations, in closed form.

C has the generating function c(z) = 1 + Σ ω_i z/(1 - θ_i z). With δ_i = 1 - θ_i, the poles of 1/c
are 1 - λ_i, where λ_i are the roots of the secular equation 1 + Σ ω_i/(δ_i - λ) = 0. So A C^-1 has
entries Σ A_i (1 - λ_i)^k with λ_0 = 0. Sums of their squares are geometric. All is computed in
doubles; nothing about privacy depends on it.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .buffered import BITS, BufferedFactor, Buffers

Numbers = NDArray[np.float64]
SMALL = 1e-4
HALVINGS = 90


def parameters(buffers: Buffers) -> tuple[Numbers, Numbers]:
    """Return δ, which rises, and ω."""
    pairs = np.array(sorted(buffers), dtype=np.float64).reshape(-1, 2) * 2.0**-BITS
    return pairs[:, 0], pairs[:, 1]


def roots(delta: Numbers, omega: Numbers) -> tuple[Numbers, Numbers]:
    """Return the roots of the secular equation, and how far each is above its δ."""
    if not len(delta):
        return delta, delta
    gap = np.append(delta[1:], delta[-1] + omega.sum()) - delta
    away = delta[None, :] - delta[:, None]
    low, high = gap * 1e-18, gap.copy()
    for _ in range(HALVINGS):
        middle = np.where(high > 4 * low, np.sqrt(low * high), (low + high) / 2)
        below = 1 + np.sum(omega / (away - middle[:, None]), axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    excess = (low + high) / 2
    return delta + excess, excess


def decoder(delta: Numbers, omega: Numbers) -> tuple[Numbers, Numbers]:
    """Return λ, from λ_0 = 0, and A."""
    found, excess = roots(delta, omega)
    lam = np.concatenate([[0.0], found])
    numerators = np.subtract.outer(delta, lam)
    numerators[np.arange(len(delta)), np.arange(1, len(lam))] = -excess
    differences = np.subtract.outer(lam, lam)
    np.fill_diagonal(differences, 1.0)
    return lam, numerators.prod(axis=0) / differences.prod(axis=0)


def squared_norm(delta: Numbers, omega: Numbers, horizon: float | None = None) -> float:
    """Return the squared norm of a column of C; of all time without a horizon."""
    rate = np.add.outer(delta, delta) - np.outer(delta, delta)
    weight = 1.0 if horizon is None else -np.expm1((horizon - 1) * np.log1p(-rate))
    return 1 + float(np.sum(np.outer(omega, omega) * weight / rate))


def prefix_squares(delta: Numbers, omega: Numbers, steps: Numbers) -> tuple[Numbers, ...]:
    """Return the squared norms of rows of A C^-1, their sums up to there, and inner products.

    :return: for each of the steps: the squared norm of its row, which grows with the step; the sum
        of those of all rows up to it; its products with the rows (1 - λ_i)^age
    """
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    rate[0, 0], at = 0.5, steps[:, None, None]  # that of λ_0, 0, has other formulas: see below
    gone = np.expm1(at * np.log1p(-rate))
    products, sums = -gone / rate, (at + (1 - rate) * gone / rate) / rate
    products[:, 0, 0] = steps
    few = at * (at + 1) / 2 - rate * (at - 1) * at * (at + 1) / 6
    sums = np.where(rate * at < SMALL, few, sums)
    sums[:, 0, 0] = steps * (steps + 1) / 2
    inner = products @ factors
    return inner @ factors, np.einsum("i,tij,j->t", factors, sums, factors), inner


def errors(factor: BufferedFactor, steps: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the variances of the first sums, for noise of variance 1, in blocks of steps.

    In a block d is constant, so the noise at step t is E + d P_t: P_t is that of A C^-1, and E is
    the noise before the block, minus d P there. E and P are sums with weights that are at least 0,
    since d falls. So the variance is at most that with the covariance of E and P at the first step
    of the block, which falls, and the variance of P at the last one, which grows.

    :return: for each block its length, the sum of its variances, and a bound on each of them
    """
    delta, omega = parameters(factor.buffers)
    lam, factors = decoder(delta, omega)
    found, left = [], steps
    for length, column in factor.blocks():
        found.append((min(length, left), column))
        left -= length
        if left <= 0:
            break
    lengths, columns = np.array(found, dtype=np.float64).T
    rate = np.add.outer(delta, delta) - np.outer(delta, delta)
    column_squares = 1 - np.einsum(
        "tij,ij->t",
        np.expm1((columns[:, None, None] - 1) * np.log1p(-rate)),
        np.outer(omega, omega) / rate,
    )
    norms = np.sqrt(column_squares)
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    squares, sums, inner = prefix_squares(delta, omega, ends)
    kept = np.log1p(-lam)
    away = np.exp(np.outer(lengths, kept))
    ages = np.where(lam > 0, (1 - lam) * (1 - away) / np.where(lam > 0, lam, 1.0), lengths[:, None])
    totals, bounds = np.empty(len(lengths)), np.empty(len(lengths))
    variance, with_rows = 0.0, np.zeros(len(lam))  # of the noise, and its products with rows
    for block, norm in enumerate(norms):
        before = with_rows - norm * inner[block]
        own = variance - 2 * norm * (factors @ with_rows) + norm**2 * squares[block]
        shared = 2 * norm * factors * before
        totals[block] = lengths[block] * own + shared @ ages[block]
        totals[block] += norm**2 * (sums[block + 1] - sums[block])
        bounds[block] = own + shared @ np.exp(kept) + norm**2 * squares[block + 1]
        variance = own + shared @ away[block] + norm**2 * squares[block + 1]
        with_rows = away[block] * before + norm * inner[block + 1]
    return lengths, totals, bounds


def window_square(delta: Numbers, omega: Numbers, window: float) -> float:
    """Return the squared norm of a row of the last W steps' sum times C^-1, late in a stream."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = -np.expm1(window * np.log1p(-rate)) / rate
    inside = np.sum(np.outer(factors, factors) * np.where(rate == 0, window, sums))
    left = factors[1:] * -np.expm1(window * np.log1p(-lam[1:]))
    return float(inside + np.sum(np.outer(left, left) / rate[1:, 1:]))


def window_variance(factor: BufferedFactor, window: int) -> float:
    """Return the variance of the noise of the last W steps' sum, for noise of variance 1."""
    found = parameters(factor.buffers)
    return squared_norm(*found, factor.horizon) * window_square(*found, window)


def mean_error(factor: BufferedFactor, steps: int) -> float:
    """Return the root mean square error over the first steps, for noise of variance 1."""
    return sqrt(float(errors(factor, steps)[1].sum()) / steps)
