"""The trade-off function of the Laplace mechanism on a grid, as OpenDP samples it.

Consider a shift of d steps, which is ε scales. The profile equals that of the continuous mechanism,
1 - e^((x-ε)/2), at each loss x = ε, ε (d-2)/d, ..., and is linear in e^x between them: with
α = e^(-ε/d), P(X <= n) = 1 - α^(n+1)/(1+α), and x = (d - 2n) ε/d gives
δ(x) = 1 - (α^n + e^x α^(d+1-n)) / (1+α) = 1 - α^n. With more than 2^30 steps the two profiles
differ by less than the margin for rounding. If d is rounded down at the same ε, the noise is
narrower. The wider noise is the narrower one plus a geometric variable, so its loss is smaller.

Among all shifts of a vector with a given L1 norm, the worst is in one coordinate. The most powerful
tests are thresholds, and 1 - f maps P(X >= j) to P(X >= j - d). Thus 1 - f of a shift of d + e
steps is that of d after that of e. It bounds a shift of d in one coordinate and e in another, by
the triangle inequality of trade-off functions [DRS22, Theorem 2.14].
"""

from __future__ import annotations

from functools import lru_cache
from math import floor, inf, isinf

from ..fdp.function import TradeoffFunction

_FINE = 2.0**30
_LARGE = 1000.0  # for larger ε the margin for rounding would not cover the grid


@lru_cache(maxsize=4096)
def laplace_to_tradeoff(epsilon: float, step: float) -> TradeoffFunction:
    """Return the trade-off function of noise on a grid.

    :param epsilon: shift over scale
    :param step: step of the grid over scale; a shift is a whole number of steps
    """
    if epsilon == 0.0:
        return TradeoffFunction.identity()
    if isinf(epsilon):
        return TradeoffFunction.worst()
    if not step < epsilon:
        return TradeoffFunction.pure(epsilon)
    if epsilon > _LARGE:
        return TradeoffFunction.pure(epsilon)
    steps = epsilon / step * (1 + 1e-12) if step > 0.0 else inf
    return TradeoffFunction.laplace(epsilon, inf if steps > _FINE else float(floor(steps)))
