"""ε-DP is ε tanh(ε/2)-zCDP: the zCDP of randomized response, which is the worst case [Ste24]."""

from __future__ import annotations

from functools import lru_cache

from ...exact.bracket import Bracket, Digits, upper


@lru_cache(maxsize=65536)
def pure_to_zcdp(epsilon: float) -> float:
    """Least double at or above ε tanh(ε/2).

    [BS16, Proposition 1.4] has ε²/2, which OpenDP uses.

    :param epsilon: at least 0
    """

    def rho(real: Digits) -> Bracket:
        e = real(epsilon)
        decay = (-e).exp()
        return e * (1 - decay) / (1 + decay)

    return min(upper(rho), epsilon) if 0.0 < epsilon < 1e16 else epsilon
