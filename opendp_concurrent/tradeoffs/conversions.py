"""The theorems that lead to f-DP, by the kind of the measure that they begin at."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from types import MappingProxyType

from ..fdp.concentrated import profile_to_tradeoff, zcdp_to_tradeoff
from ..fdp.function import TradeoffFunction
from ..measures.conversion import Conversion
from ..measures.conversions.renyi_to_approximate import renyi_to_delta
from ..measures.kinds import APPROXIMATE, FIXED, GAUSSIAN, PROFILE, PURE, RENYI, TRUNCATED, ZCDP
from ..measures.renyi_divergence import curve_to_delta


@lru_cache(maxsize=1024)
def renyi_to_tradeoff(alpha: float, divergence: float) -> TradeoffFunction:
    """Return a trade-off function that holds for every (α, divergence)-Rényi DP mechanism.

    It consists of chords of the privacy profile.
    """
    if divergence == 0.0:
        return TradeoffFunction.identity()
    if not divergence < 300.0:
        return TradeoffFunction.worst()
    return profile_to_tradeoff(lambda epsilon: renyi_to_delta(alpha, divergence, epsilon))


TO_TRADEOFF = MappingProxyType(
    {
        PURE: Conversion(lambda d, ends: TradeoffFunction.pure(d)),
        APPROXIMATE: Conversion(lambda d, ends: TradeoffFunction.approximate(d[0], min(d[1], 1.0))),
        ZCDP: Conversion(lambda d, ends: zcdp_to_tradeoff(d, inf)),
        TRUNCATED: Conversion(lambda d, ends: zcdp_to_tradeoff(d.rho, d.omega)),
        FIXED: Conversion(lambda d, ends: renyi_to_tradeoff(ends.source.alpha, d)),
        RENYI: Conversion(
            lambda d, ends: profile_to_tradeoff(curve_to_delta(d, ends)), needs_orders=True
        ),
        GAUSSIAN: Conversion(lambda d, ends: TradeoffFunction.gaussian(d)),
        PROFILE: Conversion(lambda d, ends: profile_to_tradeoff(d.delta)),
    }
)
