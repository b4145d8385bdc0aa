"""What releases cost that others do not offer: shared, at any time, selected.

    python benchmarks/releases.py [--quick] [--json] [--save]

Losses are read from handles and maps; errors are computed from the noise that is released. Noise is
OpenDP's and cannot be seeded, and no figure depends on it.
"""

from __future__ import annotations

import os

os.environ["RUST_BACKTRACE"] = "0"

import math

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent import verify

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
NUMBER = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
DELTA = 1e-6
ORDERS = [1 + 0.25 * index for index in range(1, 200)]
ROWS = [18 + (7 * number) % 60 for number in range(1000)]


def at_delta(rho: float) -> float:
    """The ε of a ρ at δ = 1e-6."""
    made = oc.make_concurrent_composition(*SPACE, ZCDP, 1, [rho])
    epsilon: float = oc.c.cast(made, dp.approximate(PURE), delta=DELTA).map(1)[0]
    return epsilon


def shared() -> dict[str, float]:
    """Twenty analysts ask the same ten counts, each at ρ = .005."""
    odometer = oc.make_concurrent_odometer(*SPACE, ZCDP)
    one, plain = odometer(ROWS), odometer(ROWS)
    for _ in range(20):
        for least in range(10):
            count = SPACE >> dp.t.then_clamp((0, least)) >> dp.t.then_count()
            one(count >> oc.m.then_shared_release(ZCDP))(0.005)
            plain(count >> dp.m.then_gaussian(scale=10.0))
    costs = at_delta(one.privacy_loss(1)), at_delta(plain.privacy_loss(1))
    header = ["20 analysts, 10 counts each", "epsilon"]
    print_table("Shared", header, [["shared", costs[0]], ["each alone", costs[1]]])
    return {"shared_20x10_epsilon": costs[0], "alone_20x10_epsilon": costs[1]}


def laplace_variance(epsilon: float) -> float:
    """The variance of noise on integers."""
    p = math.exp(-epsilon)
    return 2 * p / (1 - p) ** 2


def gradual() -> dict[str, float]:
    """A count is refined ten times, up to ε = 1; or ten releases at a tenth are averaged."""
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)(ROWS)
    release = root(SPACE >> dp.t.then_count() >> oc.m.then_shared_release(PURE))
    for step in range(1, 11):
        release(step / 10)
    assert root.privacy_loss() == release.finest
    variances = laplace_variance(release.finest), laplace_variance(0.1) / 10
    header = ["ten versions up to epsilon = 1", "variance of the last"]
    print_table("Gradual", header, [["refined", variances[0]], ["mean of ten", variances[1]]])
    return {"gradual_10_variance": variances[0], "averaged_10_variance": variances[1]}


def any_time(quick: bool) -> dict[str, float]:
    """The δ that who stops at the worst time gains, over the δ of the reading."""
    cases = [(0.1, 1e-6, 1000), (0.1, 1e-2, 1000), (0.01, 1e-6, 4000)]
    rows = []
    for epsilon, delta, launches in cases[: 2 if quick else 3]:
        worst = []
        rules = oc.accumulators.any_time(delta), oc.accumulators.zcdp(delta)
        for rule in rules:
            start = rule.start()
            readings = [start.after((epsilon, 0.0), n).loss[0] for n in range(1, launches + 1)]
            worst.append(verify.worst_stopping(readings, epsilon) / delta)
        rows.append([f"{launches} of {epsilon}, delta {delta:g}", *worst])
    print_table("Stopped at the worst time, over delta", ["launches", "any time", "fixed"], rows)
    return {
        "any_time_worst_over_delta": max(row[1] for row in rows),
        "fixed_time_worst_over_delta": max(row[2] for row in rows),
    }


def selection() -> dict[str, float]:
    """The ε of the best of about so many runs of Gaussian noise, over that of the Rényi path."""
    rows = []
    for mu, runs, eta in ((math.sqrt(0.02), 100, 1.0), (0.5, 10, 1.0), (1.0, 100, 0.0)):
        run = oc.m.make_certified_gaussian(*NUMBER, 1 / mu, ZCDP)
        renyi = oc.c.make_private_selection(run, runs, eta=eta)
        before = oc.c.cast(renyi, dp.approximate(PURE), delta=DELTA, orders=ORDERS).map(1.0)[0]
        run = oc.m.make_certified_gaussian(*NUMBER, 1 / mu, oc.gaussian_tradeoff())
        after = oc.c.make_private_selection(run, runs, eta=eta).map(1.0).epsilon(DELTA)
        rows.append([f"mu {mu:.3g}, {runs} runs, eta {eta:g}", after, before, after / before])
    print_table("Selection", ["runs", "by profile", "by Rényi", "ratio"], rows)
    return {"selection_over_renyi_max": max(row[3] for row in rows)}


def main() -> None:
    """Print the figures."""
    options = parser(__doc__).parse_args()
    print_machine()
    figures = {**shared(), **gradual(), **any_time(options.quick), **selection()}
    targets = {
        "shared_20x10_epsilon": ("at most", 1.48),
        "gradual_10_variance": ("at most", 1.85),
        "any_time_worst_over_delta": ("at most", 1.0),
        "selection_over_renyi_max": ("at most", 0.88),
    }
    report(figures, targets, {}, options)


if __name__ == "__main__":
    main()
