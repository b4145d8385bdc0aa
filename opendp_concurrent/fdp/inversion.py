"""Where Fourier inversion integrates: the path τ + iω, its step, its end and its smoothing.

The choice is a heuristic. Whatever is chosen, ``inversion.py`` bounds the error. It depends on the
product and on the question alone. It is coarse, so that what is known of factors serves others.

K(τ) = ln E_P[e^(τL); L finite] is the cumulant generating function of the loss.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import cosh, exp, expm1, inf, log, log2, pi, sqrt, tanh
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, ComplexArray, Transform
from .exact import Gaussian
from .finite import Finite
from .noise import Factor, Invertible

MOST_NODES = 2**19
_LARGEST = 300.0  # argument of hyperbolic functions
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
    delta: float = 1.0,
    known: Callable[[Invertible, float, float], Array] = decay,
) -> Contour:
    """Path for δ(``epsilon``) at a relative width of about ``tolerance``.

    :param delta: about the finite part of δ, if it is known: less than usual if losses are rare
    """
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
    height = min(height, exp(min(log(delta) + tau * epsilon - float(cumulants[best]), 0.0)))
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

    δ(x) <= e^(K(σ) - σx) for every σ > 0, whatever the masses add up to. Smoothing with s adds
    s² σ (σ + 1) / 2 to K(σ).

    :param error: bound on the error of ``cumulants``
    """
    tau = float(TAUS[at])
    base = float((cumulants - error)[at]) - tau * epsilon
    rises = _log_rises(at, period)
    each = cumulants + error + smoothing**2 * _SQUARES - TAUS * epsilon - base - rises
    ahead, behind = (float(part.min(initial=inf)) for part in (each[at + 1 :], each[:at]))
    return 1.001 * sum(exp(one) if one < 700.0 else inf for one in (ahead, behind))


# Bounds on the profile of a product, by Fourier inversion on a contour.
#
# With K(τ) = ln E_P[e^(τL); L finite], ρ(ω) = E_P[e^((τ+iω)L)] e^(-K(τ)) and t = τ + iω, τ > 0,
#
#     δ(ε) = P(L = ∞) + e^(K(τ) - τε) (1/2π) ∫ ρ(ω) e^(-iωε) / (t (t + 1)) dω.
#
# The integral is replaced by a sum over nodes. Four errors are bounded.
#
# 1. *Aliasing.* The sum over nodes of distance 2π/P is, by Poisson's formula, the sum over integers
# m of e^(τmP) δ(ε + mP). All terms are positive. Those with m ≠ 0 are bounded by Chernoff's bound
# at other τ: ``alias_bound``. 2. *Truncation* at Ω: at most (1/π) sup |ρ| / Ω, with the
# supremum over ω > Ω. Each factor bounds its own part. 3. *Rounding.* Each factor bounds the error
# of ρ; the weights |1/(t (t+1))| are summed. 4. *Smoothing.* Where ρ does not decay, the product is
# composed with a Gaussian of small μ = s. So the likelihood ratio is multiplied by some ξ with mean
# 1, and δ grows, by at most E_P[κ(ε - L)], where κ(y) <= (1 + s)/sqrt(2π) s e^(y/2 - y²/(2s²)) is
# the time value of an option: with a = y/s - s/2 and Mills' ratio R it is φ(a)(R(a) - R(a+s)) <= s
# φ(a)(1 - a R(a)). The expectation is a second integral over the same nodes.
#
# These bounds are derived here. Tests compare them with closed forms, enumeration and big floats.


@dataclass(eq=False)
class CharacteristicFunction:
    """The characteristic function of a product on a contour; not changed once it is made.

    :ivar values: ρ at the nodes
    :ivar error: bound on the error of each value
    :ivar cumulant: K(τ)
    :ivar cumulant_error: bound on its error
    :ivar decay: logarithm of a bound on |ρ| from the last node on
    :ivar normal: μ² of the Gaussians
    """

    contour: Contour
    values: ComplexArray
    error: float = 0.0
    cumulant: float = 0.0
    cumulant_error: float = 0.0
    decay: float = 0.0
    normal: float = 0.0

    def times(self, factors: Counted, known: Known | None = None) -> CharacteristicFunction:
        """That of the product with more factors: one multiplication for each.

        :param known: :func:`power`, or what remembers its values
        """
        contour, product, values = self.contour, replace(self), self.values.copy()
        for factor, count in factors:
            one = (known or power)(factor, count, contour.tau, contour.step, contour.nodes)
            values *= one.transform.values
            product.error += one.transform.error + 32 * UNIT
            product.cumulant += one.cumulant
            # K(τ) is negative where mass is missing
            product.cumulant_error += one.cumulant_error
            product.cumulant_error += 2 * UNIT * (abs(one.cumulant) + abs(product.cumulant))
            product.decay += one.decay
            product.normal += count * factor.mu**2 if isinstance(factor, Gaussian) else 0.0
        product.values = values
        return product

    @cached_property
    def omega(self) -> Array:
        """Frequencies of the nodes."""
        return np.arange(self.contour.nodes, dtype=np.float64) * self.contour.step

    @cached_property
    def halved(self) -> ComplexArray:
        """Values, the first one halved, for sums over both signs of ω."""
        values: ComplexArray = self.values.copy()
        values[0] *= 0.5
        return values

    @cached_property
    def _weighted(self) -> tuple[ComplexArray, float]:
        """Values over t (t + 1), and the sum of |1 / (t (t + 1))|."""
        t = self.contour.tau + 1j * self.omega
        weights = 1 / (t * (t + 1))
        return self.halved * weights, float(np.sum(np.abs(weights)))

    def invert(self, cumulants: Array, cumulant_errors: Array, epsilon: float) -> Bounds:
        """Bounds on the finite part of δ(``epsilon``).

        :param cumulants: K on ``TAUS``, without the smoothing
        :param cumulant_errors: bounds on their errors
        """
        contour, tau = self.contour, self.contour.tau
        phases = np.exp(-1j * epsilon * self.omega)
        weighted, weight = self._weighted
        measure = contour.step / pi
        raw = measure * float(np.einsum("j,j->", phases, weighted).real)
        each = expm1(min(self.error, 600.0)) + 8 * ELEMENTARY  # relative errors compound
        each += UNIT * (4 * contour.end * abs(epsilon) + 2 * contour.nodes)
        rounding = measure * weight * each
        cut = exp(self.decay) / (pi * contour.end)
        ends = contour.index, epsilon, contour.period, contour.smoothing
        alias = alias_bound(cumulants, *ends, error=cumulant_errors)
        smoothing = self._smoothing_error(phases, each) if contour.smoothing else 0.0
        lower = float(max(0.0, raw - rounding - cut - alias - smoothing))
        upper = float(max(0.0, raw + rounding + cut))
        power, error = self.cumulant - tau * epsilon, self.cumulant_error
        error += 4 * UNIT * (abs(power) + tau * abs(epsilon) + abs(self.cumulant))
        least, most = (exp(min(power + side * error, 700.0)) for side in (-1, 1))
        return Bounds(
            lower * least * (1 - 2 * ELEMENTARY), upper * most * (1 + 2 * ELEMENTARY) + TINY
        )

    def _smoothing_error(self, phases: ComplexArray, each: float) -> float:
        """Bound on E_P[κ(ε - L)], in units of e^(K(τ) - τε).

        :param phases: e^(-iωε) at the nodes
        :param each: bound on the error of each value
        """
        contour, s = self.contour, self.contour.smoothing
        measure = contour.step / pi
        value = measure * float(np.einsum("j,j->", phases, self.halved).real)
        rounding = measure * contour.nodes * 2 * each
        # beyond the last node Ω: ∫ e^(-qω²) is at most e^(-qΩ²) / (2qΩ); s is among the Gaussians
        cut = exp(self.decay) / (pi * self.normal * contour.end)
        front = (1 + s) * s * s * exp(s * s / 8)
        return front * (max(0.0, value) + rounding + cut) * (1 + 64 * ELEMENTARY)


def start(contour: Contour) -> CharacteristicFunction:
    """That of a product without factors, but with the smoothing."""
    none = CharacteristicFunction(contour, np.ones(contour.nodes, dtype=complex))
    return none.times([(Gaussian(contour.smoothing), 1)]) if contour.smoothing else none


class Power(NamedTuple):
    """What equal factors add on a path.

    :ivar transform: their characteristic function
    :ivar cumulant: their K(τ)
    :ivar cumulant_error: bound on its error
    :ivar decay: logarithm of a bound on |ρ| from the last node on
    """

    transform: Transform
    cumulant: float
    cumulant_error: float
    decay: float


Known: TypeAlias = Callable[[Invertible, int, float, float, int], Power]


def power(factor: Invertible, count: int, tau: float, step: float, nodes: int) -> Power:
    """What ``count`` equal factors add on the path through τ."""
    return Power(
        _transform(factor, count, tau, step, nodes),
        count * float(factor.log_mgf(np.array([tau]))[0]),
        count * float(factor.mgf_error(tau)),
        count * float(factor.log_decay(tau, np.array([step * (nodes - 1)]))[0]),
    )


def _transform(factor: Invertible, count: int, *at: Any) -> Transform:
    """The characteristic function of equal factors; relative errors compound."""
    pair = factor.response if isinstance(factor, Finite) else None
    if pair is not None and 0.0 < (at[0] + 0.5) * pair[0] < _LARGEST:
        return _of_responses(pair[0], count, *at)
    one = factor.transform(*at)
    if count == 1:
        return one
    error = count * (one.error + 32 * UNIT) + ELEMENTARY
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        powers: ComplexArray = np.exp(count * np.log(one.values))
    powers = np.where(np.abs(one.values) < TINY, 0.0, powers)
    return Transform(powers, error)


def _of_responses(epsilon: float, count: int, tau: float, step: float, nodes: int) -> Transform:
    """Of randomized responses: ρ = cos a + il sin a, a = ωε, l = tanh((τ + 1/2)ε); to the count.

    Its logarithm has a small relative error, so that any number of them can be counted.
    """
    at, angle = (tau + 0.5) * epsilon, (step * epsilon) * np.arange(nodes)
    sine, lost = np.sin(angle), (np.sin(angle) / cosh(at)) ** 2  # |ρ|² = 1 - lost
    logs = 0.5 * np.log1p(-lost) + 1j * np.arctan2(tanh(at) * sine, np.cos(angle))
    values: ComplexArray = np.exp(count * logs)
    wrong = 8 * ELEMENTARY * np.abs(logs) + 8 * (ELEMENTARY + UNIT * at) * lost / (1 - lost)
    wrong += 4 * UNIT * angle / (1 - lost)
    wrong = np.abs(values) * np.expm1(np.minimum(count * wrong, 600.0))
    return Transform(values, float(np.max(wrong)) + 4 * ELEMENTARY)
