"""Where to integrate: the path τ + iω of Fourier inversion, its step, its end and its smoothing.

The choice is heuristic; whatever is chosen, ``inversion.py`` bounds the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from .bounds import Array
from .factor import Factor
from .gaussian import Gaussian

MOST_NODES = 2**19
_FEW = 2**11  # nodes that are not worth saving
TAUS = 2.0 ** (np.arange(-112, 121) / 4)  # the real parts that are ever used
_SQUARES = TAUS * (TAUS + 1) / 2
_REACH = np.geomspace(1.0, 1e8, 161)  # frequencies, in units of 1 / sqrt(variance)
_PERIODS = np.geomspace(4.0, 4e4, 81)  # in units of sqrt(variance)
_COARSE = 0.2  # largest smoothing
_WIDENINGS = 100  # of it, by half

Counted = Sequence[tuple[Factor, int]]


@dataclass(frozen=True, slots=True)
class Contour:
    """A path and its discretisation.

    :ivar index: of the real part τ in ``TAUS``
    :ivar step: distance of nodes; 2π over it is the period in ε
    :ivar nodes: number of nodes from ω = 0 on
    :ivar smoothing: μ of the Gaussian that is composed with, 0 for none
    """

    index: int
    step: float
    nodes: int
    smoothing: float

    @property
    def tau(self) -> float:
        """Real part, above 0."""
        return float(TAUS[self.index])

    @property
    def period(self) -> float:
        """Period in ε of what the nodes see."""
        return 2 * pi / self.step

    @property
    def end(self) -> float:
        """Largest frequency."""
        return self.step * (self.nodes - 1)


def exponents(factors: Counted) -> Array:
    """The logarithm of E_P[e^(τL)] of a product on ``TAUS``: a sum over factors."""
    values = np.zeros_like(TAUS)
    for factor, count in factors:
        values = values + count * factor.log_mgf(TAUS)
    return values


def exponent_errors(factors: Counted) -> Array:
    """Bound on the error of :func:`exponents`."""
    errors = np.zeros_like(TAUS)
    for factor, count in factors:
        errors = errors + count * factor.mgf_error(TAUS)
    return errors


def spread(factors: Counted) -> float:
    """Variance of the loss, about."""
    return max(sum(count * factor.spread for factor, count in factors), 1e-200)


def renyi_epsilon(known: Array, delta: float) -> float:
    """ε at ``delta`` by the best Rényi order in ``TAUS``: above the exact value."""
    penalty = TAUS * np.log(TAUS / (1 + TAUS)) - np.log1p(TAUS)
    return float(np.min((known - log(delta) + penalty) / TAUS))


def choose(factors: Counted, known: Array, epsilon: float, tolerance: float) -> Contour:
    """Path for δ(``epsilon``) at a relative width of about ``tolerance``."""
    best = int(np.argmin(known - TAUS * epsilon - np.log(TAUS * (1 + TAUS))))
    best = min(max(best, 1), len(TAUS) - 2)
    tau, whole = float(TAUS[best]), spread(factors)
    width = sqrt(min(max(_curvature(known, best), 1e-6 * whole), 4 * whole))
    # about δ / e^(K(τ) - τε), from the height and the width of the integrand
    height = 1 / (tau * (1 + tau) * sqrt(2 * pi * (width**2 + 1 / tau**2)))
    step = 2 * pi / _period(known, best, epsilon, width, 0.1 * tolerance * height)
    reach = _REACH / width
    decay = np.zeros_like(reach)
    for factor, count in factors:
        decay = decay + count * factor.log_decay(tau, reach)
    horizon = min(factor.horizon for factor, _ in factors)
    damp = 0.0  # smoothing that is needed behind the horizon
    if horizon < inf and 1 / (pi * horizon) > 0.03 * tolerance * height:
        normal = sum(n * factor.spread for factor, n in factors if isinstance(factor, Gaussian))
        needed = 2 * log(1 / (0.03 * pi * horizon * tolerance * height)) / horizon**2
        damp = sqrt(max(0.0, needed - normal))
    with np.errstate(divide="ignore"):
        target = np.log(0.03 * tolerance * height * pi * reach)
    plain = _first(reach, decay <= target)
    if plain / step <= _FEW and not damp:
        return Contour(best, step, max(8, int(plain / step) + 2), 0.0)
    # the bump of inversion.py is about s² τ (1 + τ) of δ
    smoothing = max(0.5 * sqrt(tolerance / (tau * (1 + tau))), damp)
    smoothing = min(_COARSE, smoothing)
    for _ in range(_WIDENINGS):
        damped = decay - reach * reach * (smoothing * smoothing / 2)
        end = min(plain, _first(reach, damped <= target))
        if end / step <= MOST_NODES:
            chosen = 0.0 if end == plain and not damp else smoothing
            return Contour(best, step, max(8, int(end / step) + 2), chosen)
        if smoothing == _COARSE:
            break
        smoothing = min(_COARSE, 1.5 * smoothing)
    return Contour(best, step, MOST_NODES, _COARSE)


def _curvature(known: Array, at: int) -> float:
    """Second derivative at an inner point of the uneven grid."""
    left = (known[at] - known[at - 1]) / (TAUS[at] - TAUS[at - 1])
    right = (known[at + 1] - known[at]) / (TAUS[at + 1] - TAUS[at])
    return float((right - left) / ((TAUS[at + 1] - TAUS[at - 1]) / 2))


def _period(known: Array, at: int, epsilon: float, width: float, allowed: float) -> float:
    low, high = 0, len(_PERIODS) - 1
    while low < high:
        middle = (low + high) // 2
        if alias_bound(known, at, epsilon, _PERIODS[middle] * width) <= allowed:
            high = middle
        else:
            low = middle + 1
    return float(_PERIODS[low] * width)


def _first(reach: Array, holds: NDArray[np.bool_]) -> float:
    found = np.flatnonzero(holds)
    return float(reach[found[0]]) if found.size else inf


@lru_cache(maxsize=256)
def _log_rises(at: int, period: float) -> Array:
    """The logarithm of (e^(|σ - τ|P) - 1) on ``TAUS``; not read at τ itself."""
    power = np.abs(TAUS - TAUS[at]) * period
    power[at] = 1.0
    rises: Array = power + np.log(-np.expm1(-power))
    rises.flags.writeable = False
    return rises


def alias_bound(
    known: Array,
    at: int,
    epsilon: float,
    period: float,
    dilation: float = 0.0,
    error: Array | float = 0.0,
) -> float:
    """Bound on Σ over m ≠ 0 of e^(τmP) δ(ε + mP), in units of e^(K(τ) - τε), τ = TAUS[at].

    δ(x) <= e^(K(σ) - σx) for every σ > 0, and δ(x) <= 1. A dilation of variance s² adds at most
    s² σ (σ + 1) / 2 to K(σ).

    :param error: bound on the error of ``known``
    """
    tau = float(TAUS[at])
    least = known - error
    base = float(least[at]) - tau * epsilon
    each = known + error + dilation * _SQUARES - TAUS * epsilon - base - _log_rises(at, period)
    power = tau * period
    whole = -base - power - log(-expm1(-power))
    ahead, behind = float(each[at + 1 :].min(initial=inf)), float(each[:at].min(initial=whole))
    return 1.001 * (_exp(ahead) + _exp(behind))


def _exp(power: float) -> float:
    return exp(power) if power < 700.0 else inf
