"""What a launch costs: OpenDP's filter and odometer, ours, and the bare measurement.

    python benchmarks/launch_cost.py [--quick] [--json] [--save]

The floor is the bare measurement, invoked through OpenDP on data that are converted already. Costs
are taken in small alternating blocks, since machines are noisy, and ratios are of medians.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"  # with it, each error of OpenDP costs about 50 ms

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent import _opendp as _native

dp.enable_features("contrib", "honest-but-curious")
HUGE = 1e12
TARGETS = {
    "growth": ("at most", 1.1),
    "times_native_filter_at_1e4": ("at least", 70.0),
    "over_native_odometer_max": ("at most", 1.0),
    "over_floor": ("at most", 1.25),
    "privacy_loss_us": ("below", 50.0),
    "mib_per_1e6": ("below", 300.0),
    "launch_calls": ("at most", 30.0),
    "launch_files": ("at most", 8.0),
    "make_calls": ("at most", 40.0),
    "spawn_calls": ("at most", 40.0),
}
HOME = os.path.dirname(oc.__file__)


def count_laplace():
    """Count + Laplace on 10^5 rows."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0), [1] * 100_000, 1


def vector_gaussian():
    """The 4-vector zCDP Gaussian of opendp/opendp#2909."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    return space >> dp.m.then_gaussian(scale=1000.0), [0.0] * 4, 1.0


WORKLOADS = {"count + Laplace": count_laplace, "4-vector Gaussian": vector_gaussian}


def ours_filter(measurement, data, d_in):
    odometer = oc.make_concurrent_odometer(*measurement.input_space, measurement.output_measure)
    return oc.make_concurrent_filter(odometer, d_in, HUGE)(data)


def native_odometer(measurement, data):
    space = measurement.input_space
    return dp.c.make_fully_adaptive_composition(*space, measurement.output_measure)(data)


def native_filter(measurement, data, d_in):
    odometer = dp.c.make_fully_adaptive_composition(
        *measurement.input_space, measurement.output_measure
    )
    return dp.c.make_privacy_filter(odometer, d_in, HUGE)(data)


def launches(launch, measurement, k):
    """Seconds for k launches."""
    start = time.perf_counter()
    for _ in range(k):
        launch(measurement)
    return time.perf_counter() - start


def against_floor(measurement, data, d_in, rounds):
    """Median cost of the floor, of ours and of the native odometer, in alternating blocks."""
    pointer = _native.to_pointer(data, measurement.input_carrier_type)
    handles = ours_filter(measurement, data, d_in), native_odometer(measurement, data)
    ask = [lambda one: one(pointer), *handles]
    block = 200
    times = [[], [], []]
    for _ in range(rounds):
        for index, one in enumerate(ask):
            times[index].append(launches(one, measurement, block) / block)
    return [median(one) for one in times]


def mean_costs(make, measurement, counts, blocks):
    """Mean cost per launch of the first k launches on a fresh handle, for each k; and the handle.

    The longest run is cut into blocks, and shorter runs are repeated between its blocks, so
    that all of them see the same moods of the machine.
    """
    *shorter, longest = counts
    handle, spent = make(), 0.0
    seen = {k: [] for k in shorter}
    for block in range(blocks):
        spent += launches(handle, measurement, longest // blocks)
        for k in shorter:
            if k <= 1_000 or block in (1, blocks - 2):
                seen[k].append(launches(make(), measurement, k))
    costs = {k: sum(times) / (k * len(times)) for k, times in seen.items()}
    costs[longest] = spent / longest
    return costs, handle


def against_native_filter(measurement, data, d_in, quick):
    """Mean cost per launch at k = 10,000 of OpenDP's filter and of ours, in alternating blocks.

    The cost of one launch of the native filter grows linearly with the launches before it. In
    quick mode it is measured up to 1,200 launches and the line is drawn on.
    """
    blocks, size = (4, 300) if quick else (20, 500)
    native, ours = native_filter(measurement, data, d_in), ours_filter(measurement, data, d_in)
    costs, ours_costs = [], []
    for _ in range(blocks):
        costs.append(launches(native, measurement, size) / size)
        ours_costs += [launches(ours, measurement, size) / size for _ in range(2)]
    ours_mean = median(ours_costs)  # ours does not grow, see `growth`
    if not quick:
        return sum(costs) / blocks, ours_mean
    slope = (costs[-1] - costs[0]) / ((blocks - 1) * size)
    return costs[0] + slope * (5_000 - size / 2), ours_mean


def query(handle, d_in):
    """Median microseconds of ``privacy_loss``, asked before."""
    handle.privacy_loss(d_in)
    times = []
    for _ in range(101):
        start = time.perf_counter()
        handle.privacy_loss(d_in)
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


def resident():
    """Resident memory of this process, in MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(k):
    """Growth of resident memory over k launches of one measurement, in MiB, on an odometer.

    The odometer keeps the history of its launches for any d_in that it may be asked about.
    """
    measurement, data, d_in = count_laplace()
    space = measurement.input_space
    odometer = oc.make_concurrent_odometer(*space, measurement.output_measure)
    handle = odometer(data)
    launches(handle, measurement, 1_000)
    handle.privacy_loss(d_in)
    before = resident()
    launches(handle, measurement, k)
    return resident() - before


def traced(function):
    """What a function returns, the calls of this package's Python functions, and their files."""
    calls, files = 0, set()

    def profile(frame, event, _):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            calls += 1
            files.add(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        answer = function()
    finally:
        sys.setprofile(None)
    return answer, calls, len(files)


def walks():
    """Calls and files of a launch, of making a filter and of its handle; the odometer was used."""
    count, data, d_in = count_laplace()
    odometer = oc.make_concurrent_odometer(*count.input_space, count.output_measure)
    oc.make_concurrent_filter(odometer, d_in, HUGE)(data)(count)
    made, make, _ = traced(lambda: oc.make_concurrent_filter(odometer, d_in, HUGE))
    root, spawn, _ = traced(lambda: made(data))
    root(count)
    _, launch, files = traced(lambda: root(count))
    return {
        "launch_calls": launch,
        "launch_files": files,
        "make_calls": make,
        "spawn_calls": spawn,
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.memory:
        print(memory(options.memory))
        return
    print_machine()
    quick = options.quick
    figures = {
        "growth": 0.0,
        "times_native_filter_at_1e4": float("inf"),
        "over_native_odometer_max": 0.0,
        "over_floor": 0.0,
        "privacy_loss_us": 0.0,
    }
    for name, workload in WORKLOADS.items():
        measurement, data, d_in = workload()
        longest = [100_000] if not quick or workload is count_laplace else []
        counts = [100, 1_000, 10_000]
        floor, ours_now, odometer_now = against_floor(measurement, data, d_in, 15 if quick else 60)
        ours, handle = mean_costs(
            lambda m=measurement, x=data, d=d_in: ours_filter(m, x, d),
            measurement,
            counts + longest,
            10 if quick else 20,
        )
        odometer, _ = mean_costs(
            lambda m=measurement, x=data: native_odometer(m, x),
            measurement,
            counts,
            10 if quick else 20,
        )
        filter_, beside = against_native_filter(measurement, data, d_in, quick)
        print_table(
            f"{name}: mean microseconds per launch",
            ["k", "ours", "OpenDP's odometer", "OpenDP's filter"],
            [
                [
                    k,
                    ours[k] * 1e6,
                    odometer[k] * 1e6 if k in odometer else None,
                    filter_ * 1e6 if k == 10_000 else None,
                ]
                for k in ours
            ],
        )
        print(
            f"  alternating blocks: bare {floor * 1e6:.1f}, ours {ours_now * 1e6:.1f}, "
            f"OpenDP's odometer {odometer_now * 1e6:.1f}; "
            f"OpenDP's filter at 10,000 {filter_ * 1e6:.1f}, ours {beside * 1e6:.1f}"
        )
        over = max(ours_now / odometer_now, *(ours[k] / odometer[k] for k in odometer))
        worst = {
            "growth": ours[100_000] / ours[1_000] if longest else 0.0,
            "over_native_odometer_max": over,
            "over_floor": ours_now / floor,
            "privacy_loss_us": query(handle, d_in) if longest else 0.0,
        }
        for figure, value in worst.items():
            figures[figure] = max(figures[figure], value)
        figures["times_native_filter_at_1e4"] = min(
            figures["times_native_filter_at_1e4"], filter_ / beside
        )
    k = 100_000 if quick else 1_000_000
    command = [sys.executable, __file__, "--memory", str(k)]
    grown = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    figures["mib_per_1e6"] = grown * 1_000_000 / k
    figures |= walks()
    estimated = {
        "times_native_filter_at_1e4": "OpenDP's filter drawn on from 1,200 launches",
        "mib_per_1e6": "from 100,000 launches",
    }
    report(figures, TARGETS, estimated if quick else {}, options)


if __name__ == "__main__":
    main()
