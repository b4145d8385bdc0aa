"""Conversion of a privacy profile, known at some points, to a trade-off function by chords.

Any points are valid: the largest profile through them is convex and linear in e^ε between them
[DRS22, Propositions 2.5 and 2.12]. More points make the result tighter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import sqrt

import numpy as np

from ...fdp.function import TradeoffFunction
from .renyi_to_approximate import renyi_to_delta
from .zcdp_to_approximate import zcdp_to_delta

_POINTS = 240
_LARGEST = 650.0  # up to this ε, e^ε is a double
_NOTHING = 1e-30  # points with a smaller δ are omitted


def profile_to_tradeoff(delta: Callable[[float], float]) -> TradeoffFunction:
    """Return the trade-off function of a falling δ(ε), ε >= 0, the same in both directions."""
    top = 2.0**-10
    while top < _LARGEST and delta(top) > _NOTHING:
        top = min(2 * top, _LARGEST)
    low = top
    while low > 2.0**-10 and delta(low / 1.25) <= _NOTHING:
        low /= 1.25
    even = np.linspace(0.0, low, _POINTS)
    near = np.geomspace(low / 1e4, low, _POINTS // 4)
    points = [float(one) for one in np.unique(np.concatenate([even, near]))]
    deltas = np.minimum.accumulate([min(1.0, delta(one)) for one in points]).tolist()
    return TradeoffFunction.from_profile(points, deltas)


@lru_cache(maxsize=1024)
def zcdp_to_tradeoff(rho: float, omega: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every ρ-zCDP or (ρ, ω)-tCDP mechanism."""
    if rho == 0.0:
        return TradeoffFunction.identity()
    if not sqrt(rho) < 12.0:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: zcdp_to_delta(rho, epsilon, omega))


@lru_cache(maxsize=1024)
def renyi_to_tradeoff(alpha: float, divergence: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every (α, divergence)-Rényi DP mechanism."""
    if divergence == 0.0:
        return TradeoffFunction.identity()
    if not divergence < 300.0:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: renyi_to_delta(alpha, divergence, epsilon))
