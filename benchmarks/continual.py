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
from math import sqrt
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent import _opendp as _native
from opendp_concurrent.streams.digits import best_digits
from opendp_concurrent.streams.factors import buffered, variances

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
    """Microseconds for an update with Gaussian noise and its draw: the fastest block."""
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


def best_of_the_square_root(steps: int) -> float:
    """The error of the square root of the prefix sums, with normalised columns, by matrices."""
    first = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, steps))]))
    places = np.subtract.outer(np.arange(steps), np.arange(steps))
    root = np.where(places >= 0, first[np.maximum(places, 0)], 0.0)
    norms = np.linalg.norm(root, axis=0)
    return float(np.linalg.norm(np.tri(steps) @ np.linalg.inv(root / norms)) / sqrt(steps))


def gaussian_rows(quick: bool) -> tuple[list[list[object]], float, float]:
    """For three T: errors by formula, before with columns of any norm, and of real answers."""
    rows = []
    before = {10: 3.0584, 14: 3.9426, 20: 5.2663}
    for exponent in (10, 14, 20):
        horizon = 2**exponent - 1
        ours = oc.streams.counter_rmse(horizon)
        rows.append([horizon, ours, before[exponent], ours / before[exponent]])
    horizon, runs = (48, 3000) if quick else (512, 1000)
    _, totals, _ = variances(buffered(horizon), horizon)
    steps, formula = list(range(horizon - 31, horizon + 1)), np.sqrt(totals[-32:]).tolist()
    measured = rmse_at(steps, runs, ZCDP, formula, horizon=horizon)
    return rows, max(row[3] for row in rows), measured


def endless_pure() -> float:
    """The largest error of the pure counter without a horizon over the computed ones."""
    known = {10: 15.04, 14: 24.16, 20: 39.59}
    return max(
        oc.streams.counter_rmse(2**exponent - 1, PURE, endless=True) / error
        for exponent, error in known.items()
    )


def alarms() -> float:
    """The largest map of an alarm over the largest loss of all outcomes, 1/s + c/s'."""
    ratios = []
    for hits in (1, 2):
        query_scale = 3.0 * (2 * hits) ** (1 / 3)
        alarm = oc.m.make_alarm(
            *SPACE, PURE, scale=3.0, threshold=5, query_scale=query_scale, max_hits=hits
        )
        ratios.append(alarm.map(1) / (1 / 3.0 + hits / query_scale))
    return max(ratios)


def pure_rows(quick: bool) -> tuple[list[list[object]], float]:
    """Errors of signed digits at ε = 1: by formula, and of real answers over it."""
    rows, ratios = [], []
    for exponent, known in ((10, 13.0575), (14, 20.7781), (20, 33.8738)):
        horizon = 2**exponent - 1
        ours = oc.streams.counter_rmse(horizon, PURE)
        shape, random = best_digits(horizon), np.random.default_rng(exponent)
        steps = sorted(set(random.integers(1, horizon + 1, 12).tolist()))
        formula = [sqrt(2 * shape.nodes(step)) for step in steps]
        found = rmse_at(steps, 500 if quick else 2000, PURE, formula, horizon=horizon)
        ratios.append(found * ours / known)
        rows.append([horizon, shape.base, shape.height, ours, known, found])
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
    batched_seconds(10 * BATCH, horizon=10**6)

    rows, ratio = [], 0.0
    bare = draw_seconds(updates)
    for name, keywords in (("without a horizon", {}), ("with one", {"horizon": updates})):
        batched = batched_seconds(updates, **keywords)
        single = single_us(min(updates, 100_000), **keywords)
        asked = asked_us(10_000, **keywords)
        rows.append([name, 1e6 * batched / updates, batched / bare, single, asked])
        ratio = max(ratio, batched / bare)
    print_table(
        f"{updates:,} updates with Laplace noise; one draw each: {1e6 * bare / updates:.2f} us",
        ["counter", "us batched", "over draws", "us single", "us with query"],
        rows,
    )
    memory = [[steps, state_bytes(steps)] for steps in (10_000, 100_000, updates)]
    print_table("memory of signed digits after", ["updates", "bytes"], memory)

    gaussian, over_before, measured_over = gaussian_rows(options.quick)
    print_table(
        "Gaussian noise at rho = 1/2",
        ["T", "error", "columns of any norm", "over it"],
        gaussian,
    )
    over_best = oc.streams.counter_rmse(1023) / best_of_the_square_root(1023)
    pure_table, pure = pure_rows(options.quick)
    print_table(
        "signed digits, at epsilon = 1",
        ["T", "k", "h", "error", "theory", "measured over formula"],
        pure_table,
    )
    buffered_rows = []
    updates = 5_000 if options.quick else 50_000
    for keywords in ({"horizon": 2**20 - 1}, {}):
        draw = gaussian_us(updates)
        whole = buffered_us(updates, **keywords)
        buffered_rows.append([str(keywords.get("horizon")), whole, draw, whole - draw])
    print_table(
        "updates with Gaussian noise, one by one",
        ["horizon", "us", "us of a draw", "us beside"],
        buffered_rows,
    )
    state = state_bytes(5_000 if options.quick else 50_000, ZCDP, 2**20)
    print_table("memory with Gaussian noise, T = 2^20", ["bytes"], [[state]])

    report(
        {
            "batched_over_draws": ratio,
            "single_us_beyond_draw": single_us(100_000, horizon=10**6),
            "single_us_with_query": asked_us(10_000, horizon=10**6),
            "gaussian_over_best": over_best,
            "gaussian_over_before": over_before,
            "gaussian_measured_over_formula": measured_over,
            "pure_over_formula": pure,
            "endless_pure_over_formula": endless_pure(),
            "alarm_map_over_exact": alarms(),
            "gaussian_single_us": max(row[-1] for row in buffered_rows),
            "gaussian_bytes": state,
        },
        {
            "batched_over_draws": ("at most", 1.5),
            "single_us_beyond_draw": ("at most", 10.0),
            "single_us_with_query": ("at most", 100.0),
            "gaussian_over_best": ("at most", 1.001),
            "gaussian_over_before": ("at most", 0.986),
            "gaussian_measured_over_formula": ("within 2% of", 1.0),
            "pure_over_formula": ("within 2% of", 1.0),
            "endless_pure_over_formula": ("at most", 1.02),
            "alarm_map_over_exact": ("at most", 1.0 + 1e-12),
            "gaussian_single_us": ("at most", 20.0),
            "gaussian_bytes": ("at most", 100 * 1024.0),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
