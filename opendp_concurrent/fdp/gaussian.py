"""The Gaussian family: N(0, 1) against N(μ, 1), whose squares add up [DRS22, Corollary 2]."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, inf, pi, sin
from typing import Any

import numpy as np
import scipy

from . import bounds

SPECIAL = 2e-13  # relative error of SciPy's erfcx, ndtr, log_ndtr and wofz; it claims 1e-13
ROOT, SQRT2 = float(np.sqrt(np.pi / 2)), float(np.sqrt(2.0))
_LARGEST = 1e150  # μ whose square is a double
_UNDERFLOW = 37.0  # standard deviations where densities come near the least doubles


def mills(x: bounds.Array) -> bounds.Array:
    """Mills' ratio (1 - Φ)/φ."""
    value: bounds.Array = ROOT * scipy.special.erfcx(x / SQRT2)
    return value


def gaussian_profile(mu: float, epsilon: bounds.Array) -> bounds.Bounds:
    """δ(ε) = φ(a) (R(a) - R(a + μ)), a = ε/μ - μ/2, with Mills' ratio R [DRS22, Corollary 1]."""
    below = np.minimum(epsilon, 0.0)
    flat = -np.expm1(below)  # 1 - e^ε for ε < 0: δ without privacy loss
    if mu == 0.0:
        return bounds.probabilities(flat * (1 - bounds.ELEMENTARY), flat * (1 + bounds.ELEMENTARY))
    if not mu < _LARGEST:
        return bounds.probabilities(flat * (1 - bounds.ELEMENTARY), np.ones_like(flat))
    # the pair is symmetric: below 0, δ(ε) = 1 - e^ε + e^ε δ(-ε)
    above, factor = _above_zero(mu, np.abs(epsilon)), np.exp(below)
    return bounds.probabilities(
        flat * (1 - bounds.ELEMENTARY)
        + factor * above.lower * (1 - 2 * bounds.ELEMENTARY)
        - bounds.UNIT * flat,
        flat * (1 + bounds.ELEMENTARY)
        + factor * above.upper * (1 + 2 * bounds.ELEMENTARY)
        + bounds.UNIT * flat,
    )


def _above_zero(mu: float, epsilon: bounds.Array) -> bounds.Bounds:
    """δ at ε >= 0; from 10^4 standard deviations on, where δ is below ``TINY``, that at 10^4."""
    with np.errstate(over="ignore"):
        ratio = np.minimum(epsilon / mu, mu / 2 + 1e4)
    a = ratio - mu / 2
    b = a + mu
    shift = 4 * bounds.UNIT * (ratio + mu)  # error of a and of b
    # for a > 0: Mills' ratios, which keep relative accuracy
    right, special = np.maximum(a, 0.0), scipy.special
    first, second = mills(right), mills(right + mu)
    density = np.exp(-right * right / 2) / np.sqrt(2 * np.pi)
    tail = density * (first - second)
    relative = (right + 2) * shift + 8 * bounds.UNIT * (1 + right * right) + bounds.ELEMENTARY
    # R' is between -1 and 0 there: an error in a moves R by at most that much
    tail_error = density * (SPECIAL * (first + second) + 2 * shift) + np.abs(tail) * relative
    # for a <= 0: Φ(-a) - e^ε Φ(-b), where both terms are at most 1
    power = np.minimum(epsilon + special.log_ndtr(-b), 0.0)
    one, two = special.ndtr(-a), np.exp(power)
    plain_error = (
        one * SPECIAL
        + shift
        + two * (SPECIAL * (1 + np.abs(power) + 2 * np.abs(epsilon)) + (1 + np.abs(b)) * shift)
    )
    value = np.where(a > 0, tail, one - two)
    error = np.where(a > 0, tail_error, plain_error) + np.where(a > _UNDERFLOW, bounds.TINY, 0.0)
    return bounds.probabilities(value - error, value + error)


@dataclass(frozen=True)
class Gaussian(bounds.TwoSided):
    """N(0, 1) against N(μ, 1)."""

    mu: float

    infinite = mass_error = 0.0
    largest_loss = largest_loss_lower = gaussian = inf
    symmetric = True

    @property
    def variance(self) -> float:
        """μ², which is exactly the variance of the loss."""
        return self.mu * self.mu

    def log_mgf(self, tau: bounds.Array) -> bounds.Array:
        """τ (τ + 1) μ² / 2."""
        return tau * (tau + 1) * (self.variance / 2)

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """A few roundings, that of μ among them."""
        return 8 * bounds.UNIT * self.log_mgf(np.asarray(tau))

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """Of the normal distribution with mean (τ + 1/2) μ² and variance μ²."""
        omega = step * np.arange(nodes)
        exponent = -omega * omega * (self.variance / 2)
        phase = omega * ((tau + 0.5) * self.variance)
        # |value| * (relative error of exponent and phase); x e^-x is below 1/2
        error = 4 * bounds.ELEMENTARY + 12 * bounds.UNIT * (
            0.5 + float(np.max(np.exp(exponent) * phase))
        )
        return bounds.Transform(np.exp(exponent + 1j * phase), error)

    def log_decay(self, tau: float, omega: bounds.Array) -> bounds.Array:
        """-ω² μ² / 2."""
        del tau
        return -omega * omega * (self.variance / 2) * (1 - 4 * bounds.UNIT)

    def profile(self, epsilon: bounds.Array) -> bounds.Bounds:
        """δ at each real ε."""
        return gaussian_profile(self.mu, epsilon)

    def swapped(self) -> Gaussian:
        """The pair (Q, P), which is the same."""
        return self


# The discrete Gaussian by its theta series [CKS20]: no outcome is listed.
#
# X has masses in proportion to e^(-x²/(2σ²)), and the loss is L = (s - 2X) s / (2σ²). Let v =
# s²/σ², p = 2πσ²/s and G(ω) = e^(-ω²v/2 + iω(τ + 1/2)v). By Poisson's formula,
#
#     E[e^((τ+iω)L)] = e^((τ²+τ)v/2) Σ_m (-1)^(ms) G(ω - mp) / (1 + 2 Σ_(m>0) e^(-2π²m²σ²)).
#
# At ω = 0 the sum is 1 + 2 Σ_(m>0) e^(-2π²m²σ²) cos(2πmsτ). Beyond m = ±1 from the nearest multiple
# of p, terms are at most 2 e^(-44σ²) together, below rounding for σ >= 1.

LEAST_SCALE = 1.0
_ZERO = 1e-14  # sums that are smaller are replaced by this


@dataclass(frozen=True)
class Theta:
    """A discrete Gaussian of a scale σ >= 1, moved by the integer s > 0."""

    scale: float
    shift: int

    @property
    def variance(self) -> float:
        """v, which is nearly the variance of the loss."""
        ratio = self.shift / self.scale
        return ratio * ratio

    @property
    def period(self) -> float:
        """P."""
        return 2 * pi * self.scale * (self.scale / self.shift)

    @property
    def _ripple(self) -> float:
        """2 e^(-2π²σ²): how far the sum at ω = 0 is from 1; at most 6e-9."""
        return 2 * exp(-2 * (pi * self.scale) ** 2)

    def log_mgf(self, tau: bounds.Array) -> bounds.Array:
        """(τ² + τ) v / 2, and the ratio of two sums that are nearly 1."""
        tau = np.asarray(tau, dtype=float)
        value: bounds.Array = tau * (tau + 1) * (self.variance / 2)
        if self._ripple:
            waves = np.cos(2 * pi * np.mod(self.shift * tau, 1.0))
            value = value + (np.log1p(self._ripple * waves) - np.log1p(self._ripple))
        return value

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Roundings of v and of the angle sτ; what is left out is below the fourth power."""
        tau, small = np.asarray(tau, dtype=float), self._ripple
        angle = np.minimum(2.0, 16 * bounds.UNIT * self.shift * tau)
        smooth = 12 * bounds.UNIT * (tau * (tau + 1) * (self.variance / 2))
        return smooth + small * (4 * bounds.ELEMENTARY + 8 * angle) + small**4

    def logs(self, tau: float, step: float, nodes: int) -> tuple[bounds.ComplexArray, bounds.Array]:
        """Ln ρ at the nodes, and bounds on the relative errors of ρ."""
        v, p = self.variance, self.period
        omega = step * np.arange(nodes)
        turns = np.round(omega / p)
        near = omega - turns * p
        turn = pi * np.mod(turns * (self.shift % 2), 2.0)
        mean = (tau + 0.5) * v
        value: bounds.ComplexArray = -near * near * (v / 2) + 1j * (near * mean + turn)
        # of v, of p and of ω: an error d of ω moves the exponent by d (|ω'| v + mean)
        moved = 8 * bounds.UNIT * np.where(turns == 0.0, np.abs(near), omega)
        error: bounds.Array = 8 * bounds.UNIT * (near * near * v / 2 + np.abs(near) * mean)
        error = error + moved * (np.abs(near) * v + mean) + 2 * bounds.UNIT * np.abs(turn)
        error = np.expm1(np.minimum(error, 600.0))
        if self.scale < 12.0:  # else neighbours are below e^-708, where G is least
            more, wrong = self._neighbours(tau, near, step * nodes)
            value, error = value + more, error + wrong + error * wrong
        return value, error

    def _neighbours(
        self, tau: float, near: bounds.Array, end: float
    ) -> tuple[bounds.ComplexArray, bounds.Array]:
        """Ln Σ_m (-1)^(ms) G(ω' - mp) / G(ω'), less that at ω = 0; and bounds on the errors.

        G(ω' ± p) / G(ω') is (-1)^s e^(-2πs (p/2 ± ω') ± 2πisτ).
        """
        rate, angle = 2 * pi * self.shift, 2 * pi * ((self.shift * tau) % 1.0)
        ahead, behind = (np.exp(-rate * (self.period / 2 + side * near)) for side in (1, -1))
        both = (ahead + behind) * cos(angle) + 1j * ((ahead - behind) * sin(angle))
        size = np.abs(1 + both)
        both = np.where(size < _ZERO, _ZERO - 1.0, both)
        size = np.maximum(size, _ZERO)
        less = float(np.log1p(self._ripple * cos(angle)))
        # of the exponents, of ω', of the angle, and of functions; what is left out is below 1e-19
        wrong = (
            32 * bounds.UNIT * ((pi * self.scale) ** 2 + self.shift * (end + tau))
            + 4 * bounds.ELEMENTARY
        )
        error: bounds.Array = ((ahead + behind) * min(wrong, 4.0) + 1e-19) / size
        error = error + np.where(size <= 2 * _ZERO, 2.0, 0.0) + self._ripple * min(wrong, 4.0)
        return bounds.log1p_complex(both) - less, error

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """ρ at the nodes."""
        logs, error = self.logs(tau, step, nodes)
        values = np.exp(logs)
        whole = np.abs(values) * (error + 2 * bounds.UNIT * np.abs(logs)) + 2 * bounds.ELEMENTARY
        return bounds.Transform(values, 1.01 * float(np.max(whole)))
