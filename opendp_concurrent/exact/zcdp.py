"""Conversion of ρ-zCDP or (ρ, ω)-tCDP to (ε, δ)-DP: the best order of [CKS20, Proposition 12].

For every α in (1, ω] δ = e^((α-1)(αρ-ε)) / (α-1) (1-1/α)^α. With t = α - 1 the best α solves
ρ t² + log(1+t) = log(1/δ) for a given δ, and (1+2t) ρ + log(t/(1+t)) = ε for a given ε. Both left
sides increase in t. If there is a largest order, the best α is the smaller of it and the solution.
Any α gives a valid bound, so an error in t cannot make the result too small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, inf, log, log1p, nextafter

from .bracket import Bracket, Digits, double_up, evaluate, upper
from .rounding import largest_double

LARGEST_T = 1e300


@lru_cache(maxsize=65536)
def zcdp_to_epsilon(rho: float, delta: float, omega: float = inf) -> float:
    """Return an upper bound on the ε of ρ-zCDP at δ.

    :param rho: at least 0
    :param delta: in [0, 1]
    :param omega: largest order, for tCDP
    """
    if rho == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or rho == inf:
        return inf
    log_inverse = -log(delta)
    t = min(_root(lambda t: rho * t * t + log1p(t) - log_inverse), _largest_t(omega))

    def epsilon(real: Digits) -> Bracket:
        r, d, a = real(rho), real(delta), real(t) + 1
        return a * r + (real(t) / a).ln() - (d.ln() + a.ln()) / real(t)

    return max(0.0, double_up(evaluate(epsilon).upper))


@lru_cache(maxsize=65536)
def zcdp_to_delta(rho: float, epsilon: float, omega: float = inf) -> float:
    """Return an upper bound on the δ of ρ-zCDP at ε; parameters as above."""
    if rho == 0.0 or epsilon == inf:
        return 0.0
    if rho == inf:
        return 1.0
    t = min(_root(lambda t: (1 + 2 * t) * rho - log1p(1 / t) - epsilon), _largest_t(omega))

    def delta(real: Digits) -> Bracket:
        a, x = real(t) + 1, real(t)
        return (x * (a * real(rho) - real(epsilon)) + a * (x / a).ln()).exp() / x

    return min(1.0, upper(delta))


@lru_cache(maxsize=4096)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest double ρ with ``zcdp_to_epsilon(ρ, delta) <= epsilon``."""
    return largest_double(lambda rho: zcdp_to_epsilon(rho, delta) <= epsilon, max(epsilon, 1e-300))


def _largest_t(omega: float) -> float:
    """Return omega - 1, exact where doubles allow, and rounded down for larger ω."""
    return omega - 1.0 if omega <= 2.0**53 else nextafter(omega, 0.0)


def _root(increasing: Callable[[float], float]) -> float:
    """Return the root of an increasing function on (0, LARGEST_T], to about double precision."""
    low, high = -690.0, log(LARGEST_T)  # bisection on log t
    if increasing(exp(high)) <= 0.0:
        return LARGEST_T
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(exp(middle)) > 0.0 else (middle, high)
    return exp(high)
