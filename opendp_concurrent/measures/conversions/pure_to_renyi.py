"""Conversion of ε-DP to Rényi DP at every order, by randomized response [BS16]."""

from __future__ import annotations

from functools import lru_cache

from ...exact.bracket import Bracket, Digits, upper


@lru_cache(maxsize=65536)
def pure_to_renyi(epsilon: float, order: float) -> float:
    """Return the least double at or above the Rényi divergence of randomized response.

    1/(α-1) log((e^(αε) + e^(ε-αε)) / (1 + e^ε)) [BS16, Lemma 1.4 and the proof of Proposition 1.4],
    written as ε - 1/(α-1) log((1 + e^(-ε)) / (1 + e^(-(2α-1)ε))).

    :param epsilon: at least 0
    :param order: finite, above 1
    """

    def divergence(real: Digits) -> Bracket:
        e, a = real(epsilon), real(order)
        saved = ((1 + (-e).exp()) / (1 + (-((2 * a - 1) * e)).exp())).ln() / (a - 1)
        return e - saved

    return min(upper(divergence), epsilon) if 0.0 < epsilon < 1e16 else epsilon
