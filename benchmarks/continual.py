"""What continual counters cost, beside the noise that they need, and how large their errors are.

    python benchmarks/continual.py [--quick] [--json] [--save]

The peer is the bare cost of drawing noise: one integer of OpenDP's noise for each update, in
vectors. Errors are computed by formula, and measured on real answers: those of random steps of
fresh counters, and those of all categories of a histogram, which have noise of their own.
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
from opendp_concurrent.counters.digits import best_digits
from opendp_concurrent.counters.factors.buffered import buffered
from opendp_concurrent.counters.factors.factor_error import parameters, row_squares
from opendp_concurrent.native import opendp as _native

dp.enable_features("contrib", "honest-but-curious")

BATCH, SCALE = 1000, 20.0
SPACE = oc.integer_stream(0, 1), oc.event_presence()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def gaussian_us(draws: int) -> float:
    """Microseconds for one draw of Gaussian noise, in vectors of 256: the fastest block."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=256)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), 2.0**50)
    zeros = _native.to_pointer([0] * 256, gaussian.input_carrier_type)
    blocks = []
    for _ in range(max(1, draws // 256)):
        start = time.perf_counter()
        _native.invoke(gaussian, zeros)
        blocks.append((time.perf_counter() - start) / 256)
    return 1e6 * min(blocks)


def buffered_us(updates: int, **keywords: object) -> float:
    """Microseconds for an update of a buffered counter, with its draws: the fastest block."""
    queryable = oc.m.make_counter(*SPACE, ZCDP, SCALE, **keywords)([])
    for _ in range(1024):  # the first draws come in small vectors
        queryable.update(1)
    blocks = []
    for _ in range(max(1, updates // 256)):
        start = time.perf_counter()
        for _ in range(256):
            queryable.update(1)
        blocks.append((time.perf_counter() - start) / 256)
    return 1e6 * min(blocks)


def rmse_at(
    steps: list[int], runs: int, measure: object, formula: list[float], **keywords: object
) -> float:
    """Root mean square of real errors over the formula's, at some steps of ``runs`` counters."""
    space = oc.category_stream(runs), oc.event_presence()
    queryable = oc.m.make_histogram_counter(*space, measure, 1000.0, **keywords)([])
    before, ratios = 0, []
    for step, expected in zip(steps, formula, strict=True):
        queryable.update_all([None] * (step - before))
        before = step
        found = np.mean(np.array(queryable(None), dtype=float) ** 2) / 1e6
        ratios.append(found / expected**2)
    return sqrt(float(np.mean(ratios)))


def rows_of(factor: object, steps: list[int]) -> list[float]:
    """Root of the sum of squares of rows of A C^-1: the error at some steps, in units of noise."""
    sums = np.sqrt(row_squares(*parameters(factor.buffers), max(steps)))
    return [float(sums[step - 1]) for step in steps]


def over_square_root(quick: bool) -> tuple[list[list[object]], float, float]:
    """For three T: errors by formula, and those of real answers at several steps."""
    rows, formulas, measured = [], 0.0, []
    runs = 3000
    for exponent in (10, 14, 20):
        horizon = 2**exponent - 1
        ours, other = oc.m.counter_rmse(horizon), oc.m.square_root_rmse(horizon)
        formulas = max(formulas, ours / other)
        steps = [4, 16, 48] if quick else [16, 128, 1023]
        found = rmse_at(steps, runs, ZCDP, rows_of(buffered(horizon), steps), horizon=horizon)
        measured.append(found)
        rows.append([horizon, ours, other, ours / other, found])
    return rows, formulas, float(np.mean(measured))


def over_doubling() -> tuple[list[list[object]], float]:
    """Errors without a horizon, by formula, over those of the doubling tree."""
    rows, worst = [], 0.0
    for exponent in (14, 20):
        ours, doubling = (
            oc.m.counter_rmse(2**exponent, method, endless=True) for method in (None, "tree")
        )
        worst = max(worst, ours / doubling)
        rows.append([2**exponent, ours, doubling, ours / doubling])
    return rows, worst


def pure_rows(quick: bool) -> tuple[list[list[object]], float]:
    """Errors of signed digits at ε = 1: by formula, and of real answers over it."""
    rows, ratios = [], []
    for exponent, known in ((10, 13.0575), (14, 20.7781), (20, 33.8738)):
        horizon = 2**exponent - 1
        ours = oc.m.counter_rmse(horizon, output_measure=PURE)
        tree = oc.m.counter_rmse(horizon, "tree", PURE) if exponent < 20 else float("nan")
        shape, random = best_digits(horizon), np.random.default_rng(exponent)
        steps = sorted(set(random.integers(1, horizon + 1, 12).tolist()))
        formula = [sqrt(2 * shape.nodes(step)) for step in steps]
        found = rmse_at(steps, 500 if quick else 2000, PURE, formula, horizon=horizon)
        ratios.append(found * ours / known)
        rows.append([horizon, shape.base, shape.height, ours, known, tree, found])
    return rows, float(np.mean(ratios))


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


def state_bytes(steps: int, measure: object = PURE, horizon: int = 2**40, **keywords: str) -> int:
    """Memory of a counter after ``steps`` updates."""
    oc.m.make_counter(*SPACE, measure, SCALE, horizon=horizon, **keywords)([])(None)
    tracemalloc.start()
    queryable = oc.m.make_counter(*SPACE, measure, SCALE, horizon=horizon, **keywords)([])
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
        ("tree", {"horizon": updates, "method": "tree"}),
        ("smooth", {"horizon": updates, "method": "smooth"}),
        ("doubling", {}),
        ("digits", {"horizon": updates}),
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
    memory = [[steps, state_bytes(steps, method="tree")] for steps in (10_000, 100_000, updates)]
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
    rows, formula, measured_over = over_square_root(options.quick)
    print_table(
        "buffered, at rho = 1/2",
        ["T", "buffered", "square root", "over square root", "measured over formula"],
        rows,
    )
    rows, unbounded = over_doubling()
    print_table(
        "without a horizon, at rho = 1/2", ["steps", "buffered", "doubling", "over doubling"], rows
    )
    rows, pure = pure_rows(options.quick)
    print_table(
        "signed digits, at epsilon = 1",
        ["T", "k", "h", "error", "theory", "binary tree", "measured over formula"],
        rows,
    )
    buffered_rows = []
    updates = 5_000 if options.quick else 50_000
    for keywords in ({"horizon": 2**20 - 1}, {}):
        draw = gaussian_us(updates)
        whole = buffered_us(updates, **keywords)
        buffered_rows.append([str(keywords.get("horizon")), whole, draw, whole - draw])
    print_table(
        "buffered updates, one by one",
        ["horizon", "us", "us of a draw", "us beside"],
        buffered_rows,
    )
    state = state_bytes(5_000 if options.quick else 50_000, ZCDP, 2**20)
    print_table("memory of buffered, T = 2^20", ["bytes"], [[state]])

    tree, smooth = (
        sqrt(height * average)
        for height, average in (oc.m.counter_nodes(1000), oc.m.counter_nodes(1000, "smooth"))
    )
    report(
        {
            "batched_over_draws": ratio,
            "single_us_beyond_draw": max(
                single_us(100_000, horizon=10**6, method="tree"),
                single_us(100_000, horizon=10**6),
                single_us(100_000, horizon=10**6, method="smooth"),
            ),
            "single_us_with_query": asked_us(10_000, horizon=10**6, method="tree"),
            "tree_rmse_over_formula": measured["tree"] / tree,
            "best_rmse_over_tree": measured["smooth"] / measured["tree"],
            "buffered_over_square_root": formula,
            "buffered_measured_over_formula": measured_over,
            "unbounded_over_doubling": unbounded,
            "pure_over_formula": pure,
            "buffered_single_us": max(row[-1] for row in buffered_rows),
            "buffered_bytes": state,
        },
        {
            "batched_over_draws": ("at most", 1.5),
            "single_us_beyond_draw": ("at most", 10.0),
            "single_us_with_query": ("at most", 100.0),
            "tree_rmse_over_formula": ("within 3% of", 1.0),
            "best_rmse_over_tree": ("within 3% of", smooth / tree),
            "buffered_over_square_root": ("at most", 0.995),
            "buffered_measured_over_formula": ("within 2% of", 1.0),
            "unbounded_over_doubling": ("at most", 0.40),
            "pure_over_formula": ("within 2% of", 1.0),
            "buffered_single_us": ("at most", 20.0),
            "buffered_bytes": ("at most", 100 * 1024.0),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
