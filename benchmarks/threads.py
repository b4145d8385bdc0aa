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
    barrier, refused = Barrier(threads + 1), []

    def work() -> None:
        barrier.wait()
        for _ in range(each):
            try:
                launch()
            except dp.OpenDPException:
                refused.append(1)
        barrier.wait()

    workers = [Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = perf_counter()
    barrier.wait()
    seconds = perf_counter() - start
    for worker in workers:
        worker.join()
    return seconds, len(refused)


def speedups(launch: Callable[[], Any], rounds: int, each: int) -> list[tuple[float, float]]:
    """Launches per second from one thread and from two, round after round."""
    pairs = []
    for index in range(rounds):
        seconds = {}
        for threads in (1, 2) if index % 2 else (2, 1):
            seconds[threads], refused = elapsed(launch, threads, each)
            if refused:
                raise RuntimeError(f"{refused} launches were refused")
        pairs.append((each / seconds[1], 2 * each / seconds[2]))
    return pairs


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
    rounds, each = (11, 60) if options.quick else (41, 200)
    print_machine()
    measurement, pointer = heavy()
    odometer = oc.make_concurrent_odometer(*SPACE, MEASURE)
    root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1e9)(pointer)
    rows: list[list[Any]] = []
    ours = 0.0
    for name, launch in {
        "bare measurement": lambda: measurement(pointer),
        "one filter, ours": lambda: root(measurement),
    }.items():
        elapsed(launch, 2, 10)
        pairs = speedups(launch, rounds, each)
        one, two = (median(column) for column in zip(*pairs, strict=True))
        ours = median(two / one for one, two in pairs)
        rows.append([name, one, two, ours, 0])
    found = native(rounds * each // 4)
    if found:
        ratio = found["two"] / found["one"]
        refused = f"{found['refused']:,.0f} of {found['asked']:,.0f}"
        rows.append(["one odometer, native", found["one"], found["two"], ratio, refused])
    rows = [[*row[:4], str(row[4])] for row in rows]
    print_table(
        f"Answers per second, sum over 10^6 rows ({rounds} rounds of {each} launches a thread)",
        ["", "1 thread", "2 threads", "2 over 1", "refused"],
        rows,
    )
    report({"speedup_2": ours}, TARGETS, {}, options)


if __name__ == "__main__":
    main()
