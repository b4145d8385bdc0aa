"""What a query of ten million individual budgets costs, beside the bare sum that it answers.

    python benchmarks/individual.py [--quick] [--json] [--save]

The peer is NumPy and OpenDP without budgets: the same values, clipped and added up in floats, and
one draw of noise; so it is private for one query, and knows nothing of a second one. Both take
turns in one process. The column is in memory, each query reads it whole.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

from opendp_concurrent.mechanisms.individual import (
    NoisySum,
    individual_scale,
    make_individual_filter,
)

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.numpy.array2_domain(T=float, num_columns=1), dp.symmetric_distance()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
BOUND, LAUNCHES = 2.0, 100


def column(rows):
    return rows[:, 0]


def seconds(ask) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def bare(data, scale: float, measure) -> float:
    """Clip, add, draw."""
    make = dp.m.make_laplace if measure is PURE else dp.m.make_gaussian
    release = make(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale
    )  # made anew, as a filter does
    return release(float(np.clip(column(data), -BOUND, BOUND).sum()))


def paired(data, measure, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds of each query, and of each bare sum, in turns."""
    scale = individual_scale(measure, 1.0, BOUND, LAUNCHES)
    queryable = make_individual_filter(*SPACE, measure, 1.0)(data)
    query = NoisySum(column, BOUND, scale)
    ours, theirs = [], []
    for _ in range(repeats + 1):
        ours.append(seconds(lambda: queryable(query)))
        theirs.append(seconds(lambda: bare(data, scale, measure)))
    return ours[1:], theirs[1:]  # the first touches memory for the first time


def bytes_per_person(people: int) -> float:
    """Memory of a filter's state, the data apart."""
    data = np.zeros((people, 1))
    made = make_individual_filter(*SPACE, ZCDP, 1.0)
    tracemalloc.start()
    queryable = made(data)
    queryable(NoisySum(column, BOUND, 10.0))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / people


def launches_gained(people: int) -> tuple[int, int]:
    """Queries until a tenth of the sum is missing: individual budgets, and one budget for all.

    Values are exponential, clipped at five times their mean.
    """
    values = np.random.default_rng(1).exponential(size=(people, 1))  # data; the noise is OpenDP's
    bound, budgets = 5.0, 1.0
    scale = individual_scale(ZCDP, budgets, bound, LAUNCHES)
    queryable = make_individual_filter(*SPACE, ZCDP, budgets)(values)
    query, whole = NoisySum(column, bound, scale), float(np.minimum(values, bound).sum())
    asked = 0
    while queryable(query) > 0.9 * whole:
        asked += 1
    return asked, LAUNCHES


def main() -> None:
    """Run, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    repeats = 15 if options.quick else 60
    sizes = (10**5, 10**6, 10**7)
    rows, at_1e7 = [], []
    for people in sizes:
        data = np.random.default_rng(0).normal(size=(people, 1))
        for measure, name in ((ZCDP, "Gaussian"), (PURE, "Laplace")):
            ours, theirs = paired(data, measure, repeats)
            mine, bare_ms = 1e3 * median(ours), 1e3 * median(theirs)
            rows.append([people, name, mine, 1e3 * max(ours), bare_ms, mine / bare_ms])
            if people == 10**7:
                at_1e7.append((mine, mine / bare_ms))
    print_table(
        f"one query, milliseconds; {repeats} in turns",
        ["people", "noise", "median", "slowest", "bare sum", "over bare"],
        rows,
    )
    state = bytes_per_person(10**6)
    asked, planned = launches_gained(100_000)
    print_table(
        "state, and what individual budgets gain",
        ["bytes per person", "queries until 10% is missing", "with one budget for all"],
        [[state, asked, planned]],
    )
    report(
        {
            "bank_1e7_ms": max(mine for mine, _ in at_1e7),
            "bank_over_bare_sum": max(ratio for _, ratio in at_1e7),
            "bank_bytes_per_person": state,
        },
        {
            "bank_1e7_ms": ("at most", 100.0),
            "bank_over_bare_sum": ("at most", 5.0),
            "bank_bytes_per_person": ("at most", 20.0),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
