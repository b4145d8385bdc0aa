"""What continual counters cost, beside the noise that they need, and how large their errors are.

    python benchmarks/continual.py [--quick] [--json]

The peer is the bare cost of drawing noise: one integer of OpenDP's Laplace noise for each update,
in vectors of 1,000. Errors are measured at random steps of fresh counters and compared with the
formula; the lower line is the square-root factorisation, which keeps O(T) state.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from itertools import pairwise
from math import sqrt
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.native import opendp as _native

dp.enable_features("contrib", "honest-but-curious")

BATCH, SCALE = 1000, 20.0
SPACE = oc.integer_stream(0, 1), oc.event_presence()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def draw_seconds(draws: int) -> float:
    """Seconds for ``draws`` draws in vectors of ``BATCH``."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=BATCH)
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), SCALE)
    zeros = _native.to_pointer([0] * BATCH, laplace.input_carrier_type)
    start = time.perf_counter()
    for _ in range(draws // BATCH):
        _native.invoke(laplace, zeros)
    return time.perf_counter() - start


def batched_seconds(updates: int, **keywords: object) -> float:
    """Seconds for ``updates`` updates in batches of ``BATCH``, with a query after each."""
    queryable = oc.m.make_counter(*SPACE, PURE, SCALE, **keywords)([])
    items = np.ones(BATCH, dtype=np.int64)
    start = time.perf_counter()
    for _ in range(updates // BATCH):
        queryable.update_all(items)
        queryable(None)
    return time.perf_counter() - start


def single_us(updates: int, **keywords: object) -> float:
    """Microseconds for an update that is sent alone, without queries."""
    queryable = oc.m.make_counter(*SPACE, PURE, SCALE, **keywords)([])
    blocks = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(updates // 20):
            queryable.update(1)
        blocks.append((time.perf_counter() - start) / (updates // 20))
    return 1e6 * median(blocks)


def asked_us(updates: int, **keywords: object) -> float:
    """Microseconds for an update and a query after it."""
    queryable = oc.m.make_counter(*SPACE, PURE, SCALE, **keywords)([])
    queryable(None)
    start = time.perf_counter()
    for _ in range(updates):
        queryable.update(1)
        queryable(None)
    return 1e6 * (time.perf_counter() - start) / updates


def measured_rmse(horizon: int, method: str, scale: float, samples: int, seed: int) -> float:
    """Root mean square of the noise at random steps, in units of ``scale``."""
    counter = oc.m.make_counter(*SPACE, ZCDP, scale, horizon=horizon, method=method)
    random = np.random.default_rng(seed)  # chooses the steps; the noise is OpenDP's
    edges = np.linspace(1, horizon + 1, samples + 1)
    squares = []
    for low, high in pairwise(edges):
        step = min(horizon, int(random.uniform(low, high)))
        queryable = counter([])
        queryable.update_all(np.zeros(step, dtype=np.int64))
        squares.append(queryable(None) ** 2)
    return sqrt(float(np.mean(squares))) / scale


def state_bytes(steps: int) -> int:
    """Memory of a counter after ``steps`` updates."""
    tracemalloc.start()
    queryable = oc.m.make_counter(*SPACE, PURE, SCALE, horizon=2**40)([])
    for _ in range(steps // BATCH):
        queryable.update_all(np.ones(BATCH, dtype=np.int64))
    queryable(None)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size


def main() -> None:
    """Run, print, report."""
    options = parser(__doc__).parse_args()
    print_machine()
    updates = 200_000 if options.quick else 1_000_000
    samples = 2000 if options.quick else 10_000
    batched_seconds(10 * BATCH, horizon=10**6)

    rows, ratio = [], 0.0
    bare = draw_seconds(updates)
    for name, keywords in (
        ("tree", {"horizon": updates}),
        ("smooth", {"horizon": updates, "method": "smooth"}),
        ("doubling", {}),
    ):
        batched = batched_seconds(updates, **keywords)
        single = single_us(min(updates, 100_000), **keywords)
        asked = asked_us(10_000, **keywords)
        rows.append([name, 1e6 * batched / updates, batched / bare, single, asked])
        ratio = max(ratio, batched / bare)
    print_table(
        f"{updates:,} updates; one draw each: {1e6 * bare / updates:.2f} us",
        ["counter", "us batched", "over draws", "us single", "us with query"],
        rows,
    )
    memory = [[steps, state_bytes(steps)] for steps in (10_000, 100_000, updates)]
    print_table("memory of the tree after", ["updates", "bytes"], memory)

    rows = []
    measured: dict[str, float] = {}
    for method in ("tree", "smooth"):
        height, average = oc.m.counter_nodes(1000, method)
        formula, found = sqrt(average), measured_rmse(1000, method, 1000.0, samples, seed=1)
        measured[method] = found * sqrt(height)  # at rho = 1/2
        rows.append([method, height, formula, found, found / formula, measured[method]])
    print_table(
        "T = 1000: root mean square error, in node noise, and at rho = 1/2",
        ["counter", "nodes of an item", "formula", "measured", "over formula", "error"],
        rows,
    )
    rows = []
    for horizon in (100, 1000, 10_000, 100_000) + (() if options.quick else (2**20 - 1,)):
        errors = []
        for method in ("tree", "smooth"):
            height, average = oc.m.counter_nodes(horizon, method)
            errors.append(sqrt(height * average))
        best = oc.m.square_root_rmse(horizon)
        rows.append([horizon, *errors, errors[1] / errors[0], best, errors[1] / best])
    print_table(
        "formulas at rho = 1/2",
        ["T", "tree", "smooth", "smooth/tree", "square root", "smooth/square root"],
        rows,
    )
    tree, smooth = (
        sqrt(height * average)
        for height, average in (oc.m.counter_nodes(1000), oc.m.counter_nodes(1000, "smooth"))
    )
    report(
        {
            "batched_over_draws": ratio,
            "single_us_beyond_draw": max(
                single_us(100_000, horizon=10**6),
                single_us(100_000, horizon=10**6, method="smooth"),
            ),
            "single_us_with_query": asked_us(10_000, horizon=10**6),
            "tree_rmse_over_formula": measured["tree"] / tree,
            "best_rmse_over_tree": measured["smooth"] / measured["tree"],
        },
        {
            "batched_over_draws": ("at most", 1.5),
            "single_us_beyond_draw": ("at most", 10.0),
            "single_us_with_query": ("at most", 100.0),
            "tree_rmse_over_formula": ("within 3% of", 1.0),
            "best_rmse_over_tree": ("within 3% of", smooth / tree),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
