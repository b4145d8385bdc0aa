"""The trade-off function of a privacy profile that is known at some points, as that of zCDP is.

Any points are valid: the largest profile through them is convex and linear in e^ε between them
[DRS22, Propositions 2.5 and 2.12]. More points make the result tighter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, nextafter, sqrt

import numpy as np

from ..exact.zcdp import zcdp_to_delta
from .function import TradeoffFunction

_POINTS = 240
_LARGEST = 650.0  # up to this ε, e^ε is a double
_NOTHING = 1e-30  # points with a smaller δ are omitted
_LARGEST_ROOT = 12.0  # sqrt(ρ)


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
    if not sqrt(rho) < _LARGEST_ROOT:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: zcdp_to_delta(rho, epsilon, omega))


@lru_cache(maxsize=1024)
def shifted_zcdp_to_tradeoff(xi: float, rho: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every (ξ, ρ)-zCDP mechanism [BS16, Section 1].

    Its Rényi divergences of all orders α are at most ξ + αρ, so the bound of ρ-zCDP at ε - ξ holds
    at ε. If ρ is 0, large orders say that it is ξ-DP.
    """
    if rho == 0.0:
        return TradeoffFunction.pure(xi)
    if xi == 0.0 or not sqrt(rho) < _LARGEST_ROOT:
        return zcdp_to_tradeoff(rho, inf)
    if not xi < _LARGEST:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: zcdp_to_delta(rho, nextafter(epsilon - xi, -inf)))
