"""What the verify tools compute: simulations, interleavings, promises, and a rule that fails.

    python benchmarks/verify.py [--quick] [--json] [--save] [--workers N]

``lp_*``: the experiment of Vadhan and Wang, Section 6: random mechanisms of two rounds as
postprocessed randomized response, one linear programme each. ``worst_excess_over_promise``: the
worst analyst against every measure and rule of the package, above what is promised.
``natural_filter_violation``: the exact δ over the target δ of the filter that trusts optimal
composition, with pure children only.
"""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from _timing import parser, print_machine, print_table, report

from opendp_concurrent import verify

sys.path.insert(0, str(Path(__file__).parents[1]))  # the promises are a test
from tests.verify.filters.promises import promises as promises_of
from tests.verify.forbidden import NaturalOptimal, second_stage_gain

PROBE, LARGE, SMALL, COUNT, EPSILON = 0.0237811294, 1.312543194, 0.2510465329, 9, 1.2895172438


def simulation(seed: int) -> tuple[bool, float]:
    """Whether one random mechanism is simulated and certified, and the residual."""
    mechanism = verify.random_interactive(seed)
    epsilon = float(np.random.default_rng([seed, 1]).uniform(0, 2))
    pair = verify.randomized_response(epsilon, mechanism.delta(epsilon))
    found = verify.simulate(mechanism, pair)
    return found.feasible and verify.certify(mechanism, found) <= 1e-8, found.residual


def simulations(total: int, workers: int) -> tuple[int, float]:
    """Feasible programmes, and seconds."""
    begin = time.perf_counter()
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(simulation, range(total), chunksize=50))
    feasible, residual = sum(one for one, _ in found), max(residual for _, residual in found)
    seconds = time.perf_counter() - begin
    print(
        f"\n{feasible} of {total} programmes feasible in {seconds:.1f} s; residual {residual:.2g}"
    )
    return feasible, seconds


def promises(pairs: int) -> float:
    """Largest excess over all promises."""
    rows, worst = [], -float("inf")
    for promise in promises_of():
        generator, outcomes = random.Random(promise.name), []
        begin = time.perf_counter()
        for _ in range(pairs):
            unit = generator.choice([0.2, 0.25, 0.5])
            epsilons = [unit * multiple for multiple in generator.sample([1, 2, 3, 4, 5], 2)]
            counts = generator.choice([(1, 1), (2, 1), (1, 2), (3, 1)])
            outcomes += promise.check(epsilons, counts, generator.choice([1.0, 1 - 1e-6, 0.9]))
        excess = max(outcome.excess for outcome in outcomes)
        share = max(outcome.share for outcome in outcomes)
        worst = max(worst, excess)
        seconds = time.perf_counter() - begin
        rows.append([promise.name, pairs, f"{excess:.2g}", f"{share:.3f}", round(seconds, 2)])
    print_table(
        "The worst analyst against each promise",
        ["measure and rule", "menus", "largest excess", "largest share used", "seconds"],
        rows,
    )
    return worst


def interleavings(pairs: int, triples: int) -> float:
    """Largest excess of an interleaving over the composition theorem."""
    rows, worst = [], -float("inf")
    for size, number in ((2, pairs), (3, triples)):
        ratios, slack, begin = [], [], time.perf_counter()
        for seed in range(number):
            parts = [verify.random_interactive(size * seed + index) for index in range(size)]
            epsilon = (0.0, 0.5, 1.0)[seed % 3]
            concurrent = verify.concurrent_delta(parts, epsilon)
            sequential = verify.sequential_delta(parts, epsilon)
            allowed = verify.composition_delta(parts, epsilon)
            worst = max(worst, concurrent - allowed)
            if sequential > 1e-9:
                ratios.append(concurrent / sequential)
                slack.append(allowed / concurrent)
        rows.append(
            [
                size,
                number,
                f"{sum(ratios) / len(ratios):.5f}",
                f"{max(ratios):.4f}",
                sum(ratio > 1 + 1e-9 for ratio in ratios),
                f"{max(slack):.4f}",
                round(time.perf_counter() - begin, 1),
            ]
        )
    print_table(
        "Interleaved: δ over that of the best sequence, and the theorem over δ",
        ["mechanisms", "cases", "mean", "largest", "above 1", "theorem, largest", "seconds"],
        rows,
    )
    return worst


def natural_filter() -> float:
    """Exact δ over target δ of the natural filter, with pure children only."""
    claimed, true = second_stage_gain(0.5, [(1.0,), (0.7425, 0.7425)], 0.5)
    menu = verify.response_menu(0.5, 0.7425, 1.0)
    worst = verify.worst_analyst(menu, (), NaturalOptimal(0.5, claimed), 0.5)
    print(f"\nnatural filter, ε = 0.5: claimed δ {claimed:.4f}, worst analyst {worst.delta:.4f}")
    print(worst.strategy)
    claimed, true = second_stage_gain(PROBE, [(LARGE,), (SMALL,) * COUNT], EPSILON)
    print(f"\nfound by a search, ε = {EPSILON}: claimed δ {claimed:.5f}, true {true:.5f}")
    return true / claimed


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=os.cpu_count())
    options = options.parse_args()
    print_machine()
    total = 10_000
    feasible, seconds = simulations(total, options.workers)
    excess = promises(2 if options.quick else 20)
    over = interleavings(20, 2) if options.quick else interleavings(1_000, 100)
    violation = natural_filter()
    report(
        {
            "lp_feasible": feasible,
            "lp_total": total,
            "lp_seconds": seconds,
            "worst_excess_over_promise": excess,
            "worst_excess_over_theorem": over,
            "natural_filter_violation": violation,
        },
        {
            "lp_feasible": ("at least", total),
            "lp_total": ("at least", total),
            "lp_seconds": ("below", 120),
            "worst_excess_over_promise": ("at most", 1e-12),
            "worst_excess_over_theorem": ("at most", 1e-12),
            "natural_filter_violation": ("at least", 1.2),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
