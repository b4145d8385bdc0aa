"""Searches over doubles; the least ε at a δ, from a profile that is known between bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from .bounds import UNIT, Array, Bounds

_PASSES, _POINTS = 18, 34  # a number of 2^-90 times the largest one is found
_STEPS = 64  # each four times the step before: enough to leave the doubles


def halved(
    low: float,
    high: float,
    holds: Callable[[float], bool],
    width: Callable[[float], float] = lambda high: 0.0,
    most: int = 100,
) -> tuple[float, float]:
    """Halve an interval, at whose high end alone ``holds`` is true.

    :param width: of the interval that is narrow enough, at its high end
    :param most: number of halvings
    """
    for _ in range(most):
        middle = (low + high) / 2
        if not high - low > width(high) or middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def narrowed(high: float, holds: Callable[[Array], NDArray[np.bool_]]) -> float:
    """About the least number in [0, ``high``] from which on ``holds`` is true; many at a time."""
    points = np.array([0.0, high])
    for _ in range(_PASSES):
        points = np.linspace(points[0], points[1], _POINTS)
        first = int(np.argmax(np.append(holds(points[1:-1]), True)))
        points = points[first : first + 2]
    return float(points[1])


def certify(
    profile: Callable[[float], Bounds],
    delta: float,
    near: float,
    scale: float,
    move: float = 0.0,
) -> Bounds:
    """Bounds on the least ε >= 0 with δ(ε) <= delta, by steps outward from ``near``.

    :param scale: unit of the steps if ``near`` is 0
    :param move: first step, where the width of the profile's bounds suggests one
    """
    if not near < inf:
        return Bounds(0.0, inf)
    at_near = profile(near)
    most = 1e6 * max(near, scale)

    def first(is_certain: Callable[[Bounds], bool], sign: int) -> float | None:
        """The first point at which the bounds decide, on one side of ``near``."""
        epsilon, found = near, at_near
        step = max(move, 4 * UNIT * max(near, UNIT * scale))
        for _ in range(_STEPS):
            if is_certain(found):
                return epsilon
            epsilon, step = near + sign * step, 4 * step
            if not (epsilon > 0.0 and step <= most):
                break
            found = profile(epsilon)
        return None

    lower = first(lambda bounds: bounds.lower > delta, -1)
    upper = first(lambda bounds: bounds.upper <= delta, 1)
    return Bounds(0.0 if lower is None else lower, inf if upper is None else upper)
