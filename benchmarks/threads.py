"""Throughput of one filter that two threads launch on, beside one thread.

The launches are heavy and noninteractive: a sum over 10^6 rows. Rounds with one and with two
threads alternate, and the median of the ratios is reported. The bare measurement, without any
accounting, says what the machine itself gives. A native odometer may be used by one thread at a
time: it runs in a process of its own, and its refusals are counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from threading import Barrier, Thread
from time import perf_counter
from typing import Any

from _timing import parser, print_machine, print_table, report

os.environ["RUST_BACKTRACE"] = "0"  # a backtrace costs 50 ms per refused native call

import opendp.prelude as dp
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
MEASURE = dp.max_divergence()
TARGETS = {"speedup_2": ("at least", 1.6)}


def heavy() -> tuple[Any, Any]:
    """Return a sum over 10^6 rows, and the rows, converted."""
    measurement = (
        SPACE >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=100.0)
    )
    rows = [row % 200 for row in range(1_000_000)]
    return measurement, py_to_c(rows, AnyObjectPtr, measurement.input_carrier_type)


def elapsed(launch: Callable[[], Any], threads: int, each: int) -> tuple[float, int]:
    """Let every one of ``threads`` launch ``each`` times; return seconds, and launches refused."""
    barrier, refused, times = Barrier(threads), [], []

    def work() -> None:
        barrier.wait()
        times.append(perf_counter())
        for _ in range(each):
            try:
                launch()
            except dp.OpenDPException:
                refused.append(1)
        times.append(perf_counter())

    workers = [Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(times) - min(times), len(refused)


def one_and_two(launch: Callable[[], Any], each: int, first: int) -> tuple[float, float]:
    """Return launches per second from one thread and from two; ``first`` of these goes first."""
    rate = {}
    for threads in (first, 3 - first):
        seconds, refused = elapsed(launch, threads, each)
        if refused:
            raise RuntimeError(f"{refused} launches were refused")
        rate[threads] = threads * each / seconds
    return rate[1], rate[2]


def native_here(each: int) -> dict[str, float]:
    """Launches answered per second by a native odometer, and refusals, from two threads."""
    measurement, pointer = heavy()
    root = dp.c.make_fully_adaptive_composition(*SPACE, MEASURE)(pointer)
    alone, _ = elapsed(lambda: root(measurement), 1, each)
    seconds, refused = elapsed(lambda: root(measurement), 2, each)
    answered = 2 * each - refused
    return {"one": each / alone, "two": answered / seconds, "refused": refused, "asked": 2 * each}


def native(each: int) -> dict[str, float] | None:
    """Return what :func:`native_here` finds in a fresh process, None if that crashes."""
    command = [sys.executable, __file__, "--native", str(each)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if child.returncode:
        print(f"the native odometer's process ended with {child.returncode}")
        return None
    found: dict[str, float] = json.loads(child.stdout)
    return found


def main() -> None:
    options_parser = parser(__doc__)
    options_parser.add_argument("--native", type=int, metavar="N", help="for the child process")
    options = options_parser.parse_args()
    if options.native:
        print(json.dumps(native_here(options.native)))
        return
    rounds, each = (11, 60) if options.quick else (31, 100)
    print_machine()
    measurement, pointer = heavy()
    odometer = oc.make_concurrent_odometer(*SPACE, MEASURE)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1e9)(pointer)
    contenders: dict[str, Callable[[], Any]] = {
        "bare measurement": lambda: measurement(pointer),
        "one filter, ours": lambda: root(measurement),
    }
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for launch in contenders.values():
        elapsed(launch, 2, 10)
    for index in range(rounds):
        for name, launch in contenders.items():
            rates[name].append(one_and_two(launch, each, 1 + index % 2))
    rows: list[list[Any]] = []
    for name, pairs in rates.items():
        one, two = (median(column) for column in zip(*pairs, strict=True))
        rows.append([name, one, two, median(two / one for one, two in pairs), "0"])
    ours = rows[-1][3]
    found = native(200 if options.quick else 1_000)
    if found:
        ratio = found["two"] / found["one"]
        refused = f"{found['refused']:,.0f} of {found['asked']:,.0f}"
        rows.append(["one odometer, native", found["one"], found["two"], ratio, refused])
    print_table(
        f"Answers per second, sum over 10^6 rows ({rounds} rounds of {each} launches a thread)",
        ["", "1 thread", "2 threads", "2 over 1", "refused"],
        rows,
    )
    report({"speedup_2": ours}, TARGETS, {}, options)


if __name__ == "__main__":
    main()
