"""Conversion of μ-Gaussian DP to (ε, δ(ε))-DP for every ε, exactly [DRS22, Corollary 1].

δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2). With a, b = ε/μ -+ μ/2 and Mills' ratio R this is
φ(a) (R(a) - R(b)), since e^ε φ(b) = φ(a).
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, log, sqrt

from ..exact.bracket import Bracket, Digits, lower, upper
from ..exact.normal import density, mills
from ..exact.rounding import least_double

FAR = 40.0  # 1 - Φ(40) is less than 1e-349


@lru_cache(maxsize=65536)
def gaussian_to_delta(mu: float, epsilon: float) -> float:
    """Return the least double at or above δ(ε).

    :param mu: at least 0
    :param epsilon: at least 0
    """
    if mu == 0.0 or epsilon == inf:
        return 0.0
    if mu == inf:
        return 1.0

    def threshold(real: Digits) -> Bracket:
        return real(epsilon) / real(mu) - real(mu) / 2

    if upper(threshold) < -FAR:
        return 1.0
    if lower(threshold) > FAR:
        return 5e-324

    def delta(real: Digits) -> Bracket:
        m = real(mu)
        centre, half = real(epsilon) / m, m / 2
        a = centre - half
        return density(a) * (mills(a) - mills(centre + half))

    return min(1.0, upper(delta))


@lru_cache(maxsize=65536)
def gaussian_to_epsilon(mu: float, delta: float) -> float:
    """Return the least double ε with ``gaussian_to_delta(mu, ε) <= delta``, or infinity."""
    if mu == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or mu == inf:
        return inf
    if gaussian_to_delta(mu, 0.0) <= delta:
        return 0.0
    near = mu * mu / 2 + mu * sqrt(-2 * log(delta))
    return least_double(lambda epsilon: gaussian_to_delta(mu, epsilon) <= delta, near)
