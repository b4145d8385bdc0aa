"""The least ε at a δ, from a profile that is known between bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from .bounds import UNIT, Bounds

_HALVINGS = 200
_STEPS = 64  # each four times the one before: beyond all doubles that are asked


def bisect(profile: Callable[[float], Bounds], delta: float, high: float) -> float:
    """About the least ε >= 0 with δ(ε) <= delta."""
    low = 0.0
    for _ in range(_HALVINGS):
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
    if not near < inf:
        return Bounds(0.0, inf)
    at_near = profile(near) if known is None else known
    first = max(move, 4 * UNIT * max(near, UNIT * scale))
    return Bounds(
        _below(profile, delta, near, first, at_near),
        _above(profile, delta, near, first, at_near, 1e6 * max(near, scale)),
    )


def _above(
    profile: Callable[[float], Bounds],
    delta: float,
    near: float,
    step: float,
    at_near: Bounds,
    most: float,
) -> float:
    upper, found = near, at_near
    for _ in range(_STEPS):
        if found.upper <= delta:
            return upper
        upper, step = near + step, 4 * step
        if not step <= most:
            break
        found = profile(upper)
    return inf


def _below(
    profile: Callable[[float], Bounds], delta: float, near: float, step: float, at_near: Bounds
) -> float:
    lower, found = near, at_near
    for _ in range(_STEPS):
        if found.lower > delta:
            return lower
        lower, step = near - step, 4 * step
        if not lower > 0.0:
            break
        found = profile(lower)
    return 0.0
