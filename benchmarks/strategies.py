"""How near the strategies of linear queries are to the best known ones.

    python benchmarks/strategies.py [--quick] [--json] [--save]

Errors are root mean squares at ρ = 1/2 or ε = 1, records added or removed. They are computed from
the strategy that is released, except for those against OpenDP's tree, which are of real runs. Noise
is OpenDP's and cannot be seeded.
"""

from __future__ import annotations

import os

os.environ["RUST_BACKTRACE"] = "0"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import math
import resource
import time

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report
from scipy.optimize import minimize

import opendp_concurrent as oc
from opendp_concurrent.strategies.optimum import optimum

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def ranges(cells: int) -> np.ndarray:
    """All ranges."""
    every = range(cells)
    return np.array([[i <= x <= j for x in every] for i in every for j in every[i:]], dtype=float)


def marginals(bits: int, ways: int) -> np.ndarray:
    """All tables of so many bits."""
    cells = np.arange(2**bits)
    return np.array(
        [
            np.all([cells >> b & 1 == u for b, u in zip(chosen, values, strict=True)], axis=0)
            for chosen in itertools.combinations(range(bits), ways)
            for values in itertools.product((0, 1), repeat=ways)
        ],
        dtype=float,
    )


def workloads(quick: bool) -> dict[str, np.ndarray]:
    """Those of the table in the docs."""
    few = {
        "prefixes of 64": np.tri(64),
        "prefixes of 256": np.tri(256),
        "all ranges of 64": ranges(64),
        "pairs of 8 bits": marginals(8, 2),
        "triples of 8 bits": marginals(8, 3),
        "prefixes of 16 x 16": np.kron(np.tri(16), np.tri(16)),
        "random 100 x 64": (np.random.default_rng(5).random((100, 64)) < 0.5).astype(float),
        "64 cells and their sum": np.vstack([np.eye(64), np.ones((1, 64))]),
    }
    more = {"prefixes of 512": np.tri(512), "all ranges of 128": ranges(128)}
    return few if quick else {**few, **more}


def planned(work: np.ndarray, measure, d_out: float):
    """The plan, the promised error, and the seconds that the plan took."""
    begin = time.perf_counter()
    made = oc.m.make_linear_queries(*SPACE, measure, 1, d_out, work.shape[1], work)
    return made.plan, made.plan.promise.root_mean_square, time.perf_counter() - begin


def simple(work: np.ndarray, scale: float) -> float:
    """The better one of noise on the answers and on the cells, as the planner chose earlier."""
    power = 1 if scale > 1 else 2
    answers = scale * np.power(work, power).sum(axis=0).max() ** (1 / power)
    return min(answers, scale * math.sqrt(np.square(work).sum() / len(work)))


def hierarchies(work: np.ndarray) -> float:
    """The best b-ary tree with all its levels, by least squares."""
    cells, best = work.shape[1], math.inf
    gram = work.T @ work
    for branch in (*range(2, 17), 32, cells):
        rows, size = [np.eye(cells)], branch
        while size < cells * branch:
            rows.append((np.arange(cells) // size == np.arange(-(-cells // size))[:, None]) * 1.0)
            size *= branch
        tree = np.vstack(rows)
        variance = np.trace(gram @ np.linalg.inv(tree.T @ tree))
        best = min(best, len(rows) * math.sqrt(2 * variance / len(work)))
    return best


def p_identity(work: np.ndarray) -> float:
    """A descent on dense matrices, by its own formulas: I + TᵀT is inverted."""
    cells = work.shape[1]
    sums, gram = max(2, cells // 16), work.T @ work

    def error(flat: np.ndarray):
        weights = np.maximum(flat.reshape(sums, cells), 0)
        total = 1 + weights.sum(axis=0)
        inverse = np.linalg.inv(np.eye(cells) + weights.T @ weights)
        scaled = total[:, None] * gram * total
        slope = -2 * weights @ inverse @ scaled @ inverse
        return np.sum(inverse * scaled), (slope + 2 * np.sum(inverse * gram * total, 1)).ravel()

    start = np.random.default_rng(0).random(sums * cells) / 2
    found = minimize(
        error, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start),
        options={"maxiter": 150},
    )  # fmt: skip
    return math.sqrt(2 * found.fun / len(work))


def compared(quick: bool):
    """Errors of each workload beside the best known ones."""
    rows, zcdp, pure = [], [], []
    for name, work in workloads(quick).items():
        plan, error, seconds = planned(work, ZCDP, 0.5)
        least = optimum(work, 1.001).least / math.sqrt(len(work))
        zcdp.append(error / least)
        rows.append([name, "zCDP", plan.method, simple(work, 1.0), error, least, zcdp[-1], seconds])
        plan, error, seconds = planned(work, PURE, 1.0)
        known = min(simple(work, math.sqrt(2)), hierarchies(work))
        known = min(known, p_identity(work) if work.shape[1] <= 256 else math.inf)
        pure.append(error / known)
        rows.append(
            [name, "pure", plan.method, simple(work, math.sqrt(2)), error, known, pure[-1], seconds]
        )
    return rows, max(zcdp), max(pure)


def opendp_tree(cells: int, branch: int, runs: int, data: list[int], truth: np.ndarray) -> float:
    """Prefix counts of OpenDP's b-ary tree with consistency, at ε = 1."""
    counts = (
        SPACE
        >> dp.t.then_count_by_categories(categories=list(range(cells)), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=cells, branching_factor=branch)
    )
    scale = dp.binary_search(
        lambda s: (counts >> dp.m.then_laplace(s)).map(1) <= 1.0, bounds=(0.01, 1000.0)
    )
    mechanism = counts >> dp.m.then_laplace(scale)
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branch)
    squares = []
    for _ in range(runs):
        leaves = np.array(consistent(mechanism(data)))
        squares.append(np.mean(np.square(np.cumsum(leaves) - truth)))
    return math.sqrt(np.mean(squares))


def over_tree(quick: bool):
    """Measured errors over those of OpenDP's best tree, at the same ε."""
    rows, runs = [], 30
    for cells in (256,) if quick else (256, 1024):
        data = np.random.default_rng(0).integers(0, cells, 20_000).tolist()
        truth = np.cumsum(np.bincount(data, minlength=cells))
        theirs = {b: opendp_tree(cells, b, runs, data, truth) for b in (4, 8, 16)}
        made = oc.m.make_linear_queries(*SPACE, PURE, 1, 1.0, cells, np.tri(cells))
        ours = math.sqrt(
            np.mean([np.mean(np.square(made(data).values - truth)) for _ in range(runs)])
        )
        branch = min(theirs, key=theirs.__getitem__)
        rows.append([cells, made.plan.method, ours, branch, theirs[branch], ours / theirs[branch]])
    return rows


def products():
    """Workloads of 2^16 cells and more, without a matrix."""
    pairs = list(itertools.combinations(range(16), 2))
    triples = list(itertools.combinations(range(20), 3))
    sizes = (10, 16, 2, 5, 100, 7, 4, 2)
    rows = []
    for name, queries in (
        ("pairs of 16 bits", oc.m.Marginals((2,) * 16, pairs)),
        ("triples of 20 bits", oc.m.Marginals((2,) * 20, triples)),
        ("pairs of 8 columns", oc.m.Marginals(sizes, list(itertools.combinations(range(8), 2)))),
        ("prefixes of 256 x 256", oc.m.Products([np.tri(256), np.tri(256)])),
    ):
        begin = time.perf_counter()
        plan = oc.m.make_linear_queries(*SPACE, ZCDP, 1, 0.5, queries.cells, queries).plan
        seconds = time.perf_counter() - begin
        simple = min(one.root_mean_square for one in plan.promises[:2])
        error = plan.promise.root_mean_square
        rows.append([name, queries.cells, queries.queries, simple, error, seconds])
    return rows


def participations():
    """Counters of units that come back, beside jax_privacy 2.0.0; see counters_jax_privacy.py.

    Theirs is the better one of optimize_banded_toeplitz and, up to 32 bands, banded.optimize.
    """
    theirs = {
        (2048, 4, 512): 6.8846,
        (2048, 16, 128): 17.1371,
        (365, 52, 7): 40.0075,
        (365, 12, 30): 11.8939,
    }
    rows = []
    for (steps, most, apart), error in theirs.items():
        made = oc.m.make_counter(
            oc.integer_stream(0, 1), oc.user_presence(), ZCDP, 100.0,
            horizon=steps, participations=most, separation=apart,
        )  # fmt: skip
        ours = oc.m.counter_rmse(steps, participations=most, separation=apart)
        several = most * oc.m.counter_rmse(steps)
        rho = made.map(1) * 100.0**2  # at scale 1
        rows.append([steps, most, apart, rho, several, ours, error, ours / error])
    return rows


def endless() -> float:
    """The largest error of the pure counter without a horizon over the computed ones."""
    known = {10: 15.04, 14: 24.16, 20: 39.59}
    return max(
        oc.m.counter_rmse(2**exponent - 1, output_measure=PURE, endless=True) / error
        for exponent, error in known.items()
    )


def alarms() -> float:
    """The largest map of an alarm over the largest loss of all outcomes, 1/s + c/s'."""
    ratios = []
    for hits in (1, 2):
        query_scale = 3.0 * (2 * hits) ** (1 / 3)
        alarm = oc.m.make_alarm(
            oc.integer_stream(0, 1), oc.event_presence(), PURE, scale=3.0, threshold=5,
            query_scale=query_scale, max_hits=hits,
        )  # fmt: skip
        ratios.append(alarm.map(1) / (1 / 3.0 + hits / query_scale))
    return max(ratios)


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    large = products()
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows, zcdp, pure = compared(options.quick)
    print_table(
        "Root mean square error",
        ["queries", "measure", "chosen", "on answers or cells", "ours", "best", "ratio", "plan s"],
        rows,
    )
    trees = over_tree(options.quick)
    print_table(
        "Prefix counts, measured in 30 runs at ε = 1, beside OpenDP's best tree with consistency",
        ["cells", "chosen", "ours", "b", "OpenDP", "ratio"],
        trees,
    )
    print_table(
        "Without a matrix, at ρ = 1/2",
        ["queries", "cells", "answers", "on answers or cells", "ours", "plan s"],
        large,
    )
    users = participations()
    print_table(
        "Counters at ρ = 1/2 for a unit with k items, b steps apart",
        ["T", "k", "b", "ρ at scale 1", "k times one item", "ours", "jax_privacy", "ratio"],
        users,
    )
    report(
        {
            "zcdp_over_optimum_max": zcdp,
            "pure_over_best_max": pure,
            "over_opendp_tree_max": max(row[-1] for row in trees),
            "participations_over_jax_max": max(row[-1] for row in users),
            "endless_pure_over_formula": endless(),
            "alarm_map_over_exact": alarms(),
            "product_2e16_plan_s": large[-1][-1],
            "product_2e16_plan_mib": mebibytes,
        },
        {
            "zcdp_over_optimum_max": ("at most", 1.05),
            "pure_over_best_max": ("at most", 1.1),
            "over_opendp_tree_max": ("at most", 1.0),
            "participations_over_jax_max": ("at most", 1.03),
            "endless_pure_over_formula": ("at most", 1.02),
            "alarm_map_over_exact": ("at most", 1.0 + 1e-12),
        },
        {"over_opendp_tree_max": "256 cells" if options.quick else "256 and 1,024 cells"},
        options,
    )


if __name__ == "__main__":
    main()
