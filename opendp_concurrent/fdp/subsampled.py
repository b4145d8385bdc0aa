"""Poisson subsampling: a unit takes part with probability ``rate`` [ZDW22].

Q is the law without the unit, and (1 - q) Q + q P₀ the law with it, where (P₀, Q) is the pair of
the noise. If the unit is removed, the pair is ((1 - q) Q + q P₀, Q); if it is added, the swapped
one. The direction is that of the neighbours, so it is the same for a whole session.

With the profile δ₀ of (P₀, Q), and ε' = ln(1 + (e^ε - 1)/q), the profiles are

    removed:  δ(ε) = q δ₀(ε') where e^ε > 1 - q, and 1 - e^ε elsewhere;
    added:    δ(ε) = (1 - (1 - q) e^ε) δ₀(-ln(1 + (e^-ε - 1)/q)) where (1 - q) e^ε < 1, and 0.

For Σ p - e^ε q over an event is q (P₀ - e^ε' Q) and, if the unit is added, e^-ε' times the factor
in front, because (Q, P₀) has the profile δ₀, too: the pair of the noise is symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, log, log1p, nextafter
from typing import Any

import numpy as np

from ..arguments.written import written
from . import decay, quadrature
from .bounds import (
    ELEMENTARY,
    TINY,
    UNIT,
    Array,
    Bounds,
    Numbers,
    Transform,
    TwoSided,
    probabilities,
)
from .gaussian import Gaussian
from .laplace import Laplace

_HUGE = 1e300  # larger odds count as this
_NO_BOUND = 1e3  # an error with which inversion.py gives up
_MOST_PHASES = 2**30  # of a quadrature; some seconds
_TOGETHER = 16  # exponents that share a quadrature


@written("subsampled", "noise", "size", "rate", "unit")
@dataclass(frozen=True)
class Subsampled(TwoSided):
    """Gaussian or Laplace noise with a subsampled unit.

    :ivar noise: "gaussian" or "laplace"
    :ivar size: μ of Gaussian noise, ε of Laplace noise
    :ivar rate: probability with which the unit takes part, in (0, 1)
    :ivar unit: "removed" or "added"
    """

    noise: str
    size: float
    rate: float
    unit: str

    infinite = mass_error = 0.0
    symmetric = False

    @property
    def whole(self) -> Gaussian | Laplace:
        """The noise without subsampling."""
        return Gaussian(self.size) if self.noise == "gaussian" else Laplace(self.size)

    @property
    def gaussian(self) -> float:
        """μ of the Gaussian noise: whoever knows that the unit took part can leave it out."""
        return self.size if self.noise == "gaussian" else inf

    @cached_property
    def largest_loss(self) -> float:
        """If the unit is added: -ln(1 - q); else that of r at the largest loss of the noise."""
        if self.unit == "added":
            found = -log1p(-self.rate)
        elif self.noise == "gaussian":
            return inf
        else:
            value, error, _ = quadrature.losses(np.array([self.size]), np.zeros(1), self.rate)
            found = float(value[0] + error[0])
        return nextafter(found * (1 + 2 * ELEMENTARY), inf)

    @property
    def largest_loss_lower(self) -> float:
        """The same, rounded down."""
        if self.unit == "removed" and self.noise == "laplace":
            value, error, _ = quadrature.losses(np.array([self.size]), np.zeros(1), self.rate)
            return float(value[0] - error[0]) * (1 - 2 * ELEMENTARY)
        return self.largest_loss * (1 - 8 * ELEMENTARY)

    @cached_property
    def variance(self) -> float:
        """Approximately, from K at small τ."""
        tau = np.array([0.0, 0.25, 0.5])
        low, middle, high = self.log_mgf(tau)
        return max(float(high - 2 * middle + low) * 16.0, float(self._spread))

    @property
    def _spread(self) -> float:
        return min(self.rate * self.size, 1.0) ** 2 * 1e-3

    def swapped(self) -> Subsampled:
        """The pair (Q, P): the unit is added where it was removed."""
        return replace(self, unit="added" if self.unit == "removed" else "removed")

    # --- the profile -----------------------------------------------------------------------

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε, from that of the noise."""
        epsilon = np.asarray(epsilon, dtype=float)
        flat = -np.expm1(np.minimum(epsilon, 0.0))  # δ is never below 1 - e^ε
        if self.unit == "removed":
            low, high = self._inner(epsilon)
            front, front_error = self.rate, 2 * UNIT
            factors = np.full_like(flat, front), np.full_like(flat, front)
        else:
            low, high = (-one for one in self._inner(-epsilon)[::-1])
            power = epsilon + log1p(-self.rate)
            wrong = ELEMENTARY * abs(log1p(-self.rate)) + 2 * UNIT * np.abs(power)
            factors = (
                -np.expm1(np.minimum(power + wrong, 0.0)),
                -np.expm1(np.minimum(power - wrong, 0.0)),
            )
            front_error = ELEMENTARY + 2 * UNIT
        least, most = self.whole.profile(high).lower, self.whole.profile(low).upper
        lower = factors[0] * least * (1 - front_error)
        upper = factors[1] * most * (1 + front_error)
        upper = np.where(factors[1] > 0.0, upper + TINY, 0.0)
        lower = np.where(lower < TINY, 0.0, lower)  # a small rate underflows
        return probabilities(
            np.maximum(lower, flat * (1 - ELEMENTARY)), np.maximum(upper, flat * (1 + ELEMENTARY))
        )

    def _inner(self, epsilon: Array) -> tuple[Array, Array]:
        """The number ln(1 + (e^ε - 1)/q), between two bounds; -∞ where there is none."""
        q = self.rate
        y = np.clip(np.expm1(np.minimum(epsilon, 1.0)) / q, -_HUGE, _HUGE)
        wrong = np.abs(y) * (ELEMENTARY + 4 * UNIT)
        low, high = (np.log1p(np.maximum(y + side * wrong, -1.0)) for side in (-1, 1))
        far = epsilon - log(q) + np.log1p((q - 1) * np.exp(-np.maximum(epsilon, 1.0)))
        size = np.abs(epsilon) + abs(log(q)) + 1
        ends = []
        for side, near in ((-1, low), (1, high)):
            near = near + side * (ELEMENTARY * np.where(np.isinf(near), 0.0, np.abs(near)))
            away = far + side * 4 * ELEMENTARY * np.where(np.isinf(size), 0.0, size)
            if side > 0:  # beyond, δ is below ``TINY``
                near = np.where(y < _HUGE, near, np.inf)
            ends.append(np.where(epsilon > 1.0, away, near))
        return ends[0], ends[1]

    # --- the characteristic function --------------------------------------------------------

    def _power(self, tau: Numbers) -> Any:
        """The exponent a of r with E_P[e^(τL)] = E_Q[r^a]."""
        return 1.0 + tau if self.unit == "removed" else 0.0 - tau

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of E_Q[r^a]; an upper bound where a quadrature would be too long."""
        return self._cumulants(np.asarray(tau, dtype=float))[0]

    def mgf_error(self, tau: Numbers) -> Any:
        """Errors of quadrature and rounding, or the distance of an upper and a lower bound."""
        return self._cumulants(np.asarray(tau, dtype=float))[1]

    def _cumulants(self, tau: Array) -> tuple[Array, Array]:
        value, error = _moments(self, tau.tobytes())
        return value.reshape(tau.shape), error.reshape(tau.shape)

    def nodes(self, low: float, high: float, omega: float) -> quadrature.Nodes | None:
        """The quadrature for exponents in [low, high] and frequencies up to ω."""
        if self.noise == "laplace":
            return quadrature.laplace_nodes(self.size, self.rate, low, high, omega)
        return quadrature.gaussian_nodes(self.size, self.rate, low, high, omega)

    def coarse(self, tau: float) -> tuple[float, float]:
        """An upper bound on ln E_Q[r^a], and its distance to a lower bound, by convexity of r^a."""
        q, power = self.rate, self._power(tau)
        plain = float(self.whole.log_mgf(np.array(tau)))
        plain *= 1 + 1e-9
        upper = float(np.logaddexp(log1p(-q), log(q) + plain))
        if self.largest_loss < inf:
            upper = min(upper, abs(tau) * self.largest_loss)
        lower = max(0.0, power * log(q) + plain * (1 - 3e-9) if power > 0.0 else 0.0)
        if tau < 0.0:  # not asked for by inversion
            return (0.0, inf)
        return upper * (1 + 1e-9) + 1e-300, (upper - lower) * (1 + 1e-9) + 2e-9 * upper

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """By quadrature; the frequency is negative where r^a has a negative a."""
        power = float(self._power(tau))
        rule = self.nodes(power, power, step * nodes)
        if rule is None or len(rule.losses) * nodes > _MOST_PHASES:
            return Transform(np.ones(nodes, dtype=complex), _NO_BOUND)
        sign = 1 if self.unit == "removed" else -1
        return Transform(*rule.transform(power, sign, step, nodes))

    def log_decay(self, tau: float, omega: Array) -> Array:
        """From the density of the loss, by ``decay``."""
        density, omega = _density(self, tau), np.asarray(omega, dtype=float)
        return np.zeros_like(omega) if density is None else density.log_bound(omega)


@lru_cache(maxsize=4096)
def _moments(factor: Subsampled, given: bytes) -> tuple[Array, Array]:
    """The logarithm of E_Q[r^a] for several τ, a few at a time."""
    tau = np.frombuffer(given)
    value, error = np.empty_like(tau), np.empty_like(tau)
    order = np.argsort(tau, kind="stable")
    parts = [order[start : start + _TOGETHER] for start in range(0, len(tau), _TOGETHER)]
    while parts:
        part = parts.pop()
        powers = factor._power(tau[part])
        rule = factor.nodes(float(np.min(powers)), float(np.max(powers)), 0.0)
        if rule is not None:
            value[part], error[part] = rule.moments(powers)
        elif len(part) > 1:
            parts += [part[: len(part) // 2], part[len(part) // 2 :]]
        else:
            value[part], error[part] = factor.coarse(float(tau[part[0]]))
    for one in (value, error):
        one.flags.writeable = False
    return value, error


@lru_cache(maxsize=1024)
def _density(factor: Subsampled, tau: float) -> decay.Density | None:
    value, error = (float(one[0]) for one in factor._cumulants(np.array([tau])))
    if not abs(value - error) < inf:
        return None
    known = factor.size, factor.rate, float(factor._power(tau)), value - error
    if factor.noise == "gaussian":
        return decay.gaussian_density(*known)
    return decay.laplace_density(*known, 2 * error)
