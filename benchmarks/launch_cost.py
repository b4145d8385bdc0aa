"""What one launch costs: our filter beside OpenDP's filter, its odometer, and no accounting at all.

Everything runs in one process on the same measurements. Contenders take turns in short blocks, so
that a change of pace of the machine meets all of them; ratios are taken between neighbours, and
the median of the ratios is reported. Garbage collection is left as it is.

The floor is the bare measurement, through OpenDP's own call, on data that are converted already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from _timing import parser, print_machine, print_table, report

os.environ["RUST_BACKTRACE"] = "0"  # a backtrace costs 50 ms per refused native call

import opendp.prelude as dp
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")

BLOCK = 200
HUGE = 1e9  # a budget that refuses nothing
TARGETS = {
    "growth": ("at most", 1.1),
    "times_native_filter_at_1e4": ("at least", 70.0),
    "over_native_odometer_max": ("at most", 1.0),
    "over_floor": ("at most", 1.25),
    "privacy_loss_us": ("below", 50.0),
    "mib_per_1e6": ("below", 300.0),
}

HEADER = ("k", "floor", "ours", "odometer", "filter", "ours:floor", "ours:odometer", "filter:ours")

Launch = Callable[[Any], Any]


class Sizes(NamedTuple):
    """How much is run."""

    rounds_100: int
    rounds_1000: int
    native_filter: int
    long: dict[str, int]
    memory_ours: int
    memory_native: int


LAPLACE, GAUSSIAN = "count + Laplace, 10^5 rows", "4-vector zCDP Gaussian (#2909)"
FULL = Sizes(40, 20, 10_000, {LAPLACE: 100_000, GAUSSIAN: 100_000}, 1_000_000, 100_000)
QUICK = Sizes(11, 3, 1_200, {LAPLACE: 100_000, GAUSSIAN: 5_000}, 40_000, 10_000)


@dataclass
class Workload:
    """One measurement, on one dataset, and how each contender is made."""

    name: str
    space: tuple[Any, Any]
    measure: Any
    measurement: Any
    data: Any
    pointer: Any = field(init=False)

    def __post_init__(self) -> None:
        self.pointer = py_to_c(self.data, AnyObjectPtr, self.measurement.input_carrier_type)

    def floor(self) -> Launch:
        """Return the bare measurement on converted data."""
        pointer = self.pointer
        return lambda measurement: measurement(pointer)

    def ours(self) -> Any:
        """Return a fresh filter of this package."""
        odometer = oc.make_concurrent_odometer(*self.space, self.measure)
        return oc.make_concurrent_filter(odometer, d_in=1, d_out=HUGE)(self.pointer)

    def native_odometer(self) -> Any:
        """Return a fresh odometer of OpenDP."""
        return dp.c.make_fully_adaptive_composition(*self.space, self.measure)(self.pointer)

    def native_filter(self) -> Any:
        """Return a fresh filter of OpenDP."""
        odometer = dp.c.make_fully_adaptive_composition(*self.space, self.measure)
        return dp.c.make_privacy_filter(odometer, d_in=1, d_out=HUGE)(self.pointer)

    def time(self, launch: Launch, launches: int) -> float:
        """Return the mean cost of one launch, in µs."""
        measurement = self.measurement
        start = perf_counter()
        for _ in range(launches):
            launch(measurement)
        return (perf_counter() - start) / launches * 1e6


def workloads() -> list[Workload]:
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    # domain, metric, scale and data as in the report
    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    return [
        Workload(
            LAPLACE,
            rows,
            dp.max_divergence(),
            rows >> dp.t.then_count() >> dp.m.then_laplace(scale=1000.0),
            list(range(100_000)),
        ),
        Workload(
            GAUSSIAN,
            vectors,
            dp.zero_concentrated_divergence(),
            dp.m.make_gaussian(*vectors, scale=1000.0),
            [0.0] * 4,
        ),
    ]


class Cost(NamedTuple):
    """Mean costs in µs of the first k launches, and ratios between neighbouring blocks."""

    floor: float
    ours: float
    odometer: float
    over_floor: float
    over_odometer: float


def _summary(triples: list[list[float]]) -> Cost:
    floor, ours, odometer = (fmean(column) for column in zip(*triples, strict=True))
    over_floor = median(ours / floor for floor, ours, _ in triples)
    over_odometer = median(ours / odometer for _, ours, odometer in triples)
    return Cost(floor, ours, odometer, over_floor, over_odometer)


def short_runs(workload: Workload, k: int, rounds: int) -> Cost:
    """Mean cost of the first k launches, everything fresh in each round."""
    triples = []
    for _ in range(rounds):
        launchers = [workload.floor(), workload.ours(), workload.native_odometer()]
        blocks = [
            [workload.time(launch, min(BLOCK, k)) for launch in launchers]
            for _ in range(k // min(BLOCK, k))
        ]
        triples.append([fmean(column) for column in zip(*blocks, strict=True)])
    return _summary(triples)


class Long(NamedTuple):
    """One filter after very many launches."""

    to_1e4: Cost
    k: int
    ours: float
    growth: float
    first_us: float
    second_us: float
    later_us: float
    native_loss_us: float


def long_run(workload: Workload, k: int) -> Long:
    """Take one filter to k launches; on the way, take fresh ones to 1,000 now and then."""
    floor, root, odometer = workload.floor(), workload.ours(), workload.native_odometer()
    triples: list[list[float]] = []
    ours, fresh = [], []
    for done in range(0, k, BLOCK):
        if done < 10_000:
            triples.append([workload.time(launch, BLOCK) for launch in (floor, root, odometer)])
            ours.append(triples[-1][1])
        else:
            ours.append(workload.time(root, BLOCK))
        if (done + BLOCK) % (k // 5 if k < 100_000 else k // 10) == 0:
            fresh.append(workload.time(workload.ours(), 1_000))
    first, second, later = privacy_loss(root)
    start = perf_counter()
    odometer.privacy_loss(1)
    native_loss = (perf_counter() - start) * 1e6
    growth = fmean(ours) / fmean(fresh)
    return Long(_summary(triples), k, fmean(ours), growth, first, second, later, native_loss)


def privacy_loss(root: Any) -> tuple[float, float, float]:
    """First, second and median later call in µs: the worse of the filter's own d_in and another."""
    results = []
    for d_in in (1, 2):
        costs = []
        for _ in range(1_001):
            start = perf_counter()
            root.privacy_loss(d_in)
            costs.append((perf_counter() - start) * 1e6)
        results.append((costs[0], costs[1], median(costs[1:])))
    first, second, later = (max(column) for column in zip(*results, strict=True))
    return first, second, later


class FilterCost(NamedTuple):
    """OpenDP's filter beside ours, mean costs in µs of the first k launches."""

    at: dict[int, tuple[float, float]]
    times_at_1e4: float
    extrapolated: float
    slope: float
    estimated: bool


def beside_native_filter(workload: Workload, k: int) -> FilterCost:
    """Take both filters to k launches in turn.

    The cost of a launch of OpenDP's filter is a straight line in the number of launches before it;
    if k is below 10,000 the mean there is read off that line, which must be said.
    """
    contenders, block = (workload.native_filter(), workload.ours()), 100
    blocks = [[workload.time(one, block) for one in contenders] for _ in range(0, k, block)]
    pairs = np.array(blocks)
    at = {n: tuple(pairs[: n // block].mean(axis=0)) for n in (100, 1_000, k)}
    middle = np.arange(len(pairs)) * block + block / 2
    begin = middle < QUICK.native_filter
    slope, intercept = np.polyfit(middle[begin], pairs[begin, 0], 1)
    native, ours = at[k]
    extrapolated = float(intercept + slope * 5_000) / ours
    times = native / ours if k == 10_000 else extrapolated
    return FilterCost(at, times, extrapolated, float(slope), k != 10_000)


# --- memory, in a process of its own ---------------------------------------------------------


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory_here(contender: str, launches: int) -> float:
    """Growth of resident memory over many launches of one measurement, in MiB."""
    space = dp.atom_domain(T=bool), dp.discrete_distance()
    measurement = dp.m.make_randomized_response_bool(prob=0.75)  # among the cheapest there are
    workload = Workload("", space, dp.max_divergence(), measurement, True)
    root = workload.ours() if contender == "ours" else workload.native_odometer()
    for _ in range(2_000):
        root(measurement)
    before = resident_mib()
    for _ in range(launches):
        root(measurement)
    return resident_mib() - before


def memory_per_1e6(contender: str, launches: int) -> float:
    command = [sys.executable, __file__, "--memory", contender, str(launches)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(output)) * 1_000_000 / launches


# --- all of it -------------------------------------------------------------------------------


def main() -> None:
    options_parser = parser(__doc__)
    options_parser.add_argument("--memory", nargs=2, metavar=("WHO", "N"), help="for the child")
    options = options_parser.parse_args()
    if options.memory:
        print(memory_here(options.memory[0], int(options.memory[1])))
        return
    sizes, started = QUICK if options.quick else FULL, perf_counter()
    print_machine()
    names: list[str] = []
    costs: list[dict[int, Cost]] = []
    longs: list[Long] = []
    filters: list[FilterCost] = []
    for workload in workloads():
        names.append(workload.name)
        workload.time(workload.floor(), BLOCK)  # the first noise draws are slower
        k_100 = short_runs(workload, 100, sizes.rounds_100)
        k_1000 = short_runs(workload, 1_000, sizes.rounds_1000)
        longs.append(long_run(workload, sizes.long[workload.name]))
        filters.append(beside_native_filter(workload, sizes.native_filter))
        costs.append({100: k_100, 1_000: k_1000, min(10_000, longs[-1].k): longs[-1].to_1e4})
        print_launches(workload.name, costs[-1], longs[-1], filters[-1])
    print_privacy_loss(names, longs)
    memory = {
        "ours": (sizes.memory_ours, memory_per_1e6("ours", sizes.memory_ours)),
        "native odometer": (sizes.memory_native, memory_per_1e6("native", sizes.memory_native)),
    }
    print_table(
        "Resident memory, one measurement launched again and again (a fresh process each)",
        ["", "launches", "MiB per 10^6"],
        [[name, *row] for name, row in memory.items()],
    )
    every = [cost for by_k in costs for cost in by_k.values()]
    figures = {
        "growth": max(long.growth for long in longs),
        "times_native_filter_at_1e4": min(one.times_at_1e4 for one in filters),
        "over_native_odometer_max": max(cost.over_odometer for cost in every),
        "over_floor": max(cost.over_floor for cost in every),
        "privacy_loss_us": max(long.later_us for long in longs),
        "mib_per_1e6": memory["ours"][1],
    }
    print(f"\n{perf_counter() - started:.0f} s in all")
    report(figures, TARGETS, estimates(sizes), options)


def estimates(sizes: Sizes) -> dict[str, str]:
    found = {}
    shorter = [f"{name} to k = {k:,} only" for name, k in sizes.long.items() if k < 100_000]
    if shorter:
        found["growth"] = "; ".join(shorter)
        found["over_native_odometer_max"] = found["over_floor"] = found["growth"]
    if sizes.native_filter < 10_000:
        found["times_native_filter_at_1e4"] = (
            f"extrapolated: native measured to k = {sizes.native_filter:,}, a straight line beyond"
        )
    if sizes.memory_ours < 1_000_000:
        found["mib_per_1e6"] = f"scaled from {sizes.memory_ours:,} launches"
    return found


def print_launches(name: str, costs: dict[int, Cost], long: Long, native: FilterCost) -> None:
    rows: list[list[Any]] = []
    for k, cost in costs.items():
        native_filter, ours_there = native.at.get(k, (None, None))
        times = native_filter / ours_there if native_filter and ours_there else None
        rows.append([k, cost.floor, cost.ours, cost.odometer, native_filter])
        rows[-1] += [cost.over_floor, cost.over_odometer, times]
    if long.k > 10_000:
        rows.append([long.k, None, long.ours, None, None, None, None, None])
    print_table(
        f"{name}: mean cost of the first k launches, µs (odometer, filter: OpenDP's)",
        list(HEADER),
        rows,
    )
    print(
        f"  ours, {long.k:,} launches over 1,000 (fresh filters in between): {long.growth:.3f}\n"
        f"  OpenDP's filter over ours at k = 10,000: "
        + ("" if native.estimated else f"{native.times_at_1e4:.1f} measured; ")
        + f"{native.extrapolated:.1f} extrapolated\n"
        f"  from its first {QUICK.native_filter:,} launches, where each adds {native.slope:.2f} µs "
        f"to the next;\n  over the floor, the most that any accounting could reach: "
        f"{native.times_at_1e4 * native.at[max(native.at)][1] / long.to_1e4.floor:.1f}"
    )


def print_privacy_loss(names: list[str], longs: list[Long]) -> None:
    rows = [
        [name, long.k, long.first_us, long.second_us, long.later_us, long.native_loss_us]
        for name, long in zip(names, longs, strict=True)
    ]
    print_table(
        "privacy_loss(d_in), µs: the worse of the filter's own d_in and another one",
        ["", "after", "first", "second", "later", "native, after <= 10^4"],
        rows,
    )


if __name__ == "__main__":
    main()
