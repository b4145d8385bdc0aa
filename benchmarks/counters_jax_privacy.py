"""Errors of buffered counters beside those of jax_privacy's buffered Toeplitz matrices.

    python -m venv .venv-jax && .venv-jax/bin/pip install jax-privacy
    .venv-jax/bin/python benchmarks/counters_jax_privacy.py [--json] [--save]

Run this in an environment with jax_privacy 2.0; the package need not be there. All errors are
computed by one function, from the first T entries of C: the norm of its first column, times the
root of the mean squared row norm of A C^-1. This is the root mean square error over the steps 1 to
T, in units of the noise that one item would need (ρ = 1/2).
"""

from __future__ import annotations

import runpy
import time
from pathlib import Path

import jax
import numpy as np
from _timing import parser, print_machine, print_table, report
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, toeplitz

TABLE = Path(__file__).parents[1] / "opendp_concurrent/counters/factors/buffers_table.py"


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


def theirs(horizon: int, count: int) -> dict[str, buffered_toeplitz.BufferedToeplitz]:
    """Return their matrices: by formula, and by their search for the smallest largest error."""
    made = buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(
        count, max_buf_decay=1 - 1 / horizon
    )
    loss = buffered_toeplitz.LossFn.build_closed_form_single_participation(n=horizon)
    found, _ = buffered_toeplitz.optimize_loss(loss, num_buffers=count)
    return {"formula": made, "search": found}


def participations() -> None:
    """Print their errors for units with k items, b steps apart: T, k, b, Toeplitz, banded."""
    for horizon, most, apart in ((2048, 4, 512), (2048, 16, 128), (365, 52, 7), (365, 12, 30)):
        found = toeplitz.optimize_banded_toeplitz(horizon, apart)
        square = toeplitz.minsep_sensitivity_squared(
            found, min_sep=apart, max_participations=most, n=horizon
        )
        error = np.mean(toeplitz.per_query_error(strategy_coef=found, n=horizon))
        row: list[float] = [horizon, most, apart, float(np.sqrt(square * error))]
        if apart <= 32:  # minutes for more
            general = banded.optimize(horizon, bands=apart)
            square = banded.minsep_sensitivity_squared(
                general, min_sep=apart, max_participations=most
            )
            row.append(float(np.sqrt(square * np.mean(banded.per_query_error(general)))))
        print("".join(f"{cell:>12.6g}" for cell in row), flush=True)


def main() -> None:
    """Run, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    jax.config.update("jax_enable_x64", True)
    figures: dict[str, float] = {}
    rows = []
    for exponent in (10, 14, 20):
        horizon = 2**exponent - 1
        delta, omega = ours(horizon)
        mine, start = rmse(delta, omega, horizon), time.perf_counter()
        for kind, blt in theirs(horizon, len(delta)).items():
            error = rmse(1 - np.array(blt.buf_decay), np.array(blt.output_scale), horizon)
            rows.append([kind, horizon, len(delta), mine, error, time.perf_counter() - start])
            figures[f"ours_over_{kind}_{exponent}"] = mine / error
    print_table(
        "Root mean square errors at ρ = 1/2",
        ["jax_privacy by", "T", "buffers", "here", "jax_privacy", "seconds"],
        rows,
    )
    participations()
    report(figures, {}, {}, options)


if __name__ == "__main__":
    main()
