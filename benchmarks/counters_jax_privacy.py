"""Errors of buffered counters beside those of jax_privacy's buffered Toeplitz matrices.

    python -m venv .venv-jax && .venv-jax/bin/pip install jax-privacy
    .venv-jax/bin/python benchmarks/counters_jax_privacy.py [--json] [--save]

Run this in an environment with jax_privacy 2.0; the package need not be there. All errors are
computed by one function, from the first T entries of C: the root of the mean squared row norm of
A D C^-1, where D has the norms of the columns of C, cut at T. This is the root mean square error
over the steps 1 to T, in units of the noise that one item would need (ρ = 1/2). Columns of their
matrices are normalised likewise: their option ``column_normalize`` does it for other matrices.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import jax
import numpy as np
from _timing import parser, print_machine, print_table, report
from jax_privacy.matrix_factorization import buffered_toeplitz

TABLE = Path(__file__).parents[1] / "opendp_concurrent/counters/factors/buffers.json"


def rmse(delta: np.ndarray, omega: np.ndarray, horizon: int) -> float:
    """Return the error of c = 1 + Σ ω z/(1 - (1 - δ) z), by the covariance of all states.

    The state is the buffers and the sum. Noise z of variance 1 enters: w = z - ω b is that of
    C^-1 z, buffers become (1 - δ) b + w, and the sum grows by d w.
    """
    entries = np.concatenate([[1.0], np.zeros(horizon - 1)])
    for one, weight in zip(delta, omega, strict=True):
        entries[1:] += weight * np.exp(np.log1p(-one) * np.arange(horizon - 1))
    norms = np.sqrt(np.cumsum(entries**2))[::-1]
    count = len(delta)
    covariance, total = np.zeros((count + 1, count + 1)), 0.0
    step = np.zeros((count + 1, count + 1))
    step[:count, :count] = np.diag(1 - delta) - omega
    step[count, count] = 1.0
    new = np.ones(count + 1)
    for norm in norms:
        step[count, :count], new[count] = -norm * omega, norm
        covariance = step @ covariance @ step.T + np.outer(new, new)
        total += covariance[count, count]
    return float(np.sqrt(total / horizon))


def ours(horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Return δ and ω of the package's table."""
    pairs = json.loads(TABLE.read_text())["horizons"][str((horizon - 1).bit_length())]
    return tuple(np.array(pairs).T * 2.0**-60)


def theirs(horizon: int, count: int) -> dict[str, buffered_toeplitz.BufferedToeplitz]:
    """Return their matrices: by formula, and by their search for the smallest largest error."""
    made = buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(
        count, max_buf_decay=1 - 1 / horizon
    )
    loss = buffered_toeplitz.LossFn.build_closed_form_single_participation(n=horizon)
    found, _ = buffered_toeplitz.optimize_loss(loss, num_buffers=count)
    return {"formula": made, "search": found}


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
    report(figures, {}, {}, options)


if __name__ == "__main__":
    main()
