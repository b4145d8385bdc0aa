"""Conversion of Rényi DP of one order to a trade-off function, by chords of its profile."""

from __future__ import annotations

from functools import lru_cache

from ...fdp.concentrated import profile_to_tradeoff
from ...fdp.function import TradeoffFunction
from .renyi_to_approximate import renyi_to_delta


@lru_cache(maxsize=1024)
def renyi_to_tradeoff(alpha: float, divergence: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every (α, divergence)-Rényi DP mechanism."""
    if divergence == 0.0:
        return TradeoffFunction.identity()
    if not divergence < 300.0:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: renyi_to_delta(alpha, divergence, epsilon))
