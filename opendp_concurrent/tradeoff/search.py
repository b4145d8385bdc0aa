"""The least ε at a δ, from a profile that is known between bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from .bounds import UNIT, Bounds


def bisect(profile: Callable[[float], Bounds], delta: float, high: float) -> float:
    """About the least ε >= 0 with δ(ε) <= delta."""
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        bounds = profile(middle)
        if (bounds.lower + bounds.upper) / 2 > delta:
            low = middle
        else:
            high = middle
    return high


def certify(
    profile: Callable[[float], Bounds],
    delta: float,
    near: float,
    scale: float,
    move: float = 0.0,
    known: Bounds | None = None,
) -> Bounds:
    """Step outward from ``near`` until both sides are certain.

    :param scale: unit of the steps if ``near`` is 0
    :param move: first step, if it is known how wide the bounds are
    :param known: the profile at ``near``
    """
    at_near = profile(near) if known is None else known
    size = max(near, UNIT * scale)
    first = max(move, 4 * UNIT * size)
    upper, step = near, first
    found = at_near
    while not found.upper <= delta:
        upper, step = near + step, 4 * step
        if step > 1e6 * max(near, scale):
            return Bounds(_below(profile, delta, near, first, at_near), inf)
        found = profile(upper)
    return Bounds(_below(profile, delta, near, first, at_near), upper)


def _below(
    profile: Callable[[float], Bounds], delta: float, near: float, step: float, at_near: Bounds
) -> float:
    lower, found = near, at_near
    while lower > 0.0 and not found.lower > delta:
        lower, step = max(0.0, near - step), 4 * step
        if lower > 0.0:
            found = profile(lower)
    return lower
