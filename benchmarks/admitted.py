"""How many launches of (ε0, 0) a bound (ε, δ) admits: each rule, OpenDP, and the optimum.

    python benchmarks/admitted.py [--quick] [--json] [--save]

The optimum is that of launches whose losses are fixed up front and equal [KOV15]; it is no rule
for losses that are chosen on the way. OpenDP's sum is that of its own composition. Ours are counted
by the accumulators that filters use; up to 10,000 launches (1,000 with --quick) are also made, on a
filter, until one is refused.
"""

from __future__ import annotations

import os

os.environ["RUST_BACKTRACE"] = "0"

import time

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report
from scipy.special import gammaln, log_expit

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError

dp.enable_features("contrib", "honest-but-curious")
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
APPROXIMATE = dp.approximate(dp.max_divergence())
EPSILONS = (0.001, 0.01, 0.05, 0.1)
TARGETS = ((1.0, 1e-6), (5.0, 1e-6), (1.0, 1e-9))


def optimal_delta(epsilon0: float, k: int, epsilon: float) -> float:
    """δ at ε of k independent randomized responses with ε0."""
    j = np.arange(k + 1.0)
    log_pmf = gammaln(k + 1) - gammaln(j + 1) - gammaln(k - j + 1)
    log_pmf += j * log_expit(epsilon0) + (k - j) * log_expit(-epsilon0)
    losses = (2 * j - k) * epsilon0
    above = losses > epsilon
    return float(np.sum(np.exp(log_pmf[above]) * -np.expm1(epsilon - losses[above])))


def largest(holds, start: int) -> int:
    """Largest k at which a falling predicate holds."""
    low, high = 0, max(1, start)
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def optimum(epsilon0: float, target: tuple[float, float]) -> int:
    """Launches of the non-adaptive optimum."""
    epsilon, delta = target
    return largest(lambda k: optimal_delta(epsilon0, k, epsilon) <= delta, int(epsilon / epsilon0))


def launch_of(epsilon0: float):
    """A measurement with loss (ε0, 0)."""
    return dp.m.make_user_measurement(
        *SPACE, APPROXIMATE, function=len, privacy_map=lambda d_in: (epsilon0 * d_in, 0.0)
    )


def opendp_admits(epsilon0: float, target: tuple[float, float]) -> int:
    """Launches of OpenDP's sum."""
    one = launch_of(epsilon0)

    def holds(k: int) -> bool:
        return dp.c.make_composition([one] * k).map(1)[0] <= target[0]

    near = int(target[0] / epsilon0)
    for k in range(near + 2, 0, -1):
        if holds(k):
            return k
    return 0


def made(rule, epsilon0: float, target: tuple[float, float]) -> int:
    """Launches made on a filter until one is refused."""
    odometer = oc.make_concurrent_odometer(*SPACE, APPROXIMATE, accumulator=rule)
    root, one = oc.make_concurrent_filter(odometer, 1, target)([1, 2, 3]), launch_of(epsilon0)
    launches = 0
    try:
        while True:
            root(one)
            launches += 1
    except BudgetExceededError:
        return launches


def charge_cost(rule, epsilon0: float, charges: int) -> float:
    """Microseconds to account for one launch: next accumulator and verdict."""
    measure = oc.extend.composition_measure(dp.approximate(dp.max_divergence()))
    target, state = (1e6, 0.5), rule.start(measure)
    d_mid = (epsilon0, 0.0)
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(charges):
            state = state.after(d_mid)
            state.within(target)
        best = min(best, (time.perf_counter() - begin) / charges)
    return best * 1e6


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    rows, worst, at_hundredth, mismatches = [], 1.0, 0, 0
    for target in TARGETS:
        for epsilon0 in EPSILONS:
            loss, slack = [(epsilon0, 0.0)], target[1]
            begin = time.perf_counter()
            best = oc.accumulators.best_rule(target, loss)
            chosen_in = time.perf_counter() - begin
            single = [
                rule for rule in getattr(best, "rules", ()) if rule != oc.accumulators.basic()
            ]
            rules = (
                oc.accumulators.basic(),
                oc.accumulators.advanced(slack),
                oc.accumulators.zcdp(slack),
                *single,
                best,
            )
            counts = [oc.accumulators.launches_admitted(rule, target, loss) for rule in rules]
            least = optimum(epsilon0, target)
            if counts[-1] <= (1_000 if options.quick else 10_000):
                really = made(best, epsilon0, target)
                mismatches += really != counts[-1]
            ratio = counts[-1] / least
            worst = min(worst, ratio)
            if (epsilon0, target) == (0.01, (1.0, 1e-6)):
                at_hundredth = counts[-1]
            rows.append(
                [
                    f"({target[0]:g}, {target[1]:g})",
                    f"{epsilon0:g}",
                    opendp_admits(epsilon0, target),
                    *counts,
                    least,
                    f"{ratio:.3f}",
                    repr(best),
                    round(chosen_in * 1e3, 1),
                ]
            )
    header = ["target", "ε0", "OpenDP", "basic", "advanced", "zcdp", "renyi", "best_rule"]
    print_table(
        "Launches admitted", [*header, "optimum", "ratio", "the rule", "chosen in ms"], rows
    )
    charges = 2_000 if options.quick else 20_000
    rules = [
        oc.accumulators.basic(),
        oc.accumulators.advanced(1e-6),
        oc.accumulators.zcdp(1e-6),
        oc.accumulators.renyi(22.0, 1e-6),
        oc.accumulators.either(oc.accumulators.basic(), oc.accumulators.renyi(22.0, 1e-6)),
    ]
    costs = [[repr(rule), charge_cost(rule, 0.01, charges)] for rule in rules]
    print_table("Accounting for one launch", ["rule", "microseconds"], costs)
    report(
        {
            "worst_best_rule_over_optimum": worst,
            "admitted_0.01_1_1e-6": at_hundredth,
            "made_otherwise_than_counted": mismatches,
            "charge_us_max": max(cost for _, cost in costs),
        },
        {
            "worst_best_rule_over_optimum": ("at least", 0.86),
            "admitted_0.01_1_1e-6": ("at least", 490),
            "made_otherwise_than_counted": ("at most", 0),
            "charge_us_max": ("below", 10),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
