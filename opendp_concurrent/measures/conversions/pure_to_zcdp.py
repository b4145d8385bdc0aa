"""Conversion of ε-DP to ε tanh(ε/2)-zCDP: randomized response is the worst case [Ste24]."""

from __future__ import annotations

from functools import lru_cache

from ...exact.bracket import Bracket, Digits, upper


@lru_cache(maxsize=65536)
def pure_to_zcdp(epsilon: float) -> float:
    """Return the least double at or above ε tanh(ε/2).

    OpenDP uses the larger ε²/2 of [BS16, Proposition 1.4].

    :param epsilon: at least 0
    """

    def rho(real: Digits) -> Bracket:
        e = real(epsilon)
        decay = (-e).exp()
        return e * (1 - decay) / (1 + decay)

    return min(upper(rho), epsilon) if 0.0 < epsilon < 1e16 else epsilon
