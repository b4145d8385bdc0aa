"""Launches on 10^4 of 10^6 blocks, and how many launches blocks admit where one filter would not.

    python benchmarks/blocks.py [--quick] [--json] [--save]

``block_launch_us_1e4_of_1e6`` is the median time of a launch beyond its mechanism: the same call of
the mechanism on the same selected data is subtracted, measured in turns with it.
``admitted_blocks`` and ``admitted_one`` are out of 1,000 queries of ε = 0.05 on 4 consecutive of 52
blocks.
"""

from __future__ import annotations

import math
import os
import time
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import numpy as np
import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent import _opendp as _native

dp.enable_features("contrib", "honest-but-curious")
BLOCKS, NAMED = 10**6, 10**4
SPACE = dp.user_domain("blocks", lambda data: True), dp.user_distance("people")
PURE = dp.max_divergence()


def costing(measure, loss):
    return dp.m.make_user_measurement(
        *SPACE, measure, lambda data: 0, lambda d_in: loss, TO="ExtrinsicObject"
    )


def made(measure, d_out, keys, accumulator=None):
    odometer = oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)
    return oc.c.make_block_filter(odometer, 1, d_out, blocks=oc.c.by_entry(), keys=keys)


def beyond(measure, d_out, losses, rounds, accumulator=None):
    """Median microseconds of a launch, beyond its mechanism, and those of the mechanism."""
    data = dict.fromkeys(range(0, BLOCKS, 10), 1)
    root = made(measure, d_out, range(BLOCKS), accumulator)(data)
    rng = np.random.default_rng(1)
    select = oc.c.by_entry().selector
    measurements = [costing(measure, loss) for loss in losses]

    def alone(chosen, measurement):
        rows = select(SPACE[0], chosen.tolist())(data)
        _native.invoke(measurement, _native.to_pointer(rows, measurement.input_carrier_type))

    launches, mechanisms = [], []
    for number in range(rounds + len(losses)):  # first, each measurement is seen once
        chosen = np.sort(rng.choice(BLOCKS, NAMED, replace=False))
        measurement = measurements[number % len(losses)]
        steps = [
            (launches, root),
            (mechanisms, alone),
        ]
        for times, step in steps if number % 2 else steps[::-1]:  # the first one fills the caches
            start = time.perf_counter()
            step(chosen, measurement)
            times.append(time.perf_counter() - start)
    skip = len(losses) + rounds // 4  # the first launches touch new memory
    both = zip(launches[skip:], mechanisms[skip:], strict=True)
    return median(one - other for one, other in both) * 1e6, median(mechanisms) * 1e6


def admitted():
    """Launches that 52 blocks admit, and one filter."""
    epsilon = math.nextafter(0.05, 0)  # 20 of which are at most 1
    launch = costing(PURE, epsilon)
    root = made(PURE, 1.0, range(52))({})
    one = oc.make_concurrent_filter(oc.make_concurrent_odometer(*SPACE, PURE), 1, 1.0)({})
    counts = [0, 0]
    for start in np.random.default_rng(0).integers(0, 49, size=1000).tolist():
        for place, ask in enumerate(
            (lambda start=start: root(range(start, start + 4), launch), lambda: one(launch))
        ):
            try:
                ask()
            except oc.errors.BudgetExceededError:
                continue
            counts[place] += 1
    return counts


def admitted_below_limits():
    """Launches that 52 blocks admit to four analysts in turn, each below a limit of 0.25."""
    launch = costing(PURE, math.nextafter(0.05, 0))
    root, odometer = made(PURE, 1.0, range(52))({}), oc.make_concurrent_odometer(*SPACE, PURE)
    limits = [root(oc.c.make_limited(odometer, 1, 0.25, label=f"analyst {n}")) for n in range(4)]
    count = 0
    for number, start in enumerate(np.random.default_rng(0).integers(0, 49, size=1000).tolist()):
        try:
            limits[number % 4](range(start, start + 4), launch)
        except oc.errors.BudgetExceededError:
            continue
        count += 1
    return count


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    rounds = 60 if options.quick else 400
    approximate = dp.approximate(PURE)
    mixed = [float(one) for one in np.random.default_rng(2).uniform(1e-5, 1e-4, size=20)]
    subjects = {
        "pure, mixed losses": (PURE, 1.0, mixed),
        "zCDP": (dp.zero_concentrated_divergence(), 1.0, mixed),
        "Gaussian": (oc.gaussian_tradeoff(), 1.0, [0.01]),
        "(ε, δ), basic": (approximate, (1.0, 1e-6), [(1e-4, 1e-12)]),
        "(ε, δ), advanced": (
            approximate,
            (1.0, 1e-6),
            [(1e-4, 0.0)],
            oc.accumulators.advanced(delta_slack=5e-7),
        ),
    }
    rows, times = [], {}
    for name, (measure, d_out, losses, *accumulator) in subjects.items():
        times[name], mechanism = beyond(measure, d_out, losses, rounds, *accumulator)
        rows.append([name, times[name], mechanism])
    print_table(
        f"A launch on {NAMED:,} of {BLOCKS:,} blocks, in microseconds",
        ["losses", "beyond its mechanism", "selection and mechanism"],
        rows,
    )
    blocks, one = admitted()
    below = admitted_below_limits()
    print_table(
        "Admitted out of 1,000", ["blocks", "one filter", "limits of 0.25"], [[blocks, one, below]]
    )
    report(
        {
            "block_launch_us_1e4_of_1e6": times["pure, mixed losses"],
            "admitted_blocks": blocks,
            "admitted_one": one,
            "admitted_limits": below,
        },
        {
            "block_launch_us_1e4_of_1e6": ("at most", 1000.0),
            "admitted_blocks": ("at least", 232),
            "admitted_limits": ("at least", 218),
        },
        {},
        options,
    )


if __name__ == "__main__":
    main()
