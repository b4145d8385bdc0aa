"""Heavy launches from two threads through one filter: OpenDP's calls release the interpreter lock.

    python benchmarks/threads.py [--quick] [--json]

The peer is OpenDP's odometer, whose queryables may be used by one thread at a time: it runs from
one thread here.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from statistics import median

os.environ["RUST_BACKTRACE"] = "0"

import opendp.prelude as dp
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr

import opendp_concurrent as oc

dp.enable_features("contrib", "honest-but-curious")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 50 seconds")
    parser.add_argument("--json", action="store_true", help="figures as JSON on the last line")
    arguments = parser.parse_args()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    measurement = (
        space >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=1000.0)
    )
    data = [7] * 1_000_000
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    ours = oc.make_concurrent_filter(odometer, 1, 1e9)(data)
    native = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())(data)
    pointer = py_to_c(data, AnyObjectPtr, measurement.input_carrier_type)

    def bare(one):
        return one(pointer)

    launches, rounds = (40, 25) if arguments.quick else (40, 100)

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
        ("native odometer", 1): native,
    }
    rates = {subject: [] for subject in subjects}
    for _ in range(rounds):
        for (name, threads), launch in subjects.items():
            rates[name, threads].append(throughput(launch, threads))
        time.sleep(0.2)  # shared machines take a core back from who uses both for long
    print("launches per second, best and median of the rounds")
    for (name, threads), seen in rates.items():
        print(f"{name:>18}, {threads} thread(s): {max(seen):8.1f} {median(seen):8.1f}")
    speedup = max(rates["ours", 2]) / max(rates["ours", 1])
    limit = max(rates["bare measurement", 2]) / max(rates["bare measurement", 1])
    print(f"speedup_2: {speedup:.3f} (the bare measurement, without any accounting: {limit:.3f})")
    if arguments.json:
        print(json.dumps({"speedup_2": speedup, "speedup_2_bare": limit}))


if __name__ == "__main__":
    main()
