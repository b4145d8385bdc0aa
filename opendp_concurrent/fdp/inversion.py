"""Bounds on the profile of a product, by Fourier inversion on a contour.

With K(τ) = ln E_P[e^(τL); L finite], ρ(ω) = E_P[e^((τ+iω)L)] e^(-K(τ)) and t = τ + iω, τ > 0,

    δ(ε) = P(L = ∞) + e^(K(τ) - τε) (1/2π) ∫ ρ(ω) e^(-iωε) / (t (t + 1)) dω.

The integral is replaced by a sum over nodes. Four errors are bounded.

1. *Aliasing.* The sum over nodes of distance 2π/P is, by Poisson's formula, the sum over integers m
   of e^(τmP) δ(ε + mP). All terms are positive. Those with m ≠ 0 are bounded by Chernoff's bound at
   other τ: ``contour.alias_bound``.
2. *Truncation* at Ω: at most (1/π) sup |ρ| / Ω, with the supremum over ω > Ω. Each factor bounds
   its own part.
3. *Rounding.* Each factor bounds the error of ρ; the weights |1/(t (t+1))| are summed.
4. *Smoothing.* Where ρ does not decay, the product is composed with a Gaussian of small μ = s. So
   the likelihood ratio is multiplied by some ξ with mean 1, and δ grows, by at most E_P[κ(ε - L)],
   where κ(y) <= (1 + s)/sqrt(2π) s e^(y/2 - y²/(2s²)) is the time value of an option: with
   a = y/s - s/2 and Mills' ratio R it is φ(a)(R(a) - R(a+s)) <= s φ(a)(1 - a R(a)). The expectation
   is a second integral over the same nodes.

These bounds are derived here. Tests compare them with closed forms, enumeration and big floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, expm1, inf, log, pi
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, ComplexArray, Transform
from .contour import Contour, Counted, alias_bound
from .factor import Invertible
from .gaussian import Gaussian

_STEPS = 60  # to a root


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
        """Values over t (t + 1) and over t + 1, and the sum of |1 / (t (t + 1))|."""
        t = self.contour.tau + 1j * self.omega
        weights = 1 / (t * (t + 1))
        both = np.stack([self.halved * weights, self.halved / (t + 1)])
        return both, float(np.sum(np.abs(weights)))

    def value(self, epsilon: float) -> tuple[float, float]:
        """The finite part of δ(``epsilon``) and its slope, approximately."""
        both, _ = self._weighted
        scale = self.contour.step / pi * exp(min(self.cumulant - self.contour.tau * epsilon, 700.0))
        value, slope = np.einsum("j,ij->i", np.exp(-1j * epsilon * self.omega), both).real
        return scale * float(value), scale * float(slope)

    def root(
        self, delta: float, infinite: float, near: float, high: float, width: float
    ) -> tuple[float, float]:
        """About the ε with this δ, and -d ln δ / dε there, by Newton's method on ln δ.

        :param infinite: what δ has beside the finite part
        :param near: where to start, in [0, ``high``]
        :param width: relative
        """
        low, ratio = 0.0, 0.0
        for _ in range(_STEPS):
            value, slope = self.value(near)
            middle = value + infinite
            low, high = (low, min(high, near)) if middle <= delta else (max(low, near), high)
            ratio = slope / middle if middle > 0.0 else 0.0
            onward = near + log(middle / delta) / ratio if ratio > 0.0 else inf
            before, near = near, onward if low <= onward <= high else (low + high) / 2
            if abs(near - before) <= width * before:
                break
        return near, ratio

    def invert(self, cumulants: Array, cumulant_errors: Array, epsilon: float) -> Bounds:
        """Bounds on the finite part of δ(``epsilon``).

        :param cumulants: K on ``TAUS``, without the smoothing
        :param cumulant_errors: bounds on their errors
        """
        contour, tau = self.contour, self.contour.tau
        phases = np.exp(-1j * epsilon * self.omega)
        both, weight = self._weighted
        measure = contour.step / pi
        raw = measure * float(np.einsum("j,j->", phases, both[0]).real)
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
    one = factor.transform(*at)
    if count == 1:
        return one
    error = count * (one.error + 32 * UNIT) + ELEMENTARY
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        powers: ComplexArray = np.exp(count * np.log(one.values))
    powers = np.where(np.abs(one.values) < TINY, 0.0, powers)
    return Transform(powers, error)
