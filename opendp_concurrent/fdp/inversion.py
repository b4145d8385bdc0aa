"""Profiles of products between two bounds, by Fourier inversion on a contour.

With K(τ) = ln E_P[e^(τL); L finite], ρ(ω) = E_P[e^((τ+iω)L)] e^(-K(τ)) and t = τ + iω, τ > 0,

    δ(ε) = P(L = ∞) + e^(K(τ) - τε) (1/2π) ∫ ρ(ω) e^(-iωε) / (t (t + 1)) dω.

1. *Aliasing.* The sum over nodes of distance 2π/P is, by Poisson's formula, the sum over integers m
   of e^(τmP) δ(ε + mP). All terms are positive, and those with m ≠ 0 are bounded by Chernoff's
   bound at other τ: ``contour.alias_bound``.
2. *Truncation* at Ω: at most (1/π) sup |ρ| / Ω, the supremum beyond Ω; each factor bounds its own.
3. *Rounding*: each factor bounds the error of ρ; the weights |1/(t (t+1))| are summed.
4. *Smoothing.* Where ρ does not decay, the product is composed with a Gaussian of small μ = s, and
   where a factor is put on a lattice it is dilated by less than one: the likelihood ratio is
   multiplied by some ξ with mean 1. So δ grows, and by at most E_P[κ(ε - L)], where
   κ(y) <= (1 + s)/sqrt(2π) s e^(y/2 - y²/(2s²)) is the time value of an option: with a = y/s - s/2
   and Mills' ratio R it is φ(a)(R(a) - R(a+s)) <= s φ(a)(1 - a R(a)). The expectation is a second
   integral over the same nodes. With a lattice the law of L is known after the dilation only; then
   1.25 times the bump with 2s² in place of s² is enough, by Jensen's inequality, since the
   logarithm of ξ has mean at most 0.32 s² and variance at most 0.64 s².
   How large ξ is: two points a ratio e^h apart are within a Gaussian of μ = h sqrt(2π)/4, as the
   slope of Φ⁻¹ over the log-odds is at most sqrt(2π)/4.

Derived here; tests compare with closed forms, enumeration and big floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, inf, pi, sqrt

import numpy as np

from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, ComplexArray
from .contour import Contour, Counted, alias_bound
from .gaussian import Gaussian

_MOST_RISE = 600.0  # exponents beyond are not worked out
_LARGEST = 0.25  # s up to which the bounds on κ hold


@dataclass(frozen=True, eq=False)
class Wave:
    """The transform of a product on a contour; a factor more is a multiplication.

    :ivar values: ρ at the nodes
    :ivar error: bound on the error of each
    :ivar variance: s² of the dilation to lattices
    :ivar exponent: K(τ)
    :ivar exponent_error: bound on its error
    :ivar decay: logarithm of a bound on |ρ| from the last node to the horizon
    :ivar always: logarithm of a bound on |ρ| from the last node on, from factors without horizon
    :ivar normal: μ² of the Gaussians
    :ivar horizon: least one of the factors
    """

    contour: Contour
    values: ComplexArray
    error: float
    variance: float
    exponent: float
    exponent_error: float
    decay: float
    always: float
    normal: float
    horizon: float

    def times(self, factors: Counted) -> Wave:
        """With more factors."""
        contour = self.contour
        tau, end = contour.tau, np.array([contour.end])
        values, error, variance = self.values, self.error, self.variance
        exponent, exponent_error = self.exponent, self.exponent_error
        decay, always = self.decay, self.always
        normal, horizon = self.normal, self.horizon
        at = np.array([tau])
        for factor, count in factors:
            one = factor.transform(tau, contour.step, contour.nodes)
            values = values * (one.values if count == 1 else _power(one.values, count))
            error += count * (one.error + 32 * UNIT) + ELEMENTARY
            variance += count * one.variance
            value = count * float(factor.log_mgf(at)[0])
            exponent += value
            exponent_error += count * float(factor.mgf_error(tau))
            exponent_error += 2 * UNIT * (abs(value) + abs(exponent))  # less than 0 if mass lacks
            falls = count * float(factor.log_decay(tau, end)[0])
            decay += falls
            always += falls if factor.horizon == inf else 0.0
            normal += count * factor.mu**2 if isinstance(factor, Gaussian) else 0.0
            horizon = min(horizon, factor.horizon)
        return Wave(
            contour,
            values,
            error,
            variance,
            exponent,
            exponent_error,
            decay,
            always,
            normal,
            horizon,
        )

    @cached_property
    def omega(self) -> Array:
        """Frequencies of the nodes."""
        return np.arange(self.contour.nodes, dtype=np.float64) * self.contour.step

    @cached_property
    def halved(self) -> ComplexArray:
        """Values with half of the first, for sums over both signs of ω."""
        values: ComplexArray = self.values.copy()
        values[0] *= 0.5
        return values

    @cached_property
    def _weighted(self) -> tuple[ComplexArray, float]:
        """Values over t (t + 1) and over t + 1, and the sum of |1 / (t (t + 1))|."""
        t = self.contour.tau + 1j * self.omega
        weights = 1 / (t * (t + 1))
        both = np.stack([self.halved * weights, self.halved / (t + 1)])
        return both, float(np.sum(np.abs(weights)))

    def value(self, epsilon: float) -> tuple[float, float]:
        """About the finite part of δ(``epsilon``), and its slope."""
        both, _ = self._weighted
        scale = self.contour.step / pi * exp(min(self.exponent - self.contour.tau * epsilon, 700.0))
        value, slope = np.einsum("j,ij->i", np.exp(-1j * epsilon * self.omega), both).real
        return scale * float(value), scale * float(slope)

    def invert(self, known: Array, known_error: Array, epsilon: float) -> Bounds:
        """Bounds on the finite part of δ(``epsilon``).

        :param known: ln E_P[e^(τL)] on ``TAUS``, without the smoothing
        :param known_error: bound on its error
        """
        contour, tau = self.contour, self.contour.tau
        total = contour.smoothing**2 + self.variance
        turn = np.exp(-1j * epsilon * self.omega)
        both, weight = self._weighted
        measure = contour.step / pi
        raw = measure * float(np.einsum("j,j->", turn, both[0]).real)
        # a dilation may lift |ρ| above 1, by no more than it adds to K(τ)
        rise = self.variance * tau * (tau + 1) / 2
        if not rise <= _MOST_RISE:
            return Bounds(0.0, inf)
        growth = exp(rise)
        each = growth * (expm1(min(self.error, 600.0)) + 8 * ELEMENTARY)  # errors compound
        each += growth * UNIT * (4 * contour.end * abs(epsilon) + 2 * contour.nodes)
        rounding = measure * weight * each
        cut = growth * exp(self.decay) / (pi * contour.end)
        if self.horizon < inf:
            cut += (
                growth * exp(-self.normal * min(self.horizon, 1e150) ** 2 / 2) / (pi * self.horizon)
            )
        ends = contour.index, epsilon, contour.period, total
        alias = alias_bound(known, *ends, error=known_error)
        bump = 0.0
        if total > 0.0:
            bump = _bump(self, turn, each, growth) if total <= _LARGEST**2 else inf
        lower = float(max(0.0, raw - rounding - cut - alias - bump))
        upper = float(max(0.0, raw + rounding + cut))
        power = self.exponent - tau * epsilon
        error = self.exponent_error
        error += 4 * UNIT * (abs(power) + tau * abs(epsilon) + abs(self.exponent))
        least, most = (exp(min(power + side * error, 700.0)) for side in (-1, 1))
        return Bounds(
            lower * least * (1 - 2 * ELEMENTARY), upper * most * (1 + 2 * ELEMENTARY) + TINY
        )


def start(contour: Contour) -> Wave:
    """No factor but the smoothing."""
    none = Wave(
        contour, np.ones(contour.nodes, dtype=complex), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, inf
    )
    return none.times([(Gaussian(contour.smoothing), 1)]) if contour.smoothing else none


def _power(values: ComplexArray, count: int) -> ComplexArray:
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        power: ComplexArray = np.exp(count * np.log(values))
    return np.where(np.abs(values) < TINY, 0.0, power)


def _bump(wave: Wave, turn: ComplexArray, each: float, growth: float) -> float:
    """Bound on E_P[κ(ε - L)], in units of e^(K(τ) - τε)."""
    contour, half = wave.contour, wave.contour.tau + 0.5
    s2, total = contour.smoothing**2, contour.smoothing**2 + wave.variance
    root = sqrt(total)
    if wave.variance == 0.0:
        # (1 + s) s² e^(s²/8) times the density of the smoothed loss
        front, more = (1 + root) * total * exp(s2 / 8), 0.0
    else:
        # a wider bump on the loss after the lattice: 1.25 sqrt(2)
        front, more = 1.7678 * (1 + root) * total * exp(s2 / 8), s2 / 2 + wave.variance
    if not more * half**2 <= _MOST_RISE:
        return inf
    omega, size = wave.omega, exp(more * half**2)
    damp = np.exp(more * (half**2 - omega * omega + 2j * half * omega)) if more else np.ones(1)
    measure = contour.step / pi
    value = measure * float(np.einsum("j,j->", turn * damp, wave.halved).real)
    rounding = measure * contour.nodes * size * 2 * each
    # what is behind the last node: ∫ e^(-qω²) from Ω is at most e^(-qΩ²) / (2qΩ)
    damping = wave.normal / 2 + more  # the smoothing is among the Gaussians
    cut = (
        growth * size * exp(wave.always - more * contour.end**2) / (2 * pi * damping * contour.end)
    )
    return front * (max(0.0, value) + rounding + cut) * (1 + 64 * ELEMENTARY)
