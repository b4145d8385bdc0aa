"""What a launch costs end to end on each handle, at 10^5 rows: the first one, and later ones.

    python benchmarks/handles.py [--quick] [--json] [--save]

All launches are of a count with Laplace noise. The floor is the bare measurement, invoked through
OpenDP on data that are converted already. ``invoke`` passes the rows to the handle's measurement,
which converts them, and ``first`` is the first launch, which may cut them. Later launches are taken
in small alternating rounds, since machines are noisy, and ratios are of medians.
"""

from __future__ import annotations

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
ROWS, HUGE = 10**5, 1e9
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
COUNT = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
TENS = oc.c.by_key(lambda record: record // ROWS)
TARGETS = {
    "block_over_filter": ("at most", 3.0),
    "limit_over_filter": ("at most", 3.0),
    "filter_over_floor": ("at most", 1.25),
    "invoke_over_native": ("at most", 1.5),
}


def odometer(space=SPACE):
    return oc.make_concurrent_odometer(*space, PURE)


def filtered(space=SPACE):
    return oc.make_concurrent_filter(odometer(space), 1, HUGE)


def by_block(keys=(0,)):
    return oc.c.make_block_filter(odometer(), 1, HUGE, blocks=TENS, keys=keys)


def limit(bound):
    return oc.c.make_limited(odometer(), 1, bound, label="ann")


def on_blocks(root):
    return lambda: root([0], COUNT)


def parts(handle):
    """The launches below one part, a filter."""
    return launches(handle(0))


def launches(handle):
    return lambda: handle(COUNT)


def sums(handle):
    query = oc.handles.NoisySum(lambda rows: rows, bound=1.0, scale=1e6)
    return lambda: handle(query)


def context(handle):
    return lambda: handle.query(epsilon=0.1).count().laplace().release()


def contexts(make):
    return lambda rows: make(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1e6),
        domain=SPACE[0],
    )


# what makes the handle of some rows, and what is then called again and again
HANDLES = {
    "filter": (filtered(), launches),
    "odometer": (odometer(), launches),
    "child filter": (filtered(), lambda root: launches(root(filtered_by(1e6)))),
    "child odometer": (filtered(), lambda root: launches(root(odometer()))),
    "limit": (filtered(), lambda root: launches(root(limit(HUGE / 2)))),
    "block filter": (by_block(), on_blocks),
    "limit on blocks": (by_block(), lambda root: on_blocks(root(limit(HUGE / 2)))),
    "part": (
        oc.c.make_parallel_composition(*SPACE, TENS, {0: filtered()}),
        parts,
    ),
    "individual filter": (
        oc.m.make_individual_filter(*SPACE, PURE, d_out=HUGE),
        sums,
    ),
    "context": (contexts(oc.concurrent_context), context),
}
NATIVE = {
    "OpenDP's odometer": (dp.c.make_fully_adaptive_composition(*SPACE, PURE), launches),
    "OpenDP's context": (contexts(dp.Context.compositor), context),
}
SLOW = {"individual filter", "context", "OpenDP's context"}  # per launch; fewer are taken


def filtered_by(bound):
    return oc.make_concurrent_filter(odometer(), 1, bound)


def seconds(call, times):
    """Seconds of each of some calls: another process may delay a few of them."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found


def opened(make, use, rows):
    """Milliseconds of passing the rows and of the first launch, and what is called later."""
    start = time.perf_counter()
    handle = make(rows)
    passed = time.perf_counter()
    call = use(handle)
    call()
    return 1e3 * (passed - start), 1e3 * (time.perf_counter() - passed), call


def later(calls, rounds):
    """Median microseconds of each call, in alternating rounds."""
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name] += seconds(call, 2 if name in SLOW else 50)
    return {name: 1e6 * median(found) for name, found in times.items()}


def main():
    options = parser(__doc__.splitlines()[0]).parse_args()
    print_machine()
    rows = np.arange(ROWS).tolist()
    pointer = _native.to_pointer(rows, COUNT.input_carrier_type)
    calls, costs = {"bare": lambda: COUNT(pointer)}, {"bare": (None, None)}
    for name, (make, use) in {**HANDLES, **NATIVE}.items():
        passed, first, calls[name] = opened(make, use, rows)
        costs[name] = passed, first
    found = later(calls, 20 if options.quick else 100)
    print_table(
        f"One launch on {ROWS:,} rows",
        ["handle", "invoke, ms", "first, ms", "later, us", "over the filter"],
        [[name, *costs[name], us, us / found["filter"]] for name, us in found.items()],
    )
    figures = {
        "block_over_filter": found["block filter"] / found["filter"],
        "block_limit_over_filter": found["limit on blocks"] / found["filter"],
        "limit_over_filter": found["limit"] / found["filter"],
        "filter_over_floor": found["filter"] / found["bare"],
        "filter_over_native_odometer": found["filter"] / found["OpenDP's odometer"],
        "context_over_native": found["context"] / found["OpenDP's context"],
        "invoke_over_native": costs["filter"][0] / costs["OpenDP's odometer"][0],
        "first_on_block_ms": costs["block filter"][1],
        "first_on_part_ms": costs["part"][1],
    }
    report(figures, TARGETS, {}, options)


if __name__ == "__main__":
    main()
