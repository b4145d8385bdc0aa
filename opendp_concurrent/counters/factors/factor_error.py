"""Errors of buffered factorisations, in closed form.

C has the generating function c(z) = 1 + Σ ω_i z/(1 - θ_i z), and answers are A C^-1 of the
releases. With δ_i = 1 - θ_i, the poles of 1/c are 1 - λ_i, where λ_i are the roots of the secular
equation 1 + Σ ω_i/(δ_i - λ) = 0. So A C^-1 has entries Σ A_i (1 - λ_i)^k with λ_0 = 0. Sums of
their squares are geometric. All is computed in doubles; nothing about privacy depends on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .buffers_table import BITS, Buffers

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


def mean_square(delta: Numbers, omega: Numbers, horizon: float) -> float:
    """Return the mean of the squared row norms of A C^-1 over the steps 1 to T."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = (horizon + (1 - rate) * np.expm1(horizon * np.log1p(-rate)) / rate) / rate
    few = horizon * (horizon + 1) / 2 - rate * (horizon - 1) * horizon * (horizon + 1) / 6
    sums = np.where(rate * horizon < SMALL, few, sums)
    return float(np.sum(np.outer(factors, factors) * sums)) / horizon


def prefix_square(delta: Numbers, omega: Numbers, steps: float) -> float:
    """Return the squared norm of the row of A C^-1 at a step; it grows with the step."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = -np.expm1(steps * np.log1p(-rate)) / rate
    return float(np.sum(np.outer(factors, factors) * np.where(rate == 0, steps, sums)))


def row_squares(delta: Numbers, omega: Numbers, horizon: int) -> Numbers:
    """Return the squared row norms of A C^-1 at the steps 1 to T, one by one."""
    lam, factors = decoder(delta, omega)
    entries = np.zeros(horizon)
    for one, factor in zip(lam, factors, strict=True):
        entries += factor * np.exp(np.log1p(-one) * np.arange(horizon))
    return np.cumsum(entries**2)


def window_square(delta: Numbers, omega: Numbers, window: float) -> float:
    """Return the squared norm of a row of the last W steps' sum times C^-1, late in a stream."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = -np.expm1(window * np.log1p(-rate)) / rate
    inside = np.sum(np.outer(factors, factors) * np.where(rate == 0, window, sums))
    left = factors[1:] * -np.expm1(window * np.log1p(-lam[1:]))
    return float(inside + np.sum(np.outer(left, left) / rate[1:, 1:]))
