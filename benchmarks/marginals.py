"""How many one-way marginals can be told: composition under pure, approximate and concentrated DP.

    python benchmarks/marginals.py [--quick] [--json] [--save] [--picture PATH]

The comparison of Steinke's slides on composition, on the accounting of this package. A dataset of n
records with d binary attributes; each of the d means is released with noise of standard deviation
0.1. A record moves a mean by 1/n. The number d that a budget admits grows like

    pure        (ε = 1, Laplace noise)               n             linear
    approximate (ε = 1, δ = 1e-6, Laplace noise)     n²/log(1/δ)   almost quadratic
    concentrated (ρ = 0.5, Gaussian noise)           n²            quadratic

Each marginal is one launch: a scalar with its privacy map, and the accumulators that filters use.
"""

from __future__ import annotations

import math
import os

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.zero_concentrated_divergence import ZERO_CONCENTRATED_DIVERGENCE

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
    report(
        {
            "n_at_rho_0.5_sigma_0.1_d_1e4": needed,
            "exponent_pure": slopes[0],
            "exponent_approximate": slopes[1],
            "exponent_concentrated": slopes[2],
        },
        {
            "n_at_rho_0.5_sigma_0.1_d_1e4": ("at most", 1000),
            "exponent_pure": ("at least", 0.98),
            "exponent_approximate": ("at least", 1.9),
            "exponent_concentrated": ("at least", 1.98),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
