"""f-DP composition here against dp-accounting's PLD accountant, and prv-accountant if it is there.

    pip install 'opendp-concurrent[bench]'
    python benchmarks/tradeoff.py [--quick] [--json] [--save]

``hetero_200``: 100 Gaussians and 100 Laplaces, all different, one after another; ε at δ = 1e-6 at
the end. ``running_200``: the same with ε asked after each, over a tenth of dp-accounting's seconds
for the end alone. Both sides start from parameters; ours merges Gaussians by itself. dp-accounting
has its defaults, a grid of 1e-4; its optimistic estimate is the other end of what it knows.
``laplace_1e4``: 10,000 equal ones. ``rr_1e-40``: δ of 1,000 randomized responses far out, against
the exact sum. ``calibration``: largest parameters for 10,000 launches within (0.01, 1e-6), by
bisection, Laplace and Gaussian together; google/dpsynth#71 reports 75 GB and 45 minutes for that.
``subsampled_1000``: Poisson-sampled Gaussian steps, both directions. ``sampled_grid``: 100 seeded
points with rates from 1e-2 to 1e-6: how many brackets are wider than 1 %; 50 with Laplace noise.
``sampled_over_pld_max``: our upper ε over dp-accounting's. ``distinct_300``: different sampled
steps. ``units_of_sampled_s``: how many units a sampled product is worth. ``smallest_sigma``:
the smallest noise at rates from 1e-3 to 1e-6: of how many 1 % less is not shown to exceed the
target, and the seconds of the slowest. ``discrete_300``:
different discrete Gaussians, one after another; and the memory for wide ones. ``ladder_admitted``:
launches under (ε, δ). Growth: seconds and widths by the number of launches. Times are medians.
Ends with an error if a bracket does not overlap that of dp-accounting, or misses an exact sum.
"""

from __future__ import annotations

import math
import os
import random
import resource
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from itertools import pairwise
from statistics import median
from typing import Any

from _timing import parser, print_machine, print_table, report

import opendp_concurrent as oc

try:
    import mpmath
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld
except ImportError as error:
    raise SystemExit(
        f"{error}: the peer is missing; pip install 'opendp-concurrent[bench]'"
    ) from error

try:
    import prv_accountant as prv

    PRV = f"prv-accountant {version('prv-accountant')}"
except Exception as error:  # old, and may fail anywhere with a new NumPy or SciPy
    prv = None
    PRV = f"prv-accountant cannot be imported: {type(error).__name__}: {error}"

F = oc.TradeoffFunction
DELTA, LAUNCHES, MANY = 1e-6, 200, 10_000
PARAMETERS = [0.05 + 0.001 * i for i in range(LAUNCHES // 2)]
OPTIMISTIC = {"pessimistic_estimate": False, "use_connect_dots": False}  # dots have no such side
PRV_ERROR = 0.01  # absolute, in ε
TARGETS = {
    "hetero_200_speedup": ("at least", 10.0),
    "hetero_200_relative_width": ("at most", 1e-6),
    "running_200_seconds_ratio": ("at most", 3.0),
    "laplace_1e4_relative_width": ("at most", 1e-6),
    "rr_1e-40_relative_error": ("at most", 1e-9),
    "subsampled_1000_speedup": ("at least", 10.0),
    "subsampled_relative_width": ("at most", 1e-2),
    "sampled_grid_wider_than_1_percent": ("at most", 0.0),
    "sampled_laplace_grid_wider_than_1_percent": ("at most", 0.0),
    "sampled_over_pld_max": ("at most", 1.01),
    "distinct_300_laplace_time_ratio": ("at most", 1.0),
    "distinct_300_gaussian_time_ratio": ("at most", 1.0),
    "units_of_sampled_s": ("at most", 1.0),
    "smallest_sigma_farther_than_1_percent": ("at most", 0.0),
    "smallest_sigma_s": ("at most", 2.0),
    "discrete_300_time_ratio": ("at most", 1.0),
    "discrete_300_relative_width": ("at most", 1e-6),
    "discrete_3000_mib": ("at most", 100.0),
    "ladder_admitted_0.01_1_1e-6": ("at least", 562.0),
    "calibration_seconds": ("at most", 10.0),
    "calibration_mib": ("at most", 1024.0),
}


def timed(function: Callable[[], Any], repetitions: int) -> tuple[Any, float]:
    """The answer, and the median of the seconds."""
    seconds = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - begin)
    return answer, median(seconds)


def relative_width(bounds: Any) -> float:
    return float(bounds.width / bounds.upper)


def bracket(bounds: Any) -> str:
    return f"[{bounds.lower:.10f}, {bounds.upper:.10f}]"


def outside(value: float, bounds: Any) -> float:
    """How far a value is above (below: negative) the bracket, relative to it."""
    end = min(max(value, bounds.lower), bounds.upper)
    return (value - end) / bounds.upper


def must(holds: bool, what: str) -> None:
    """End with an error if something that is claimed does not hold."""
    if not holds:
        raise SystemExit(f"WRONG: {what}")


def prv_epsilon(mechanisms: Callable[[], Any], counts: list[int]) -> tuple[Any, float | None, str]:
    """prv-accountant's bracket and seconds; or None, and why."""
    if prv is None:
        return None, None, PRV
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            accountant = prv.PRVAccountant(mechanisms(), PRV_ERROR, DELTA * 1e-3, counts)
            found = accountant.compute_epsilon(DELTA, counts)
    except Exception as error:
        return None, None, f"{PRV} does not run here: {type(error).__name__}: {error}"
    return found, time.perf_counter() - begin, ""


# --- 1 and 2: different mechanisms, at the end and on the way ------------------------------------


def ours_at_end() -> Any:
    f = F.identity()
    for parameter in PARAMETERS:
        f = f.compose(F.gaussian(parameter))
        f = f.compose(F.laplace(parameter))
    return f.epsilon_bounds(DELTA)


def ours_on_the_way() -> list[Any]:
    f, found = F.identity(), []
    for parameter in PARAMETERS:
        for g in (F.gaussian(parameter), F.laplace(parameter)):
            f = f.compose(g)
            found.append(f.epsilon_bounds(DELTA))
    return found


def peer(*, running: bool = False, **options: Any) -> list[float]:
    """ε by dp-accounting: after each launch, or only the last."""
    total, found = None, []
    for parameter in PARAMETERS:
        for make in (pld.from_gaussian_mechanism, pld.from_laplace_mechanism):
            one = make(1 / parameter, **options)
            total = one if total is None else total.compose(one)
            if running:
                found.append(total.get_epsilon_for_delta(DELTA))
    return found or [total.get_epsilon_for_delta(DELTA)]


def optimistic() -> float:
    return peer(**OPTIMISTIC)[-1]


def heterogeneous(quick: bool) -> tuple[dict[str, float], float]:
    """Figures of section 1; and the peer's seconds."""
    bounds, first = timed(ours_at_end, 1)
    peers, seconds, theirs = [], [], []
    for _ in range(1 if quick else 3):  # in turn, so that both meet the same load
        found, took = timed(lambda: peer()[-1], 1)
        theirs.append(took)
        peers.append(found)
        seconds += [timed(ours_at_end, 1)[1] for _ in range(7)]
    low, low_seconds = timed(optimistic, 1)
    ours, its, high = median(seconds), median(theirs), peers[-1]
    print_table(
        f"1. {LAUNCHES} different mechanisms, ε at δ = {DELTA:g}",
        ["", "seconds", "ratio", "ε", "relative width"],
        [
            ["ours", f"{ours:.4f}", "1", bracket(bounds), f"{relative_width(bounds):.1e}"],
            ["dp-accounting", f"{its:.3f}", f"{its / ours:.0f}", f"{high:.10f}", "one side"],
            [
                "with optimistic",
                f"{its + low_seconds:.3f}",
                f"{(its + low_seconds) / ours:.0f}",
                f"[{low:.10f}, {high:.10f}]",
                f"{(high - low) / high:.1e}",
            ],
        ],
    )
    print(
        f"  ours: first {first:.4f}, least {min(seconds):.4f}, most {max(seconds):.4f} s;", end=""
    )
    print(f" dp-accounting: least {min(theirs):.3f}, most {max(theirs):.3f} s;", end="")
    print(f" its pessimistic ε is {outside(high, bounds):.1e} above our bracket")
    must(low <= bounds.upper and bounds.lower <= high, "brackets of hetero_200 do not overlap")
    if not quick:
        found, took, why = prv_epsilon(
            lambda: [
                mechanism
                for parameter in PARAMETERS
                for mechanism in (prv.GaussianMechanism(1 / parameter), _prv_laplace(parameter))
            ],
            [1] * LAUNCHES,
        )
        print(f"  {why}" if found is None else f"  {PRV}: {found} in {took:.1f} s")
    figures = {
        "hetero_200_speedup": its / ours,
        "hetero_200_relative_width": relative_width(bounds),
    }
    return figures, its


def _prv_laplace(parameter: float) -> Any:
    return prv.LaplaceMechanism(parameter)


def on_the_way(quick: bool, peer_seconds: float) -> dict[str, float]:
    found, ours = timed(ours_on_the_way, 5 if quick else 15)
    _, at_end = timed(ours_at_end, 7)
    target, widest = peer_seconds / 10, max(map(relative_width, found))
    rows = [
        ["ours, ε after each launch", f"{ours:.4f}", "1"],
        ["a tenth of dp-accounting at the end", f"{target:.4f}", f"{ours / target:.3f}"],
        ["dp-accounting at the end", f"{peer_seconds:.3f}", f"{ours / peer_seconds:.4f}"],
        ["ours at the end", f"{at_end:.4f}", f"{ours / at_end:.2f}"],
    ]
    if not quick:
        theirs, took = timed(lambda: peer(running=True), 1)
        rows.append(["dp-accounting, ε after each", f"{took:.3f}", f"{ours / took:.4f}"])
        beside = [outside(*pair) for pair in zip(theirs, found, strict=True)]
    print_table(f"2. ε after each of {LAUNCHES} launches", ["", "seconds", "ours over it"], rows)
    print(f"  largest relative width on the way {widest:.1e}")
    if not quick:
        print(f"  dp-accounting is {min(beside):+.1e} to {max(beside):+.1e} beside our brackets")
    must(all(a.lower <= b.upper for a, b in pairwise(found)), "ε falls")
    return {"running_200_seconds_ratio": ours / target, "running_200_relative_width": widest}


# --- 3: equal mechanisms -------------------------------------------------------------------------


def homogeneous(quick: bool) -> dict[str, float]:
    mu, epsilon = 0.6 / math.sqrt(MANY), 0.01
    noise = 2 / (1 + math.exp(epsilon))
    pure = common.DifferentialPrivacyParameters(epsilon, 0.0)
    cases: list[tuple[str, str, Callable[[], Any], Callable[..., Any], Any]] = [
        (
            "Gaussian, μ = 0.6 in all",
            "from_gaussian_mechanism",
            lambda: F.gaussian(mu),
            lambda **options: pld.from_gaussian_mechanism(1 / mu, **options),
            lambda: prv.GaussianMechanism(1 / mu),
        ),
        (
            "Laplace, ε = 0.01",
            "from_laplace_mechanism",
            lambda: F.laplace(epsilon),
            lambda **options: pld.from_laplace_mechanism(1 / epsilon, **options),
            lambda: prv.LaplaceMechanism(epsilon),
        ),
        (
            "randomized response, ε = 0.01",
            "from_randomized_response",
            lambda: F.pure(epsilon),
            lambda **options: pld.from_randomized_response(noise, 2, **_without_dots(options)),
            lambda: prv.PureDPMechanism(epsilon),
        ),
        (
            "the same",
            "from_privacy_parameters",
            lambda: F.pure(epsilon),
            lambda **options: None if options else pld.from_privacy_parameters(pure),
            None,
        ),
    ]
    rows, notes, figures = [], [], {}
    for name, route, ours, theirs, other in cases:
        bounds, mine = timed(lambda ours=ours: ours().power(MANY).epsilon_bounds(DELTA), 15)
        high, its = timed(lambda theirs=theirs: _composed(theirs()), 1 if quick else 5)
        low = _composed(theirs(**OPTIMISTIC))
        rows.append(
            [
                name,
                f"{mine:.4f}",
                bracket(bounds),
                f"{relative_width(bounds):.1e}",
                f"dp-accounting {route}",
                f"{its:.3f}",
                f"{mine / its:.4f}",
                f"{high:.10f}",
                None if low is None else f"{(high - low) / high:.1e}",
                f"{outside(high, bounds):+.1e}",
            ]
        )
        must(low is None or low <= bounds.upper, f"{name}: below the optimistic estimate")
        if other is not None and not (quick and "Laplace" not in name):
            found, took, why = prv_epsilon(lambda other=other: [other()], [MANY])
            if found is None:
                notes.append(f"{name}: {why}")
            else:
                last = [
                    f"{took:.3f}",
                    f"{mine / took:.4f}",
                    f"{found[2]:.10f}",
                    f"{(found[2] - found[0]) / found[2]:.1e}",
                    f"{outside(found[2], bounds):+.1e}",
                ]
                rows.append(["", "", "", "", PRV, *last])
        if route == "from_laplace_mechanism":
            figures["laplace_1e4_relative_width"] = relative_width(bounds)
            figures["laplace_1e4_time_ratio"] = mine / its
    # of the last case
    above, below = (exact_delta(epsilon, MANY, end) for end in bounds)
    must(below <= DELTA <= above, "ε of randomized responses")
    missed = float(exact_delta(epsilon, MANY, high) / DELTA - 1)
    notes.append("our ε of randomized responses holds the exact one (binomial sum, 60 digits);")
    notes.append(
        f"that of from_privacy_parameters is {'no' if missed > 0 else 'a'} bound: "
        f"exact δ / {DELTA:g} - 1 = {missed:.1e} there"
    )
    header = ["10,000 times", "our s", "our ε", "width", "peer", "its s", "ours / it", "upper ε"]
    print_table(
        f"3. {MANY:,} equal mechanisms, ε at δ = {DELTA:g}",
        [*header, "its width", "beside ours"],
        rows,
    )
    print("  " + "\n  ".join(notes))
    return figures


def _without_dots(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "use_connect_dots"}


def _composed(distribution: Any) -> float | None:
    if distribution is None:
        return None
    return float(distribution.self_compose(MANY).get_epsilon_for_delta(DELTA))


# --- 4: far out ----------------------------------------------------------------------------------


def exact_delta(epsilon0: float, k: int, epsilon: float) -> Any:
    """δ at ε of k randomized responses with ε0: the binomial sum, to 60 digits."""
    with mpmath.workdps(60):
        one, at = mpmath.mpf(epsilon0), mpmath.mpf(epsilon)
        total = mpmath.mpf(0)
        term = (1 + mpmath.exp(-one)) ** -k  # all k answers true
        odds = mpmath.exp(-one)
        for lies in range(k + 1):
            loss = (k - 2 * lies) * one
            if loss <= at:
                break
            total += term * -mpmath.expm1(at - loss)
            term *= odds * (k - lies) / (lies + 1)
        return total


def far_out() -> dict[str, float]:
    epsilon0, k = 0.1, 1_000
    composed = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon0, 0.0))
    composed = composed.self_compose(k)
    rows, figures = [], {}
    for epsilon in (20.0, 33.0, 45.74, 57.0, 68.47):
        (bounds, seconds), exact = (
            timed(lambda e=epsilon: F.pure(epsilon0).power(k).delta_bounds(e), 5),
            exact_delta(epsilon0, k, epsilon),
        )
        must(bounds.lower <= exact <= bounds.upper, f"δ({epsilon}) of randomized responses")
        error = float(max(abs(bounds.lower - exact), abs(bounds.upper - exact)) / exact)
        theirs = float(composed.get_delta_for_epsilon(epsilon))
        rows.append(
            [
                f"{epsilon:g}",
                mpmath.nstr(exact, 12),
                f"{error:.1e}",
                f"{seconds:.4f}",
                f"{theirs:.3g}",
                f"{float(abs(theirs - exact) / exact):.1e}",
            ]
        )
        if epsilon == 45.74:
            figures["rr_1e-40_relative_error"] = error
        figures["rr_1e-100_relative_error"] = error  # of the last
    print_table(
        "4. δ(ε) of 1,000 randomized responses, ε0 = 0.1",
        ["ε", "exact δ", "our error", "our s", "dp-accounting", "its error"],
        rows,
    )
    return figures


# --- 5: calibration ------------------------------------------------------------------------------


def largest(make: Callable[[float], Any]) -> float:
    """Largest parameter with which 10,000 launches stay within (0.01, 1e-6), to the last bit."""
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return low
        if make(middle).power(MANY).epsilon(DELTA) <= 0.01:
            low = middle
        else:
            high = middle


def _resident() -> float:
    """Most memory so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def calibration(quick: bool) -> dict[str, float]:
    rows, seconds, most = [], 0.0, 0.0
    for name, make in (("Laplace, ε", F.laplace), ("Gaussian, μ", F.gaussian)):
        before = _resident()
        found, took = timed(lambda make=make: largest(make), 1 if quick else 3)
        grown = _resident() - before
        tracemalloc.start()
        if quick:
            make(found).power(MANY).epsilon(DELTA)  # the last step; steps leave nothing behind
        else:
            largest(make)
        traced = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        reached = make(found).power(MANY).epsilon_bounds(DELTA)
        seconds, most = seconds + took, max(most, grown, traced)
        rows.append(
            [
                name,
                f"{found:.12e}",
                f"{1 / found:,.3f}",
                f"{reached.lower:.12f}",
                f"{took:.2f}",
                f"{grown:.1f}",
                f"{traced:.1f}",
            ]
        )
    header = ["", "largest", "noise scale", "ε reached, lower", "seconds", "resident MiB"]
    print_table(
        f"5. Largest parameter for {MANY:,} launches within (0.01, {DELTA:g})",
        [*header, "traced MiB"],
        rows,
    )
    return {"calibration_seconds": seconds, "calibration_mib": most}


# --- 6: growth -----------------------------------------------------------------------------------


def _all_different(k: int) -> Any:
    f = F.identity()
    for i in range(k):
        f = f.compose(F.laplace((0.5 + i / k) / math.sqrt(k)))
    return f


def growth(quick: bool) -> dict[str, float]:
    rows, widest = [], 0.0
    kinds: tuple[tuple[int, Callable[[int], Any]], ...] = (
        (10**6, lambda k: F.laplace(1 / math.sqrt(k)).power(k)),
        (10**6, lambda k: F.pure(1 / math.sqrt(k)).power(k)),
        (10**2 if quick else 10**3, _all_different),
    )
    for power in range(1, 7):
        k, row = 10**power, [f"{10**power:,}"]
        for most, make in kinds:
            if k > most:
                row += [None, None]
                continue
            bounds, seconds = timed(
                lambda make=make, k=k: make(k).epsilon_bounds(DELTA), 3 if quick else 7
            )
            row += [f"{seconds * 1e3:.2f}", f"{relative_width(bounds):.1e}"]
            widest = max(widest, relative_width(bounds))
        rows.append(row)
    print_table(
        f"6. k launches of about 1 / sqrt(k), ε at δ = {DELTA:g}",
        ["k", "Laplace ms", "width", "response ms", "width", "k different Laplaces ms", "width"],
        rows,
    )
    return {"growth_relative_width": widest}


# --- 7 to 9: subsampled steps, discrete Gaussians, and a ladder of pairs -------------------------


def subsampled(quick: bool) -> dict[str, float]:
    """1,000 steps with σ = 1 at rate 0.01, both directions on both sides."""
    steps, rate, delta = 1_000, 0.01, 1e-5
    ours: list[float] = []
    theirs: list[float] = []

    def peer_steps() -> float:
        one = pld.from_gaussian_mechanism(1.0, sampling_prob=rate).self_compose(steps)
        return float(one.get_epsilon_for_delta(delta))

    for _ in range(1 if quick else 3):  # in turn, so that both meet the same load
        for _ in range(3):
            sigma = 1.0 + 1e-9 * len(ours)  # another one each time: quadratures are remembered
            session = oc.fdp.Session.subsampled_gaussian(sigma, rate).power(steps)
            ours.append(timed(lambda session=session: session.epsilon_bounds(delta), 1)[1])
        theirs.append(timed(peer_steps, 1)[1])
    bounds = oc.fdp.Session.subsampled_gaussian(1.0, rate).power(steps).epsilon_bounds(delta)
    high = peer_steps()
    must(bounds.lower <= high, "subsampled: above the pessimistic estimate")
    mine, its = median(ours), median(theirs)
    print_table(
        f"7. {steps:,} Poisson-sampled Gaussian steps, ε at δ = {delta:g}",
        ["", "seconds", "ratio", "ε", "relative width"],
        [
            ["ours", f"{mine:.4f}", "1", bracket(bounds), f"{relative_width(bounds):.1e}"],
            ["dp-accounting", f"{its:.3f}", f"{its / mine:.0f}", f"{high:.10f}", "one side"],
        ],
    )
    print(f"  its pessimistic ε is {outside(high, bounds):+.1e} beside our bracket")
    return {
        "subsampled_1000_speedup": its / mine,
        "subsampled_relative_width": relative_width(bounds),
    }


def _grid_of(kind: str, points: int) -> list[tuple[float, float, int, float]]:
    """Noise, rate, uses and δ: seeded."""
    draw = random.Random(f"{kind} {points}")
    return [
        (
            draw.uniform(0.6, 5.0) if kind == "gaussian" else draw.uniform(0.1, 3.0),
            10 ** draw.uniform(-6.0, -2.0),
            int(10 ** draw.uniform(0.0, 6.0)),
            draw.choice((1e-5, 1e-8)),
        )
        for _ in range(points)
    ]


def _sampled(kind: str) -> Callable[[float, float], Any]:
    session = oc.fdp.Session
    return session.subsampled_gaussian if kind == "gaussian" else session.subsampled_laplace


def rare(quick: bool) -> dict[str, float]:
    """Brackets over a grid of sampled noise, and dp-accounting's upper end at some points of it."""
    rows, wide, over, slowest = [], {}, 0.0, 0.0
    for kind, points in (("gaussian", 100), ("laplace", 50)):
        wide[kind], widest, begin = 0, 0.0, time.perf_counter()
        compared = 0
        for noise, rate, uses, delta in _grid_of(kind, points // (10 if quick else 1)):
            one = _sampled(kind)(noise, rate).power(uses)
            bounds, took = timed(lambda one=one, delta=delta: one.epsilon_bounds(delta), 1)
            width = relative_width(bounds) if bounds.upper else 0.0
            slowest, widest = max(slowest, took), max(widest, width)
            wide[kind] += width > 0.01
            if compared < (1 if quick else 12):
                compared += 1
                make = getattr(pld, f"from_{kind}_mechanism")
                scale = noise if kind == "gaussian" else 1 / noise
                peer_pld = make(scale, sampling_prob=rate).self_compose(uses)
                high = float(peer_pld.get_epsilon_for_delta(delta))
                must(bounds.lower <= high, f"{kind}: above the pessimistic estimate")
                over = max(over, bounds.upper / high if high > 0.0 else 0.0)
        seconds = time.perf_counter() - begin
        rows.append([kind, points, wide[kind], f"{widest:.1e}", f"{seconds:.1f}"])
    print_table(
        "10. Sampled noise, rates 1e-2 to 1e-6, 1 to 10^6 uses",
        ["noise", "points", "wider than 1 %", "widest", "s, with dp-accounting"],
        rows,
    )
    print(f"  slowest bracket {slowest:.2f} s; our upper ε is at most {over:.6f} times its")
    return {
        "sampled_grid_wider_than_1_percent": float(wide["gaussian"]),
        "sampled_laplace_grid_wider_than_1_percent": float(wide["laplace"]),
        "sampled_over_pld_max": over,
    }


def distinct(quick: bool) -> dict[str, float]:
    """300 different sampled steps, both directions on both sides; and units of a product."""
    sizes = [(0.5 + 0.001 * i, 0.01 + 1e-5 * i) for i in range(50 if quick else 300)]
    rows, figures = [], {}
    for kind in ("laplace", "gaussian"):
        make = getattr(pld, f"from_{kind}_mechanism")

        def ours(kind: str = kind) -> Any:
            whole = oc.fdp.Session()
            for size, rate in sizes:
                whole = whole.compose(_sampled(kind)(size if kind == "laplace" else 1 / size, rate))
            return whole.epsilon_bounds(DELTA)

        def peer_epsilon(make: Callable[..., Any] = make) -> float:
            total = None
            for size, rate in sizes:
                one = make(1 / size, sampling_prob=rate)
                total = one if total is None else total.compose(one)
            return float(total.get_epsilon_for_delta(DELTA))

        bounds, first = timed(ours, 1)
        mine, theirs = [first], []
        for _ in range(1 if quick else 2):
            high, took = timed(peer_epsilon, 1)
            theirs.append(took)
        must(bounds.lower <= high, f"distinct {kind}: above the pessimistic estimate")
        ratio = median(mine) / median(theirs)
        width = relative_width(bounds)
        row = [kind, f"{median(mine):.2f}", f"{median(theirs):.2f}", f"{ratio:.3f}"]
        rows.append([*row, bracket(bounds), f"{width:.1e}", f"{high:.10f}"])
        figures[f"distinct_300_{kind}_time_ratio"] = ratio
        figures[f"distinct_300_{kind}_relative_width"] = width
    print_table(
        f"11. {len(sizes)} different sampled steps, ε at δ = {DELTA:g}",
        ["noise", "our s", "its s", "ours / it", "our ε", "width", "its ε"],
        rows,
    )
    steps = F.subsampled_laplace(1.0, 0.01, unit="removed").power(100)
    number, seconds = timed(lambda: steps.units(F.gaussian(0.05)), 1)
    print(f"  100 sampled Laplaces are at most {number} units of μ = 0.05, in {seconds:.2f} s")
    return {**figures, "units_of_sampled_s": seconds}


def noise(quick: bool) -> dict[str, float]:
    """The smallest noise at small rates, each against certified bounds with 1 % less."""
    rows, farther, slowest = [], 0, 0.0
    for kind in ("gaussian", "laplace"):
        for rate in (1e-3, 1e-4, 1e-5, 1e-6)[: 1 if quick else 4]:
            for epsilon, delta, steps in ((1.0, 1e-5, 10**4), (0.1, 1e-8, 10**3))[
                : 1 if quick else 2
            ]:

                def whole(
                    sigma: float, kind: str = kind, rate: float = rate, n: int = steps
                ) -> Any:
                    return _sampled(kind)(sigma if kind == "gaussian" else 1 / sigma, rate).power(n)

                find = oc.fdp.smallest_sigma
                sigma, seconds = timed(lambda: find(whole, epsilon, delta), 1)  # noqa: B023
                shown = bool(whole(sigma / 1.01).delta_bounds(epsilon).lower > delta)
                farther, slowest = farther + (not shown), max(slowest, seconds)
                name = f"{kind}, rate {rate:g}, {steps} steps, ε {epsilon:g}, δ {delta:g}"
                rows.append([name, f"{sigma:.6g}", f"{seconds:.2f}", str(shown)])
    header = ["mechanisms", "noise", "s", "1 % less is shown to exceed"]
    print_table("12. The smallest noise at small rates", header, rows)
    return {"smallest_sigma_farther_than_1_percent": float(farther), "smallest_sigma_s": slowest}


def discrete(quick: bool) -> dict[str, float]:
    """300 different discrete Gaussians, from scales; and the memory for two wide ones."""
    scales = [5 + 0.1 * i for i in range(300)]

    def ours() -> Any:
        f = F.identity()
        for scale in scales:
            f = f.compose(F.discrete_gaussian(scale))
        return f.epsilon_bounds(DELTA)

    def peer_epsilon() -> float:
        total = None
        for scale in scales:
            one = pld.from_discrete_gaussian_mechanism(scale)
            total = one if total is None else total.compose(one)
        return float(total.get_epsilon_for_delta(DELTA))

    mine, theirs = [], []
    for _ in range(1 if quick else 3):  # in turn, so that both meet the same load
        for _ in range(1 if quick else 3):
            bounds, took = timed(ours, 1)
            mine.append(took)
        high, took = timed(peer_epsilon, 1)
        theirs.append(took)
    must(bounds.lower <= high, "discrete Gaussians: above the pessimistic estimate")
    tracemalloc.start()
    F.discrete_gaussian(3_000).power(2).epsilon_bounds(DELTA)
    traced = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    ratio = median(mine) / median(theirs)
    print_table(
        f"8. {len(scales)} different discrete Gaussians, ε at δ = {DELTA:g}",
        ["", "seconds", "ours over it", "ε", "relative width"],
        [
            ["ours", f"{median(mine):.4f}", "1", bracket(bounds), f"{relative_width(bounds):.1e}"],
            ["dp-accounting", f"{median(theirs):.3f}", f"{ratio:.3f}", f"{high:.10f}", "one side"],
        ],
    )
    print(f"  its pessimistic ε is {outside(high, bounds):+.1e} beside our bracket")
    print(f"  two of scale 3,000: {traced:.1f} MiB traced")
    return {
        "discrete_300_time_ratio": ratio,
        "discrete_300_relative_width": relative_width(bounds),
        "discrete_3000_mib": traced,
    }


def admitted_by_ladder() -> dict[str, float]:
    d_out, typical = (1.0, 1e-6), [(0.01, 0.0)]
    rule = oc.accumulators.best_rule(d_out, typical, alike=True)
    count = oc.accumulators.launches_admitted(rule, d_out, typical)
    print_table("9. Launches of (0.01, 0) within (1, 1e-6)", ["rule", "launches"], [[rule, count]])
    return {"ladder_admitted_0.01_1_1e-6": float(count)}


def main() -> None:
    options = parser(__doc__).parse_args()
    print_machine()
    names = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "dp-accounting"))
    print(f"{names}; {PRV}; OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS')}")
    memory = calibration(options.quick)  # first: what is resident never falls
    figures, peer_seconds = heterogeneous(options.quick)
    figures |= on_the_way(options.quick, peer_seconds)
    figures |= homogeneous(options.quick)
    figures |= far_out()
    figures |= subsampled(options.quick)
    figures |= rare(options.quick)
    figures |= distinct(options.quick)
    figures |= noise(options.quick)
    figures |= discrete(options.quick)
    figures |= admitted_by_ladder()
    few = {f"distinct_300_{kind}_time_ratio": "the first 50" for kind in ("laplace", "gaussian")}
    estimated = few if options.quick else {}
    report({**figures, **memory, **growth(options.quick)}, TARGETS, estimated, options)


if __name__ == "__main__":
    main()
