"""The Gaussian family: N(0, 1) against N(μ, 1), whose squares add up [DRS22, Corollary 2]."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import scipy

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

SPECIAL = 2e-13  # relative error of SciPy's erfcx, ndtr, log_ndtr and wofz; it claims 1e-13
ROOT, SQRT2 = float(np.sqrt(np.pi / 2)), float(np.sqrt(2.0))
_LARGEST = 1e150  # μ whose square is a double
_UNDERFLOW = 37.0  # standard deviations where densities come near the least doubles


def mills(x: Array) -> Array:
    """Mills' ratio (1 - Φ)/φ."""
    value: Array = ROOT * scipy.special.erfcx(x / SQRT2)
    return value


def gaussian_profile(mu: float, epsilon: Array) -> Bounds:
    """δ(ε) = φ(a) (R(a) - R(a + μ)), a = ε/μ - μ/2, with Mills' ratio R [DRS22, Corollary 1]."""
    below = np.minimum(epsilon, 0.0)
    flat = -np.expm1(below)  # 1 - e^ε for ε < 0: δ without privacy loss
    if mu == 0.0:
        return probabilities(flat * (1 - ELEMENTARY), flat * (1 + ELEMENTARY))
    if not mu < _LARGEST:
        return probabilities(flat * (1 - ELEMENTARY), np.ones_like(flat))
    # the pair is symmetric: below 0, δ(ε) = 1 - e^ε + e^ε δ(-ε)
    above, factor = _above_zero(mu, np.abs(epsilon)), np.exp(below)
    return probabilities(
        flat * (1 - ELEMENTARY) + factor * above.lower * (1 - 2 * ELEMENTARY) - UNIT * flat,
        flat * (1 + ELEMENTARY) + factor * above.upper * (1 + 2 * ELEMENTARY) + UNIT * flat,
    )


def _above_zero(mu: float, epsilon: Array) -> Bounds:
    """δ at ε >= 0; from 10^4 standard deviations on, where δ is below ``TINY``, that at 10^4."""
    with np.errstate(over="ignore"):
        ratio = np.minimum(epsilon / mu, mu / 2 + 1e4)
    a = ratio - mu / 2
    b = a + mu
    shift = 4 * UNIT * (ratio + mu)  # error of a and of b
    # for a > 0: Mills' ratios, which keep relative accuracy
    right, special = np.maximum(a, 0.0), scipy.special
    first, second = mills(right), mills(right + mu)
    density = np.exp(-right * right / 2) / np.sqrt(2 * np.pi)
    tail = density * (first - second)
    relative = (right + 2) * shift + 8 * UNIT * (1 + right * right) + ELEMENTARY
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
    error = np.where(a > 0, tail_error, plain_error) + np.where(a > _UNDERFLOW, TINY, 0.0)
    return probabilities(value - error, value + error)


@dataclass(frozen=True)
class Gaussian(TwoSided):
    """N(0, 1) against N(μ, 1)."""

    mu: float

    infinite = mass_error = 0.0
    largest_loss = largest_loss_lower = gaussian = inf
    symmetric = True

    @property
    def variance(self) -> float:
        """μ², which is exactly the variance of the loss."""
        return self.mu * self.mu

    def log_mgf(self, tau: Array) -> Array:
        """τ (τ + 1) μ² / 2."""
        return tau * (tau + 1) * (self.variance / 2)

    def mgf_error(self, tau: Numbers) -> Any:
        """A few roundings, that of μ among them."""
        return 8 * UNIT * self.log_mgf(np.asarray(tau))

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """Of the normal distribution with mean (τ + 1/2) μ² and variance μ²."""
        omega = step * np.arange(nodes)
        exponent = -omega * omega * (self.variance / 2)
        phase = omega * ((tau + 0.5) * self.variance)
        # |value| * (relative error of exponent and phase); x e^-x is below 1/2
        error = 4 * ELEMENTARY + 12 * UNIT * (0.5 + float(np.max(np.exp(exponent) * phase)))
        return Transform(np.exp(exponent + 1j * phase), error)

    def log_decay(self, tau: float, omega: Array) -> Array:
        """-ω² μ² / 2."""
        del tau
        return -omega * omega * (self.variance / 2) * (1 - 4 * UNIT)

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε."""
        return gaussian_profile(self.mu, epsilon)

    def swapped(self) -> Gaussian:
        """The pair (Q, P), which is the same."""
        return self
