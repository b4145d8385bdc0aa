"""Errors of buffered counters beside those of jax_privacy's buffered Toeplitz matrices.

    python -m venv /tmp/jax && /tmp/jax/bin/pip install jax-privacy
    /tmp/jax/bin/python benchmarks/counters_jax_privacy.py [--json]

Run this in an environment with jax_privacy 2.0; the package need not be there. All errors are
computed by one function, from the first T entries of C: the norm of its first column, times the
root of the mean squared row norm of A C^-1. This is the root mean square error over the steps 1 to
T, in units of the noise that one item would need (ρ = 1/2).
"""

from __future__ import annotations

import argparse
import json
import runpy
import time
from pathlib import Path

import jax
import numpy as np
from jax_privacy.matrix_factorization import buffered_toeplitz, toeplitz

TABLE = Path(__file__).parents[1] / "opendp_concurrent" / "counters" / "buffers_table.py"


def rmse(delta: np.ndarray, omega: np.ndarray, horizon: int) -> float:
    """Return the error of c = 1 + Σ ω z/(1 - (1 - δ) z), by running A C^-1 on (1, 0, 0, ...)."""
    entries = np.concatenate([[1.0], np.zeros(horizon - 1)])
    for one, weight in zip(delta, omega, strict=True):
        powers = np.exp(np.log1p(-one) * np.arange(horizon - 1))
        entries[1:] += weight * powers
    buffers, total, sums = np.zeros(len(delta)), 0.0, np.empty(horizon)
    for step in range(horizon):
        value = float(step == 0) - float(omega @ buffers)
        buffers = buffers - delta * buffers + value
        total += value
        sums[step] = total
    return float(np.sqrt(np.sum(entries**2) * np.mean(np.cumsum(sums**2))))


def ours(horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Return δ and ω of the package's table."""
    pairs = runpy.run_path(str(TABLE))["HORIZONS"][(horizon - 1).bit_length()]
    return tuple(np.array(pairs).T * 2.0**-60)


def main() -> None:
    """Run, print, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON as well")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    figures = {}
    names = "T", "loss", "ours", "theirs", "buffers", "seconds", "square root"
    print("".join(f"{name:>13}" for name in names))
    for exponent, error in ((10, "max"), (14, "max"), (20, "max"), (10, "mean")):
        horizon = 2**exponent - 1
        start = time.perf_counter()
        blt = buffered_toeplitz.optimize(n=horizon, error=error, max_buffers=6)
        seconds = time.perf_counter() - start
        theirs = rmse(1 - np.array(blt.buf_decay), np.array(blt.output_scale), horizon)
        mine = rmse(*ours(horizon), horizon)
        if exponent < 20:
            square = np.asarray(toeplitz.optimal_max_error_strategy_coefs(horizon)) ** 2
            root = float(np.sqrt(np.sum(square) * np.mean(np.cumsum(square))))
        else:
            root = float("nan")
        row = horizon, error, mine, theirs, len(blt.buf_decay), seconds, root
        cells = (f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row)
        print("".join(f"{cell:>13}" for cell in cells), flush=True)
        figures[f"ours_over_theirs_{exponent}_{error}"] = mine / theirs
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
