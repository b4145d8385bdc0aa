"""Heavy launches from two threads through one filter: OpenDP's calls release the interpreter lock.

    python benchmarks/threads.py [--quick] [--json] [--save]

The peer is OpenDP's odometer, whose queryables may be used by one thread at a time: it runs from
one thread here. ``speedup_2`` is of ours, ``speedup_2_bare`` that of the measurement without any
accounting: the most that there is to gain.
"""

from __future__ import annotations

import os
import threading
import time
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc
from opendp_concurrent import _opendp as _native

dp.enable_features("contrib", "honest-but-curious")


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    measurement = (
        space >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=1000.0)
    )
    data = [7] * 1_000_000
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    ours = oc.make_concurrent_filter(odometer, 1, 1e9)(data)
    native = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())(data)
    pointer = _native.to_pointer(data, measurement.input_carrier_type)

    def bare(one):
        return one(pointer)

    launches, rounds = (40, 25) if options.quick else (40, 100)

    def work(launch):
        for _ in range(launches):
            launch(measurement)

    def throughput(launch, threads):
        workers = [threading.Thread(target=work, args=(launch,)) for _ in range(threads)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return threads * launches / (time.perf_counter() - start)

    subjects = {
        ("bare measurement", 1): bare,
        ("bare measurement", 2): bare,
        ("ours", 1): ours,
        ("ours", 2): ours,
        ("OpenDP's odometer", 1): native,
    }
    rates: dict[tuple[str, int], list[float]] = {subject: [] for subject in subjects}
    for _ in range(rounds):
        for (name, threads), launch in subjects.items():
            rates[name, threads].append(throughput(launch, threads))
        time.sleep(0.2)  # shared machines take a core back from who uses both for long
    print_table(
        f"Launches per second over {rounds} rounds",
        ["", "threads", "best", "median"],
        [[name, threads, max(seen), median(seen)] for (name, threads), seen in rates.items()],
    )
    best = {subject: max(seen) for subject, seen in rates.items()}
    report(
        {
            "speedup_2": best["ours", 2] / best["ours", 1],
            "speedup_2_bare": best["bare measurement", 2] / best["bare measurement", 1],
            "rate_over_native_odometer": best["ours", 1] / best["OpenDP's odometer", 1],
        },
        {},
        {},
        options,
    )


if __name__ == "__main__":
    main()
