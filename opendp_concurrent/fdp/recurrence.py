"""How much of a characteristic function is left beyond a frequency, where some factors recur.

A pair on a lattice has a |ρ| of some period, which is even and falls up to half of it. Where
several have different periods, their product hardly recurs. An interval of frequencies is bounded
by each factor's bound at the least distance to a multiple of its period; intervals whose bound is
too large are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, pi, sqrt

import numpy as np

from .bounds import UNIT, Array
from .factor import Factor

_MOST = 2**17  # factors times intervals
_SPAN = 2.0**24  # largest over least frequency


def tail(
    recurrent: Sequence[tuple[Factor, int]],
    tau: float,
    start: float,
    normal: float,
    wanted: float,
    s2: float,
) -> tuple[float, float]:
    """Bounds on (1/π) ∫ |ρ| ω^-2 dω and on (1/π) ∫ |ρ| dω beyond ``start``.

    :param recurrent: factors with a period, and their counts
    :param normal: μ² of Gaussians; they count from ``start`` on only
    :param wanted: the first plus ``s2`` times the second at which to stop
    """
    far = _far(start, normal, wanted)
    size = max(1, int(np.ceil(np.log2(far / start))))
    edges = start * np.exp2(np.arange(size + 1.0))
    left, right = edges[:-1], edges[1:]
    last = float(edges[-1])
    # from the last edge on: |ρ| <= e^(-normal (ω² - start²) / 2)
    rest = _damping(np.array([last]), start, normal)[0]
    ends = rest / (pi * last), rest / (pi * normal * last) if normal else inf
    least = 0.05 / sqrt(sum(n * factor.variance for factor, n in recurrent) + 1e-300)
    half = {one: np.array(one.period / 2) for one, _ in recurrent}
    depth = {one: float(one.log_recurring(tau, at, at)) for one, at in half.items()}
    ordered = sorted(recurrent, key=lambda item: item[1] * depth[item[0]])
    done: list[tuple[Array, Array, Array]] = []
    spent, seen, settled = 0, 0, 0.0
    while True:
        seen += len(left)
        bound = _damping(left, start, normal)
        weight = ((1 / left - 1 / right) + (s2 * (right - left) if normal else 0.0)) / pi
        enough = wanted / (8 * seen)
        for factor, n in ordered:  # each where those before it are not enough
            some = np.flatnonzero(bound * weight > enough)
            if not some.size:
                break
            spent += some.size
            bound[some] *= np.exp(n * _recurring(factor, tau, left[some], right[some]))
        each = bound * weight
        fine = (right - left <= least) | (right - left <= 1e-9 * right)
        large = (each > enough) & ~fine
        settled += float(np.sum(each[~large]))
        stop = settled > 4 * wanted or settled + float(np.sum(each[large])) <= wanted
        if stop or not np.any(large) or spent > _MOST:
            done.append((left, right, bound))
            break
        done.append((left[~large], right[~large], bound[~large]))
        left, right = left[large], right[large]
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    left, right, bound = (np.concatenate(part) for part in zip(*done, strict=True))
    by_square = float(np.sum(bound * ((right - left) / left / right))) / pi
    plain = float(np.sum(bound * (right - left))) / pi
    return (by_square + ends[0]) * (1 + 1e-9), (plain + ends[1]) * (1 + 1e-9)


def _far(start: float, normal: float, wanted: float) -> float:
    """A frequency beyond which little is left, if it is not too far."""
    far = start * _SPAN
    if normal:
        damped = sqrt(start * start + 2 * log(1e3 + 1e3 / max(wanted, 1e-300)) / normal)
        far = min(far, damped)
    return max(far, 2 * start)


def _damping(omega: Array, start: float, normal: float) -> Array:
    """e^(-normal (ω² - start²) / 2), rounded up."""
    power = normal / 2 * (omega - start) * (omega + start)
    value: Array = np.exp(1e-9 - power * (1 - 1e-9))
    return np.minimum(value, 1.0)


def _recurring(factor: Factor, tau: float, left: Array, right: Array) -> Array:
    """Logarithm of a bound on one factor, on each interval, less a rounding of later sums."""
    period = factor.period
    before, after = np.floor(left / period), np.ceil(right / period)
    distance = np.minimum(left - before * period, after * period - right)
    # 0 if a multiple of the period is in the interval
    distance = np.where(after > before + 1, 0.0, distance) - 32 * UNIT * right
    near = np.clip(distance, 0.0, period / 2 * (1 - 16 * UNIT))
    found: Array = np.minimum(0.0, factor.log_recurring(tau, near, left)) * (1 - 1e-12)
    return found
