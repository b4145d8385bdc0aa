"""Compare what one budget buys here, and with OpenDP's constructors and plain noise.

No data are needed: launches are counted, errors are computed from formulas, times are measured.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from math import sqrt
from typing import Any

import opendp.prelude as dp
from scipy.stats import norm

import opendp_concurrent as oc

SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
D_OUT, EACH = (1.0, 1e-6), 0.01
QUERIES, SURE = 1000, 0.95
RHO = 0.5
LAUNCHES = 1000


def launches() -> tuple[int, int, int]:
    """Return how many Laplace counts of ε = 0.01 fit in (1, 1e-6).

    :return: under the best rule; in OpenDP's filter; in a filter of OpenDP's for zCDP whose bound
        is converted
    """
    rules = oc.accumulators.best_rule(D_OUT, [(EACH, 0.0)]), oc.accumulators.basic()
    best, basic = (oc.accumulators.launches_admitted(rule, D_OUT, [(EACH, 0.0)]) for rule in rules)
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / EACH)
    rho = dp.c.make_pureDP_to_zCDP(count).map(1)
    numbers = range(1, 1001)
    return best, basic, bisect_right(numbers, D_OUT[0], key=lambda number: _epsilon(number * rho))


def _epsilon(rho: float) -> float:
    """The ε at the δ of ``D_OUT`` that OpenDP derives from ρ."""
    zcdp = dp.c.make_adaptive_composition(*SPACE, dp.zero_concentrated_divergence(), 1, [rho])
    epsilon: float = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(zcdp), D_OUT[1]).map(1)[0]
    return epsilon


def threshold_error() -> tuple[float, float, float]:
    """Return how far counts must be from a threshold for all of 1,000 to be judged right.

    :return: by above threshold with ε = 1; by Gaussian noise on each count, at the same ρ; that ρ
    """
    scale = 2.0
    above = oc.m.make_above_threshold(
        *SPACE,
        dp.zero_concentrated_divergence(),
        d_in=1,
        scale=scale,
        query_scale=scale,
        threshold=0,
        monotone=True,
    )
    rho = above.map(1)
    deviation = sqrt(QUERIES / (2 * rho))
    ours = oc.m.sparse_vector_accuracy(scale, scale, QUERIES, beta=1 - SURE)
    return ours, deviation * float(norm.ppf((1 + SURE ** (1 / QUERIES)) / 2)), rho


def counter_error(steps: int) -> tuple[float, float, float]:
    """Return the root mean square error of a count after each of ``steps`` arrivals, at ρ = 1/2.

    :return: by a counter; by noise on each arrival, added up; by fresh noise on each count
    """
    deviation = 1 / sqrt(2 * RHO)
    return (
        deviation * oc.m.counter_rmse(steps),
        deviation * sqrt((steps + 1) / 2),
        deviation * sqrt(steps),
    )


def launch_seconds() -> tuple[float, float]:
    """Return the seconds that 1,000 counts take in our filter, and in OpenDP's."""
    return (
        _seconds(oc.make_concurrent_odometer, oc.make_concurrent_filter),
        _seconds(dp.c.make_fully_adaptive_composition, dp.c.make_privacy_filter),
    )


def _seconds(make_odometer: Any, make_filter: Any) -> float:
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    root = make_filter(make_odometer(*SPACE, dp.max_divergence()), 1, 2.0 * LAUNCHES)([1, 2, 3])
    begin = time.perf_counter()
    for _ in range(LAUNCHES):
        root(count)
    return time.perf_counter() - begin


def show(arrivals: int) -> None:
    """Print the figures of both in one table."""
    best, basic, converted = launches()
    judged, noised, rho = threshold_error()
    counter, each, fresh = counter_error(arrivals)
    seconds, native = launch_seconds()
    rows: list[tuple[str, ...]] = [
        ("with the same privacy budget", "here", "plain"),
        (f"queries of epsilon = {EACH} that fit in (1, 1e-6)", f"{best}", f"{basic}"),
        (f"  plain: OpenDP's filter. Its zCDP filter, converted at the end, admits {converted}",),
        (
            f"largest error of {QUERIES:,} comparisons with a threshold",
            f"{judged:.0f}",
            f"{noised:.0f}",
        ),
        (f"  with probability {SURE}, at rho = {rho:g}. plain: noise on each count",),
        (
            f"typical error of a count after each of {arrivals:,} arrivals",
            f"{counter:.1f}",
            f"{each:.1f}",
        ),
        (f"  at rho = {RHO}. plain: noise on each arrival; with noise on each count {fresh:.1f}",),
        (f"seconds for {LAUNCHES:,} launches", f"{seconds:.2f}", f"{native:.2f}"),
        ("  plain: OpenDP's filter",),
    ]
    for what, *figures in rows:
        print(f"{what:<54}{''.join(f'{one:>9}' for one in figures)}".rstrip())
