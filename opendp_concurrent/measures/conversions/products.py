"""Conversions that are one product or root, rounded up.

ρ-zCDP has Rényi divergence ρ α at order α [BS16, Definition 1.1]. μ-Gaussian DP implies μ²/2-zCDP:
this is the loss of N(0, 1) and N(μ, 1) [BS16, Proposition 1.6], and the mechanism is a
postprocessing of these [DRS22, Theorem 2.10].
"""

from __future__ import annotations

from math import inf, isinf

from ...exact.bracket import Bracket, Digits, upper
from ...exact.rounding import SMALLEST, from_units_up, to_units


def zcdp_to_renyi(rho: float, order: float) -> float:
    """Return the least double at or above ρ α."""
    if rho == 0.0 or isinf(rho):
        return rho
    return upper(lambda real: real(rho) * real(order))


def gaussian_to_zcdp(mu: float) -> float:
    """Return the least double at or above μ²/2."""
    if isinf(mu):
        return inf
    # squares are in units of 2**-(2 * SMALLEST); the half is rounded up once
    return from_units_up(-(-(to_units(mu) ** 2) >> (SMALLEST + 1)))


def zcdp_to_gaussian(rho: float, extra: float = 0.0) -> float:
    """Return the least double at or above sqrt(2 ρ) + ``extra``: the μ of Gaussian noise at ρ.

    This is not a conversion: a ρ-zCDP mechanism without Gaussian noise need not be Gaussian DP.
    """

    def mu(real: Digits) -> Bracket:
        return (2 * real(rho)).sqrt() + real(extra)

    return rho if rho == 0.0 or isinf(rho) else upper(mu)
