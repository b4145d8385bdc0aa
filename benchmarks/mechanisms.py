"""What interactive mechanisms cost, and how near their stated errors are to the measured ones.

    python benchmarks/mechanisms.py [--quick] [--json] [--save]

Costs are medians of repeated, alternating blocks in one process. Errors are of real runs: data and
queries are seeded, noise is OpenDP's and cannot be.
"""

from __future__ import annotations

import os

os.environ["RUST_BACKTRACE"] = "0"

import math
import time
from statistics import median

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report
from scipy.stats import beta as beta_distribution

import opendp_concurrent as oc
from opendp_concurrent.mechanisms.histogram import nearest
from opendp_concurrent.mechanisms.linear_answers import Batch

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
SURE = 1 - 1e-6  # confidence of Clopper and Pearson's limits


def seconds(ask, repeats: int) -> float:
    """Mean of ``repeats`` calls."""
    begin = time.perf_counter()
    for _ in range(repeats):
        ask()
    return (time.perf_counter() - begin) / repeats


def sparse_vector_costs(blocks: int) -> tuple[float, float, float]:
    """Seconds for a query by transformation, one by a callable, and a bare Laplace release."""
    rows, count = [1] * 1_000, SPACE
    count = count >> dp.t.then_count()
    queryable = oc.m.make_sparse_vector(*SPACE, PURE, 1, 10.0, 10**6, 1)(rows)
    scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    laplace = dp.m.make_laplace(*scalar, 1.0)
    asks = lambda: queryable(count), lambda: queryable(len), lambda: laplace(3.0)
    times: list[list[float]] = [[] for _ in asks]
    for _ in range(blocks):
        for mine, ask in zip(times, asks, strict=True):
            mine.append(seconds(ask, 200))
    query, python, release = map(median, times)
    return query, python, release


def weights(rho: float, cells: int, queries: int, size: int, beta: float):
    return oc.m.make_private_multiplicative_weights(
        *SPACE, ZCDP, 1, rho, cells, queries, size=size, beta=beta
    )


def skewed(generator, cells: int, size: int) -> list[int]:
    """Records of which most are in a few cells."""
    return generator.choice(cells, size, p=generator.dirichlet(np.full(cells, 0.05))).tolist()


def queries_per_second(blocks: int) -> tuple[float, float]:
    """Fresh queries on a universe of 2^16: all, and those only that update."""
    cells, size, generator = 2**16, 10**6, np.random.default_rng(1)
    queryable = weights(1.0, cells, 10**6, size, 0.05)(skewed(generator, cells, size))
    rates, updates = [], []
    for _ in range(blocks):
        fresh = list(generator.random((100, cells)) < 0.5)
        begin = time.perf_counter()
        for query in fresh:
            queryable(query)
        rates.append(len(fresh) / (time.perf_counter() - begin))
    wrong = weights(1.0, cells, 10**6, size, 0.05)(skewed(generator, cells, 2 * size))
    everything = np.ones(cells)
    while len(updates) < 30:  # twice the records that it was told: always off
        begin = time.perf_counter()
        assert wrong(everything)
        updates.append(time.perf_counter() - begin)
    return median(rates), 1 / median(updates)


def largest_error(made, data, cells, queries, generator, worst: int):
    """The largest error, updates, and of how many queries; some ask what is wrong just now."""
    histogram, queryable = np.bincount(data, minlength=cells), made(data)
    error, updates = 0.0, 0
    for turn in range(queries):
        if worst and turn % worst == 0:
            query = (histogram > queryable("synthetic")).astype(float)
        else:
            query = (generator.random(cells) < generator.random()).astype(float)
        answer = queryable(query)
        assert answer.outcome is not oc.handles.Outcome.EXHAUSTED
        updates += bool(answer)
        error = max(error, abs(answer.value - float(query @ histogram)))
    return error, updates


def published_errors(epsilon: float, delta: float, cells: int, k: int, size: int, beta: float):
    """Bounds of the papers in records, at (ε, δ) [DR14, Theorem 4.14 with 4.10], [HR10].

    DR14's α, with c = 4 log m / α² updates, solves 2 T n = α n; answers are within about its α.
    """
    factor = (2 + 32 * math.sqrt(2)) * math.sqrt(math.log(2 / delta))

    def needed(alpha: float) -> float:
        c = 4 * math.log(cells) / alpha**2
        return 2 * factor * math.sqrt(c) * (math.log(k) + math.log(4 * c / beta)) / (epsilon * size)

    low, high = 1e-9, 1e9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if needed(middle) > middle else (low, middle)
    sigma = 10 * math.log(1 / delta) * math.log(cells) ** 0.25 / (math.sqrt(size) * epsilon)
    return high * size, 4 * sigma * (math.log(k) + math.log(1 / beta)) * size


HITS = 3


def stated(queries: int, beta: float, refresh: bool):
    """A sparse vector, and the accuracy that is stated for it."""
    scale, query_scale = 4.0, 8.0
    mechanism = oc.m.make_sparse_vector(
        *SPACE, PURE, 1, scale, 0, HITS, query_scale=query_scale, refresh=refresh
    )
    return mechanism, oc.mechanisms.sparse_vector_accuracy(
        scale, query_scale, queries, beta, thresholds=HITS if refresh else 1
    )


def sparse_vector_failures(runs: int, queries: int, beta: float, refresh: bool, generator):
    """How many runs have an answer further from the threshold than is stated, and how far."""
    mechanism, bound = stated(queries, beta, refresh)
    furthest = []
    for _ in range(runs):
        queryable, far, above = mechanism([]), 0.0, 0
        # most are near the threshold from below, where they may err
        answers = -np.floor(bound * generator.choice([0.2, 0.6, 1.0], queries)).astype(int)
        answers[generator.random(queries) < HITS / queries] += int(2 * bound)
        for answer in answers.tolist():
            said = queryable(lambda _, a=answer: a)
            if said.outcome is oc.handles.Outcome.EXHAUSTED:
                break
            above += bool(said)
            far = max(far, -answer if said else answer)
        furthest.append(far)
    failures = int(np.sum(np.array(furthest) > bound))
    return bound, failures, float(np.quantile(furthest, 1 - beta))


def worst_case_failures(runs: int, queries: int, beta: float, refresh: bool):
    """The same when all answers are just further below the threshold than is stated."""
    mechanism, bound = stated(queries, beta, refresh)
    answer, failures = -(math.floor(bound) + 1), 0
    for _ in range(runs):
        queryable = mechanism([])
        failures += any(queryable(lambda _: answer) for _ in range(queries))
    return failures


def limits(hits: int, runs: int) -> tuple[float, float]:
    """Clopper and Pearson's, each with half of the confidence."""
    low = float(beta_distribution.ppf((1 - SURE) / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta_distribution.isf((1 - SURE) / 2, hits + 1, runs - hits))
    return low, high


def guess_and_check_over_fresh(hits: int, eps1: float, e2: float, delta: float):
    """ε with one sparse vector, and with a new one for each turn, at the same noise.

    Without concurrency each release ends the sparse vector: c of them, of one hit each, in the
    last of which no hit may be needed; their thresholds and queries have the noise that one of c
    hits has, so each costs the threshold's share and 1/c of the queries'.
    """
    scale, query_scale, answer_scale = 2 / eps1, 4 * hits / eps1, 1 / e2
    found = []
    for measure in (PURE, oc.tradeoff()):
        ours = oc.m.make_guess_and_check(
            *SPACE, measure, 1, scale, 0, hits, query_scale=query_scale, answer_scale=answer_scale
        ).map(1)
        one = oc.m.make_above_threshold(*SPACE, measure, 1, scale, 0, query_scale=query_scale).map(
            1
        )
        whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        release = oc.m.make_certified_laplace(*whole, answer_scale, measure).map(1)
        turns = oc.make_concurrent_composition(
            *SPACE, measure, 1, [one] * hits + [release] * hits
        ).map(1)
        found.append(
            (ours, turns) if measure == PURE else tuple(f.epsilon(delta) for f in (ours, turns))
        )
    return found


DELTA, RUNS, RHO = 1e-6, 100, 0.01


def selection_epsilons() -> tuple[float, float]:
    """ε at δ of the best of 100 runs on average, and of all of them."""
    run = dp.m.make_user_measurement(*SPACE, ZCDP, len, lambda d_in: RHO * d_in**2)
    best = oc.c.make_private_selection(run, RUNS)
    grid = [1 + step / 4 for step in range(1, 400)]
    approximate = dp.approximate(PURE)
    selected = oc.c.cast(best, approximate, delta=DELTA, orders=grid).map(1)[0]
    composed = oc.make_concurrent_composition(*SPACE, ZCDP, 1, [RHO] * RUNS)
    return selected, oc.c.cast(composed, approximate, delta=DELTA).map(1)[0]


def runs_made(selections: int) -> float:
    """Mean number of runs of selections that were made."""
    made = []
    run = dp.m.make_user_measurement(
        *SPACE, ZCDP, lambda rows: made.append(1) or 0, lambda d_in: RHO * d_in**2
    )
    best = oc.c.make_private_selection(run, RUNS)
    for _ in range(selections):
        best([])
    return len(made) / selections


def workload(kind: str, count: int, cells: int, generator) -> np.ndarray:
    """Linear queries, shape (count, cells)."""
    every = np.arange(cells)
    if kind == "binary":
        return generator.integers(0, 2, (count, cells)).astype(float)
    if kind == "sparse":
        return (generator.random((count, cells)) < 3 / cells).astype(float)
    if kind == "ranges":
        ends = np.sort(generator.integers(0, cells + 1, (count, 2)), axis=1)
        return ((ends[:, :1] <= every) & (every < ends[:, 1:])).astype(float)
    if kind == "points":
        return np.eye(cells)[generator.integers(0, cells, count)]
    if kind == "prefixes":
        return np.tri(cells)[generator.integers(0, cells, count)]
    masks = generator.integers(1, cells, (count, 1))  # marginals: some bits are fixed
    return ((every & masks) == (generator.integers(0, cells, (count, 1)) & masks)).astype(float)


KINDS = ("binary", "sparse", "ranges", "points", "prefixes", "marginals")


def instances(number: int, generator):
    """Random workloads with their data: kind, queries, histogram, data, space, ρ."""
    for index in range(number):
        kind = KINDS[index % len(KINDS)]
        cells, count = 2 ** int(generator.integers(4, 9)), 2 ** int(generator.integers(2, 9))
        size, rho = int(10 ** generator.uniform(2, 5)), float(10 ** generator.uniform(-3, 1))
        queries = workload(kind, count, cells, generator)
        shares = generator.dirichlet(np.full(cells, (0.1, 1.0, 10.0)[index % 3]))
        histogram = generator.multinomial(size, shares)
        data = np.repeat(np.arange(cells), histogram).tolist()
        space = dp.vector_domain(dp.atom_domain(T=int), size=size), dp.change_one_distance()
        yield kind, queries, histogram, data, space, rho


def projections_over_noise(number: int, generator) -> list[float]:
    """The L2 error of each projected answer over that of its own noise."""
    found, noisy = [], []
    release = Batch.release

    def seen(self, *arguments):
        measurement, scale = release(self, *arguments)
        return measurement >> (lambda answers: noisy.append(answers) or answers), scale

    Batch.release = seen
    try:
        for _, queries, histogram, data, space, rho in instances(number, generator):
            made = oc.m.make_projected_queries(*space, ZCDP, 1, [rho], queries.shape[1])
            truth, answers = queries @ histogram, made(data)(queries)
            found.append(
                float(
                    np.linalg.norm(answers.values - truth)
                    / np.linalg.norm(np.array(noisy.pop()) - truth)
                )
            )
    finally:
        Batch.release = release
    return found


def projection_times(repeats: int, generator):
    """Milliseconds to project, fastest of several, and the gap over the squared distance."""
    rows = []
    for count, cells in ((300, 64), (1_000, 1_024)):
        queries = workload("binary", count, cells, generator)
        truth = generator.multinomial(10_000, generator.dirichlet(np.full(cells, 0.1)))
        scale = math.sqrt(queries.sum(axis=0).max())
        answers = queries @ truth / scale + generator.standard_normal(count)
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            found = nearest(answers, queries / scale, 10_000)
            times.append(time.perf_counter() - begin)
        distance = np.sum(np.square(queries @ found.histogram / scale - answers))
        rows.append([count, cells, min(times) * 1e3, f"{found.gap / distance:.1e}"])
    return rows


def projections(quick: bool):
    """Tables of linear queries, and their figures."""
    generator = np.random.default_rng(12)
    times = projection_times(7 if quick else 15, generator)
    print_table("Projection", ["queries", "cells", "milliseconds", "relative gap"], times)
    over = projections_over_noise(20, generator)
    return {
        "projection_300_64_ms": times[0][2],
        "projection_1000_1024_ms": times[1][2],
        "projection_over_noise": max(over),
    }


def main() -> None:
    options = parser(__doc__).parse_args()
    quick, generator = options.quick, np.random.default_rng(0)
    print_machine()

    query, python, release = sparse_vector_costs(7 if quick else 31)
    rate, updating = queries_per_second(3 if quick else 15)
    print_table(
        "Cost of a query",
        ["what", "microseconds", "over a release"],
        [
            ["bare native Laplace release", release * 1e6, 1.0],
            ["sparse vector, count of 1,000 rows", query * 1e6, query / release],
            ["sparse vector, a Python callable", python * 1e6, python / release],
            ["multiplicative weights, 2^16 cells", 1e6 / rate, 1 / rate / release],
            ["the same when it updates", 1e6 / updating, 1 / updating / release],
        ],
    )

    rows, over, beta = [], 0.0, 1e-6
    for size, rho, cells, count, worst in (
        (1_000, 50.0, 64, 300 if quick else 2_000, 4),
        (10_000, 5.0, 64, 500 if quick else 5_000, 4),
        (100_000, 1.0, 64, 500 if quick else 5_000, 4),
        (10_000, 5.0, 256, 10_000, 50),
    ):
        made = weights(rho, cells, count, size, beta)
        error, updates = largest_error(
            made, skewed(generator, cells, size), cells, count, generator, worst
        )
        over = max(over, error / made.plan.error)
        rows.append(
            [
                size,
                rho,
                cells,
                count,
                made.plan.error,
                error,
                error / made.plan.error,
                updates,
                made.plan.max_updates,
            ]
        )
    print_table(
        f"Multiplicative weights: largest error; the promise fails with probability {beta:g}",
        ["n", "ρ", "|X|", "queries", "promised", "measured", "ratio", "updates", "allowed"],
        rows,
    )
    delta = 1e-6
    epsilon = oc.c.cast(made, dp.approximate(PURE), delta=delta).map(1)[0]
    dr14, hr10 = published_errors(epsilon, delta, cells, count, size, beta)
    print_table(
        f"The last of these, ({epsilon:.3f}, {delta:g})-DP: error promised, in records of {size:,}",
        ["bound", "error", "over ours"],
        [
            ["ours", made.plan.error, 1.0],
            ["[DR14] α n", dr14, dr14 / made.plan.error],
            ["[HR10] T n", hr10, hr10 / made.plan.error],
        ],
    )

    rows, highest = [], 0.0
    runs, asked = (250, 50) if quick else (4_000, 100)
    for refresh in (False, True):
        for failing in (0.05, 0.2):
            bound, failures, quantile = sparse_vector_failures(
                runs, asked, failing, refresh, generator
            )
            worst = worst_case_failures(runs, asked, failing, refresh)
            highest = max(highest, *(limits(one, runs)[0] / failing for one in (failures, worst)))
            rows.append(
                [
                    "refreshed" if refresh else "once",
                    failing,
                    bound,
                    quantile,
                    quantile / bound,
                    f"{failures / runs:.4f}",
                    f"{worst / runs:.4f}",
                    f"{limits(worst, runs)[1]:.4f}",
                ]
            )
    header = ["threshold", "β", "α stated", "1 - β quantile", "over α", "failed", "worst case"]
    print_table(
        f"Sparse vector: answers further than α from the threshold, {runs:,} runs of {asked}",
        [*header, "at most"],
        rows,
    )

    rows, least = [], math.inf
    for hits in (3, 10, 30):
        for (ours, turns), name in zip(
            guess_and_check_over_fresh(hits, 0.5, 0.5 / hits, 1e-6),
            ("pure", "δ = 1e-6"),
            strict=True,
        ):
            least = min(least, turns / ours)
            rows.append([hits, name, f"{ours:.4f}", f"{turns:.4f}", turns / ours])
    print_table(
        "Guess and check: ε with one sparse vector, and with a new one for each release",
        ["releases", "at", "one", "new", "times"],
        rows,
    )

    selected, composed = selection_epsilons()
    mean = runs_made(200 if quick else 2_000)
    print_table(
        f"The best of {RUNS} runs on average, each {RHO}-zCDP, at δ = {DELTA:g}",
        ["released", "ε", "runs made"],
        [["the best", selected, mean], ["all", composed, RUNS]],
    )
    linear = projections(quick)

    report(
        {
            **linear,
            "sparse_vector_over_laplace": query / release,
            "pmw_queries_per_s": rate,
            "pmw_error_over_bound": over,
            "pmw_bound_over_dr14": made.plan.error / dr14,
            "pmw_updates_over_allowed": updates / made.plan.max_updates,
            "sparse_vector_failures_over_beta": highest,
            "guess_and_check_over_fresh": 1 / least,
            "selection_eps_100": selected,
        },
        {
            "projection_300_64_ms": ("at most", 5),
            "projection_1000_1024_ms": ("at most", 1000),
            "projection_over_noise": ("at most", 1),
            "sparse_vector_over_laplace": ("at most", 3),
            "pmw_queries_per_s": ("at least", 1_000),
            "pmw_error_over_bound": ("at most", 1),
            "pmw_bound_over_dr14": ("below", 1),
            "pmw_updates_over_allowed": ("at most", 1),
            "sparse_vector_failures_over_beta": ("at most", 1),
            "guess_and_check_over_fresh": ("below", 1),
            "selection_eps_100": ("at most", 1.60),
        },
        {
            "sparse_vector_failures_over_beta": f"lower limit, {runs:,} runs",
            "pmw_error_over_bound": f"promised with probability 1 - {beta:g}",
        },
        options,
    )


if __name__ == "__main__":
    main()
