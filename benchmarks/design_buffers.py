"""Search for the parameters of buffered counters, and print them as a Python table.

    python benchmarks/design_buffers.py (horizons [MOST] | endless)

The search is deterministic and takes minutes. It uses doubles. The counters do not rely on it:
they compute the norm of whatever parameters they get, exactly and rounded up.

A buffered counter releases C x + z, where C is the lower-triangular Toeplitz matrix of
c(z) = 1 + Σ ω_i z/(1 - θ_i z), and answers with A C^-1 of this. Its error at T is |C| times the
root of the mean of the squared row norms of A C^-1. Everything is in closed form: with
δ_i = 1 - θ_i, the poles of 1/c are 1 - λ_i, where λ_i are the roots of the secular equation
1 + Σ ω_i/(δ_i - λ) = 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

BITS = 60
SMALL = 1e-4
MOST = int(sys.argv[2]) if len(sys.argv) > 2 else 40


def roots(delta, omega):
    """Return the roots of the secular equation, and how far each is above its δ."""
    gap = np.append(delta[1:], delta[-1] + omega.sum()) - delta
    away = delta[None, :] - delta[:, None]
    low, high = gap * 1e-18, gap.copy()
    for _ in range(90):
        middle = np.where(high > 4 * low, np.sqrt(low * high), (low + high) / 2)
        below = 1 + np.sum(omega / (away - middle[:, None]), axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    excess = (low + high) / 2
    return delta + excess, excess


def decoder(delta, omega):
    """Return λ and A with 1/((1 - z) c(z)) = Σ A_i/(1 - (1 - λ_i) z)."""
    found, excess = roots(delta, omega)
    lam = np.concatenate([[0.0], found])
    numerators = np.subtract.outer(delta, lam)
    numerators[np.arange(len(delta)), np.arange(1, len(lam))] = -excess
    differences = np.subtract.outer(lam, lam)
    np.fill_diagonal(differences, 1.0)
    return lam, numerators.prod(axis=0) / differences.prod(axis=0)


def squared_norm(delta, omega, horizon=None):
    """Return the squared norm of a column of C, of all time without a horizon."""
    rate = np.add.outer(delta, delta) - np.outer(delta, delta)
    weight = 1.0 if horizon is None else -np.expm1((horizon - 1) * np.log1p(-rate))
    return 1 + np.sum(np.outer(omega, omega) * weight / rate)


def mean_square(delta, omega, horizon):
    """Return the mean of the squared row norms of A C^-1 over the steps 1 to T."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = (horizon + (1 - rate) * np.expm1(horizon * np.log1p(-rate)) / rate) / rate
    few = horizon * (horizon + 1) / 2 - rate * (horizon - 1) * horizon * (horizon + 1) / 6
    sums = np.where(rate * horizon < SMALL, few, sums)
    return np.sum(np.outer(factors, factors) * sums) / horizon


def search(error: Callable, start):
    """Return the parameters (-log δ, then log ω) with the smallest error near a start."""
    count = len(start) // 2

    def guarded(point):
        rates, omega = point[:count], np.exp(point[count:])
        if not (np.all(rates > 0) and np.all(np.diff(rates) < -0.05)):
            return 1e9
        value = error(np.exp(-rates), omega)
        return value if np.isfinite(value) else 1e9

    best = None
    for _ in range(4):
        point = start if best is None else best.x
        found = minimize(guarded, point, method="BFGS")
        if best is None or found.fun < best.fun - 1e-7:
            best = found
        most = 150 * len(start)
        options = {"maxfev": most, "maxiter": most, "fatol": 1e-9, "xatol": 1e-5, "adaptive": True}
        found = minimize(guarded, best.x, method="Nelder-Mead", options=options)
        if found.fun > best.fun - 1e-6:
            return best
        best = found
    return best


def first(length, count):
    """Return a first guess: rates in geometric progression."""
    rates = np.linspace(1.0, 0.25, count) * length
    return np.concatenate([rates, -rates / 2 + np.log(0.2 * length / count)])


def buffers(exponent: int) -> int:
    """Return how many buffers a horizon of 2^exponent gets."""
    return 1 + sum(exponent > one for one in (3, 6, 10, 14, 17, 24, 32))


def shown(key: object, found) -> str:
    """Return a row of the table, on a grid of 2^-60."""
    count = len(found.x) // 2
    pairs = [
        f"({round(np.exp(-rate) * 2**BITS)}, {round(np.exp(weight) * 2**BITS)})"
        for rate, weight in zip(found.x[:count], found.x[count:], strict=True)
    ]
    return f"    {key}: (" + ", ".join(pairs) + ",),"


def horizons() -> None:
    """Search for each power of two."""
    before = None
    for exponent in range(1, MOST + 1):
        horizon, count = 2**exponent, buffers(exponent)
        start = first(np.log(horizon) * 0.95, count)
        if before is not None and len(before.x) == 2 * count:
            start = before.x.copy()
            start[:count] *= exponent / (exponent - 1)
            start[count:] -= np.log(exponent / (exponent - 1)) * start[:count] / 2

        def error(delta, omega, horizon=horizon):
            return np.log(
                squared_norm(delta, omega, horizon) * mean_square(delta, omega, horizon)
            )

        before = search(error, start)
        print(shown(exponent, before), f" # {np.exp(before.fun / 2):.6f}", flush=True)


def endless() -> None:
    """Search for the smallest mean logarithm of the errors at several horizons."""
    steps = [2.0**exponent for exponent in (6, 10, 14, 20, 30, 40)]

    def error(delta, omega):
        means = [np.log(mean_square(delta, omega, one)) for one in steps]
        return np.log(squared_norm(delta, omega)) + np.mean(means)

    count = 8
    found = search(error, first(np.log(2.0**42), count))
    delta, omega = np.exp(-found.x[:count]), np.exp(found.x[count:])
    norm = squared_norm(delta, omega)
    print(shown("None", found))
    for exponent in (4, 10, 14, 20, 30, 40, 50):
        print("   #", exponent, np.sqrt(norm * mean_square(delta, omega, 2.0**exponent)))


if __name__ == "__main__":
    {"horizons": horizons, "endless": endless}[sys.argv[1]]()
