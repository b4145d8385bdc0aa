"""Conversion of Rényi DP at one order to (ε, δ)-DP [CKS20, Prop. 12], [BBGHS20, Theorem 21]."""

from __future__ import annotations

from functools import lru_cache
from math import inf

from ...exact.bracket import Bracket, Digits, double_up, evaluate, upper
from ...exact.rounding import largest_double


@lru_cache(maxsize=65536)
def renyi_to_epsilon(order: float, divergence: float, delta: float) -> float:
    """Return an upper bound on ε: t + log((α-1)/α) - (log δ + log α)/(α-1), at least 0.

    :param order: α, finite, above 1
    :param divergence: t, the Rényi divergence of that order, at least 0
    :param delta: in [0, 1]
    """
    if divergence == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or divergence == inf:
        return inf

    def epsilon(real: Digits) -> Bracket:
        a, d = real(order), real(delta)
        return real(divergence) + ((a - 1) / a).ln() - (d.ln() + a.ln()) / (a - 1)

    return max(0.0, double_up(evaluate(epsilon).upper))


@lru_cache(maxsize=65536)
def renyi_to_delta(order: float, divergence: float, epsilon: float) -> float:
    """Return an upper bound on δ: e^((α-1)(t-ε)) / (α-1) (1-1/α)^α, at most 1; see above."""
    if divergence == 0.0 or epsilon == inf:
        return 0.0
    if divergence == inf:
        return 1.0

    def delta(real: Digits) -> Bracket:
        a = real(order)
        exponent = (a - 1) * (real(divergence) - real(epsilon)) + a * ((a - 1) / a).ln()
        return exponent.exp() / (a - 1)

    return min(1.0, upper(delta))


@lru_cache(maxsize=4096)
def largest_divergence(order: float, epsilon: float, delta: float) -> float:
    """Return the largest double t with ``renyi_to_epsilon(order, t, delta) <= epsilon``, or 0."""
    return largest_double(
        lambda t: renyi_to_epsilon(order, t, delta) <= epsilon, max(epsilon, 1e-300)
    )
