"""One-way marginals: how many can be told under each measure, and what one release of them costs.

    python benchmarks/marginals.py [--quick] [--json] [--save] [--picture PATH]

The comparison of Steinke's slides on composition, on the accounting of this package. A dataset of n
records with d binary attributes; each of the d means is released with noise of standard deviation
0.1. A record moves a mean by 1/n. The number d that a budget admits grows like

    pure        (ε = 1, Laplace noise)               n             linear
    approximate (ε = 1, δ = 1e-6, Laplace noise)     n²/log(1/δ)   almost quadratic
    concentrated (ρ = 0.5, Gaussian noise)           n²            quadratic

Each marginal is one launch: a scalar with its privacy map, and the accumulators that filters use.

``make_marginals`` releases all of them at once. Its noise is compared with the plainest alternative
at the same budget, one launch for each column with an equal share, and under other measures; and
its time with that of the launches, and with that of the sums alone.
"""

from __future__ import annotations

import math
import os
import time

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
import scipy.sparse
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE, ZERO_CONCENTRATED_DIVERGENCE

dp.enable_features("contrib", "honest-but-curious")
SIGMA, EPSILON, DELTA, RHO = 0.1, 1.0, 1e-6, 0.5
SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTOR = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)


def losses(n: int) -> tuple[float, float]:
    """ε of one marginal with Laplace noise, ρ with Gaussian noise, from OpenDP's privacy maps."""
    laplace = dp.m.make_laplace(*SCALAR, scale=SIGMA / math.sqrt(2))
    gaussian = dp.m.make_gaussian(*SCALAR, scale=SIGMA)
    return laplace.map(1 / n), gaussian.map(1 / n)


def admitted(start, d_mid, d_out) -> int:
    """Launches of ``d_mid`` until the accumulator is above ``d_out``."""
    low, high = 0, 1
    while start.after(d_mid, high).within(d_out):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if start.after(d_mid, middle).within(d_out) else (low, middle)
    return low


def marginals(n: int) -> tuple[int, int, int]:
    """Marginals under a pure, an approximate and a concentrated budget."""
    epsilon, rho = losses(n)
    rule = oc.accumulators.best_rule((EPSILON, DELTA), [(epsilon, 0.0)])
    return (
        admitted(oc.accumulators.basic().start(MAX_DIVERGENCE), epsilon, EPSILON),
        oc.accumulators.launches_admitted(rule, (EPSILON, DELTA), [(epsilon, 0.0)]),
        admitted(oc.accumulators.basic().start(ZERO_CONCENTRATED_DIVERGENCE), rho, RHO),
    )


def records_needed(d: int) -> int:
    """Least n for d marginals at once under ρ = 0.5: counts with L2 sensitivity sqrt(d)."""

    def holds(n: int) -> bool:
        return dp.m.make_gaussian(*VECTOR, scale=SIGMA * n).map(math.sqrt(d)) <= RHO

    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


ROWS = dp.user_domain("rows", lambda data: True), dp.symmetric_distance()
ZCDP, PURE = dp.zero_concentrated_divergence(), dp.max_divergence()


def released(columns: int, measure=ZCDP, d_out=RHO):
    return oc.m.make_marginals(*ROWS, measure, 1, d_out, columns)


def deviation(made) -> float:
    """Standard deviation of an answer, by 40 times the noise of no rows."""
    return float(np.std([made([]) for _ in range(40)]))


def alternatives(n: int, d: int):
    """The standard deviation of a mean of n records, for d columns at once, and by d launches."""
    approximate = dp.approximate(PURE)
    share = dp.binary_search_param(
        lambda scale: dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale),
        1, RHO / d, T=float,
    )  # fmt: skip
    once = deviation(released(d)) / n
    rows = [
        ["zCDP, ρ = 0.5, one release", once],
        ["the same, a launch for each column", share / n],
        [
            "(ε, δ) = (1, 1e-6), one release",
            deviation(released(d, approximate, (EPSILON, DELTA))) / n,
        ],
        ["pure, ε = 1, one release", deviation(released(d, PURE, EPSILON)) / n],
        ["pure, ε = 1, a launch for each column", math.sqrt(2) * d / EPSILON / n],
    ]
    return rows, once / (share / n)


def costs(n: int, d: int):
    """Seconds of one release, of its sums alone, and of a launch for each column (from 500)."""
    table = np.random.default_rng(0).integers(0, 2, (n, d), dtype=np.uint8)
    stored = scipy.sparse.csr_array(
        (np.random.default_rng(1).random((n, d)) < 0.02).astype(np.uint8)
    )
    made, rows = released(d), []
    for name, data in (("bytes", table), ("sparse, 2 % stored", stored)):
        begin = time.perf_counter()
        data.sum(axis=0, dtype=np.int64)
        middle = time.perf_counter()
        made(data)
        end = time.perf_counter()
        rows.append([f"{n:,} x {d:,}, {name}", middle - begin, end - middle])
    return rows


def launches_over_release(n: int, d: int, some: int = 500) -> float:
    """Time of a launch for each of d columns, from some of them / time of one release."""
    table = np.random.default_rng(0).integers(0, 2, (n, d), dtype=np.uint8)
    odometer = oc.make_concurrent_odometer(*ROWS, ZCDP)
    root = oc.make_concurrent_filter(odometer, 1, RHO * d)(table)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    noise = dp.m.make_gaussian(*whole, 100.0)

    def column(at: int):
        return (
            dp.t.make_user_transformation(
                *ROWS, *whole, lambda data: int(data[:, at].sum()), lambda d_in: d_in
            )
            >> noise
        )

    begin = time.perf_counter()
    for at in range(some):
        root(column(at))
    each = (time.perf_counter() - begin) / some
    made, begin = released(d), time.perf_counter()
    made(table)
    return each * d / (time.perf_counter() - begin)


def slope(sizes, counts) -> float:
    """Exponent of the growth, by least squares on logarithms over the larger half."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(counts[half:]), 1)[0])


def picture(path: str, sizes, columns) -> None:
    """Draw the three curves."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "opendp_concurrent"
    figure, axes = pyplot.subplots(figsize=(6.0, 4.0), layout="constrained")
    names = [
        f"pure, ε = {EPSILON:g}: linear",
        f"approximate, ε = {EPSILON:g}, δ = {DELTA:g}: almost quadratic",
        f"concentrated, ρ = {RHO:g}: quadratic",
    ]
    for name, column, style in zip(names, columns, ("-.", "--", "-"), strict=True):
        axes.loglog(sizes, column, style, label=name)
    axes.plot(1_000, 10_000, "ko", label="ρ = 0.5, σ = 0.1, d = 10,000: n = 1,000")
    axes.set_xlabel("records n")
    axes.set_ylabel("one-way marginals d with σ = 0.1")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--picture", help="write the picture to this file")
    options = options.parse_args()
    print_machine()
    sizes = np.unique(np.geomspace(50, 20_000, 9 if options.quick else 33).round().astype(int))
    rows = [(int(n), *marginals(int(n))) for n in sizes]
    columns = [np.array(column) for column in list(zip(*rows, strict=True))[1:]]
    print_table(
        "One-way marginals with σ = 0.1", ["n", "pure", "approximate", "concentrated"], rows
    )
    needed = records_needed(10_000)
    if options.picture:
        picture(options.picture, sizes, columns)
    slopes = [slope(sizes, column) for column in columns]
    rows, over = alternatives(1_000, 10_000)
    print_table("n = 1,000, d = 10,000", ["released", "standard deviation of a mean"], rows)
    times = costs(1_000, 10_000 if options.quick else 1_000_000)
    print_table("Seconds", ["data", "sums alone", "one release"], times)
    report(
        {
            "n_at_rho_0.5_sigma_0.1_d_1e4": needed,
            "exponent_pure": slopes[0],
            "exponent_approximate": slopes[1],
            "exponent_concentrated": slopes[2],
            "release_over_launches_error": over,
            "launches_over_release_time": launches_over_release(1_000, 10_000),
        },
        {
            "n_at_rho_0.5_sigma_0.1_d_1e4": ("at most", 1000),
            "exponent_pure": ("at least", 0.98),
            "exponent_approximate": ("at least", 1.9),
            "exponent_concentrated": ("at least", 1.98),
            "release_over_launches_error": ("at most", 1.02),
            "launches_over_release_time": ("at least", 5),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
