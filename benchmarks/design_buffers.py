"""Search for the buffers of counters with Gaussian noise, and write them to ``buffers.json``.

    python benchmarks/design_buffers.py (horizons | windows) FIRST LAST

FIRST and LAST are exponents of two. The search is deterministic and takes up to three minutes for
an exponent. It uses doubles. The counters do not rely on it: they compute the norms of whatever
parameters they get, exactly and rounded up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from opendp_concurrent.streams import factors as buffered
from opendp_concurrent.streams.factors import BITS, BufferedFactor, mean_error, window_variance

TABLE = Path(buffered.__file__).with_name("buffers.json")
FEWER = 4  # significant bits of columns while searching: a fourth of the blocks


def as_integers(point: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return the buffers of a point: -log δ, then log ω."""
    rates, weights = np.exp(-point[: len(point) // 2]), np.exp(point[len(point) // 2 :])
    pairs = zip(rates, weights, strict=True)
    return tuple((round(float(rate) * 2**BITS), round(float(one) * 2**BITS)) for rate, one in pairs)


def search(error: Callable, start: np.ndarray):
    """Return the point with the smallest logarithm of an error near a start."""
    count = len(start) // 2

    def guarded(point: np.ndarray) -> float:
        if not (np.all(point[:count] > 0) and np.all(np.diff(point[:count]) < -0.05)):
            return 1e9
        with np.errstate(all="ignore"):
            value = error(as_integers(point))
        return float(np.log(value)) if np.isfinite(value) and value > 0 else 1e9

    for _ in range(2):
        found = minimize(guarded, start, method="BFGS", options={"gtol": 2e-6, "maxiter": 400})
        start = found.x
    return found


def first(steps: int, count: int) -> np.ndarray:
    """Return a first guess: rates in geometric progression."""
    length = np.log(steps) * 0.95
    rates = np.linspace(1.0, 0.25, count) * length
    return np.concatenate([rates, -rates / 2 + np.log(0.2 * length / count)])


def count_of(exponent: int) -> int:
    """Return how many buffers 2^exponent steps get."""
    return 1 + sum(exponent > one for one in (3, 6, 9, 13, 16, 21, 28))


def main() -> None:
    """Search, print the errors, write the table."""
    kind, low, high = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    table = json.loads(TABLE.read_text())
    buffered.FINE = FEWER
    for exponent in range(low, high + 1):
        steps, count = 2**exponent, count_of(exponent)

        def error(found: tuple[tuple[int, int], ...], steps: int = steps) -> float:
            if kind == "windows":
                return window_variance(BufferedFactor(found, 2**50, cut=False), steps) ** 0.5
            return mean_error(BufferedFactor(found, steps, cut=True), steps)

        start = first(steps, count)
        known = np.array(table[kind].get(str(exponent), ()), dtype=float) * 2.0**-BITS
        if len(known) == count:
            start = np.concatenate([-np.log(known[:, 0]), np.log(known[:, 1])])
        best = search(error, start)
        table[kind][str(exponent)] = as_integers(best.x)
        print(kind, exponent, count, np.exp(best.fun), flush=True)
    rows = ",\n".join(
        f'"{name}": ' + (json.dumps(one) if name == "endless" else listed(one))
        for name, one in table.items()
    )
    TABLE.write_text("{\n" + rows + "\n}\n")


def listed(found: dict[str, object]) -> str:
    """Return the text of a table, a row in each line."""
    return "{\n" + ",\n".join(f'"{one}": {json.dumps(row)}' for one, row in found.items()) + "\n}"


if __name__ == "__main__":
    main()
