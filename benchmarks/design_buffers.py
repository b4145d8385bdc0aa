"""Search for the parameters of buffered counters, and print them as a Python table.

    python benchmarks/design_buffers.py (horizons [MOST] | endless)

The search is deterministic and takes minutes. It uses doubles. The counters do not rely on it:
they compute the norm of whatever parameters they get, exactly and rounded up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from opendp_concurrent.counters.factors.buffers_table import BITS
from opendp_concurrent.counters.factors.factor_error import mean_square, squared_norm

MOST = int(sys.argv[2]) if len(sys.argv) > 2 else 40


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
            return np.log(squared_norm(delta, omega, horizon) * mean_square(delta, omega, horizon))

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
