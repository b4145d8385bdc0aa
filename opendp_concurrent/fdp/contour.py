"""Where Fourier inversion integrates: the path τ + iω, its step, its end and its smoothing.

The choice is a heuristic. Whatever is chosen, ``inversion.py`` bounds the error. It depends on the
product and on the question alone. It is coarse, so that what is known of factors serves others.

K(τ) = ln E_P[e^(τL); L finite] is the cumulant generating function of the loss.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, inf, log, log2, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from .bounds import ELEMENTARY, Array
from .factor import Factor, Invertible

MOST_NODES = 2**19
_UNDERFLOW = 1e-320  # more than an exponential loses where it leaves the doubles
_FEW = 2**11  # nodes that are not worth saving
TAUS = 2.0 ** (np.arange(-112, 121) / 4)  # the grid of τ
# the largest of (1 - e^-y) e^(-τy) is e to this
_PENALTIES = -TAUS * np.log1p(1 / TAUS) - np.log1p(TAUS)
_SQUARES = TAUS * (TAUS + 1) / 2
_REACH = np.geomspace(1.0, 1e8, 161)  # frequencies, in units of 1 / sqrt(variance)
_PERIODS = np.geomspace(4.0, 4e4, 81)  # in units of sqrt(variance)
_COARSE = 0.2  # largest smoothing; the bound on its error holds up to 1/4
_RETREATS, _LONG = 4, 2e3  # steps of τ; a period in units of 1 / τ
_WIDENINGS = 100  # how often the smoothing is made larger, by half

Counted = Sequence[tuple[Invertible, int]]


@dataclass(frozen=True, slots=True)
class Contour:
    """A path and its discretisation.

    :ivar index: of the real part τ in ``TAUS``
    :ivar step: distance of nodes
    :ivar nodes: number of nodes from ω = 0 on
    :ivar smoothing: μ of the Gaussian that the product is composed with; 0 for none
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
        """Period in ε of the sum over nodes."""
        return 2 * pi / self.step

    @property
    def end(self) -> float:
        """Largest frequency."""
        return self.step * (self.nodes - 1)


def on_taus(factor: Invertible) -> Array:
    """K(τ) of one factor on ``TAUS``, and a bound on its error: two rows."""
    return np.array(np.broadcast_arrays(factor.log_mgf(TAUS), factor.mgf_error(TAUS)))


def decay(factor: Invertible, tau: float, width: float) -> Array:
    """Logarithm of a bound on |ρ| at ``_REACH`` over ``width``, and from there on."""
    return factor.log_decay(tau, _REACH / width)


def cumulants(
    factors: Counted, known: Callable[[Invertible], Array] = on_taus
) -> tuple[Array, Array]:
    """K(τ) of a product on ``TAUS``, and a bound on the error: sums over factors."""
    counts = np.array([n for _, n in factors], dtype=float)
    rows = np.array([known(factor) for factor, _ in factors]).reshape(-1, 2, len(TAUS))
    total, errors = np.add.reduce(counts[:, None, None] * rows)
    return total, 2 * errors  # for the roundings of sums


def variance(factors: Sequence[tuple[Factor, int]]) -> float:
    """Variance of the loss of a product, approximately."""
    return max(sum(n * factor.variance for factor, n in factors), 1e-200)


def renyi_epsilon(cumulants: Array, delta: float) -> float:
    """ε at ``delta`` by the best Rényi order in ``TAUS``: above the exact value."""
    slack = 4 * ELEMENTARY * (np.abs(cumulants) + abs(log(delta)) - _PENALTIES)
    return float(np.min((cumulants - log(delta) + _PENALTIES + slack) / TAUS))


def renyi_delta(cumulants: Array, epsilon: float) -> float:
    """δ at ``epsilon`` by the best Rényi order in ``TAUS``: above the exact value."""
    slack = 4 * ELEMENTARY * (np.abs(cumulants) + np.abs(TAUS * epsilon) - _PENALTIES)
    least = float(np.min(cumulants - TAUS * epsilon + _PENALTIES + slack))
    return exp(least) * (1 + ELEMENTARY) + _UNDERFLOW if least < 0.0 else 1.0


def saddle(cumulants: Array, epsilon: float) -> int:
    """Where on ``TAUS`` the integrand for δ(``epsilon``) is least."""
    best = int(np.argmin(cumulants - TAUS * epsilon - np.log(TAUS * (1 + TAUS))))
    return min(max(best, 1), len(TAUS) - 2)


def near_epsilon(cumulants: Array, delta: float) -> float:
    """About the ε at ``delta``, from each saddle point; it may be NaN or negative."""
    tau, slopes = TAUS[1:-1], np.diff(cumulants) / np.diff(TAUS)
    epsilon = (slopes[:-1] + slopes[1:]) / 2 - 1 / tau - 1 / (1 + tau)
    logarithm = cumulants[1:-1] - tau * epsilon - np.log(tau * (1 + tau))
    return float(np.interp(-log(delta), -logarithm, epsilon))


def choose(
    factors: Counted,
    cumulants: Array,
    epsilon: float,
    tolerance: float,
    known: Callable[[Invertible, float, float], Array] = decay,
) -> Contour:
    """Path for δ(``epsilon``) at a relative width of about ``tolerance``."""
    best = saddle(cumulants, epsilon)
    for _ in range(_RETREATS):  # away from where K rises so steeply that no period is enough
        if best == 1 or alias_bound(cumulants, best, epsilon, _LONG / float(TAUS[best])) < 1e-6:
            break
        best -= 1
    tau, whole = float(TAUS[best]), variance(factors)
    width = sqrt(min(max(_curvature(cumulants, best), 1e-6 * whole), 4 * whole))
    width = 2.0 ** (round(2 * log2(width)) / 2)
    # about δ / e^(K(τ) - τε), from the height and the width of the integrand
    height = 1 / (tau * (1 + tau) * sqrt(2 * pi * (width**2 + 1 / tau**2)))
    step = 2 * pi / _period(cumulants, best, epsilon, width, 0.1 * tolerance * height)
    reach = _REACH / width
    always = sum((n * known(one, tau, width) for one, n in factors), np.zeros_like(reach))
    wanted = 0.03 * tolerance * height
    with np.errstate(divide="ignore"):
        target = np.log(wanted * pi * reach)
    plain = _first(reach, always <= target)
    if plain / step <= _FEW:
        return Contour(best, step, _nodes(plain, step), 0.0)
    # smoothing adds about s² τ (1 + τ) of δ to δ
    smoothing = min(_COARSE, 0.5 * sqrt(tolerance / (tau * (1 + tau))))
    for _ in range(_WIDENINGS):
        damped = always - reach * reach * (smoothing * smoothing / 2)
        end = min(plain, _first(reach, damped <= target))
        if end / step <= MOST_NODES:
            return Contour(best, step, _nodes(end, step), 0.0 if end == plain else smoothing)
        if smoothing == _COARSE:
            break
        smoothing = min(_COARSE, 1.5 * smoothing)
    return Contour(best, step, MOST_NODES, _COARSE)


def _nodes(end: float, step: float) -> int:
    return max(8, int(end / step) + 2)


def _curvature(cumulants: Array, at: int) -> float:
    """Second derivative at an inner point of the uneven grid."""
    left = (cumulants[at] - cumulants[at - 1]) / (TAUS[at] - TAUS[at - 1])
    right = (cumulants[at + 1] - cumulants[at]) / (TAUS[at + 1] - TAUS[at])
    return float((right - left) / ((TAUS[at + 1] - TAUS[at - 1]) / 2))


def _period(cumulants: Array, at: int, epsilon: float, width: float, allowed: float) -> float:
    """Least period whose aliasing is within ``allowed``; else the largest."""
    index = bisect_left(
        range(len(_PERIODS) - 1),
        True,
        key=lambda i: alias_bound(cumulants, at, epsilon, float(_PERIODS[i] * width)) <= allowed,
    )
    return float(_PERIODS[_coarsely(index, len(_PERIODS))] * width)


def _coarsely(index: int, size: int) -> int:
    """A multiple of three that is as large, if there is one."""
    return min(-(-index // 3) * 3, size - 1)


def _first(reach: Array, holds: NDArray[np.bool_]) -> float:
    found = np.flatnonzero(holds)
    return float(reach[_coarsely(int(found[0]), len(reach))]) if found.size else inf


@lru_cache(maxsize=256)
def _log_rises(at: int, period: float) -> Array:
    """Logarithm of e^(|σ - τ|P) - 1 for σ on ``TAUS``, τ = TAUS[at]; not used at τ itself."""
    power = np.abs(TAUS - TAUS[at]) * period
    power[at] = 1.0
    rises: Array = power + np.log(-np.expm1(-power))
    rises.flags.writeable = False
    return rises


def alias_bound(
    cumulants: Array,
    at: int,
    epsilon: float,
    period: float,
    smoothing: float = 0.0,
    error: Array | float = 0.0,
) -> float:
    """Bound on Σ over m ≠ 0 of e^(τmP) δ(ε + mP), in units of e^(K(τ) - τε), τ = TAUS[at].

    δ(x) <= e^(K(σ) - σx) for every σ > 0, and δ(x) <= 1. Smoothing with s adds
    s² σ (σ + 1) / 2 to K(σ).

    :param error: bound on the error of ``cumulants``
    """
    tau = float(TAUS[at])
    base = float((cumulants - error)[at]) - tau * epsilon
    rises = _log_rises(at, period)
    each = cumulants + error + smoothing**2 * _SQUARES - TAUS * epsilon - base - rises
    power = tau * period
    whole = -base - power - log(-expm1(-power))
    ahead, behind = float(each[at + 1 :].min(initial=inf)), float(each[:at].min(initial=whole))
    return 1.001 * sum(exp(one) if one < 700.0 else inf for one in (ahead, behind))
