"""Gaussian noise that is cut off at a bound, at a shift of ``mu`` standard deviations.

Let r be the bound in standard deviations, Z = Φ(r) - Φ(-r), and B = μ (r - μ/2). One law lives on
[-r, r] and the other one on [μ - r, μ + r]. On what both share the loss is μ²/2 - μy, in [-B, B].
With the profile δ_μ of the noise before the cut,

    P(L = ∞) = (Φ(r) - Φ(r - μ)) / Z;
    δ(ε) = (δ_μ(ε) + (e^ε - 1) Φ(-r)) / Z for 0 <= ε <= B, and P(L = ∞) beyond;
    E_P[e^(τL); L finite] = e^(τ(τ+1)μ²/2) (Φ(r + τμ) - Φ(μ - r + τμ)) / Z.

For complex τ, Φ is written with Mills' ratio M(ζ) = (1 - Φ(ζ))/φ(ζ), Re ζ >= 0, an integral of
e^(-ζs - s²/2) over s > 0. By parts |M'(ζ)| <= 1.22/|ζ|.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log, pi, sqrt
from typing import Any

import numpy as np
import scipy

from ..arguments.written import written
from .bounds import ELEMENTARY, UNIT, Array, Bounds, ComplexArray, Numbers, Transform
from .gaussian import ROOT, SPECIAL, SQRT2, gaussian_profile, mills
from .truncated import BoundedNoise

_NODES = 12


def _density(x: float) -> float:
    return exp(-x * x / 2) / sqrt(2 * pi)


def _complex_mills(x: float, y: Array) -> ComplexArray:
    """M(x + iy), x >= 0."""
    value: ComplexArray = ROOT * scipy.special.wofz((1j * x - y) / SQRT2)
    return value


def _short(middle: Array, width: float) -> Array:
    """∫ e^(-cx - x²/2) over |x| <= width/2, c = ``middle`` >= 0, if (c + 1) width <= 2.

    A Gauss rule. On the Bernstein ellipse of ρ = 8 the integrand is below e^12, so 12 nodes err by
    less than 4 e^12 8^-23/7 of the width, and the integral is at least e^-3/2 of it.
    """
    points, weights = np.polynomial.legendre.leggauss(_NODES)
    x = points * width / 2
    value: Array = np.exp(-np.multiply.outer(middle, x) - x * x / 2) @ weights * (width / 2)
    return value


_SHORT = 16 * ELEMENTARY  # relative error of _short, without that of the exponent


@written("truncated-gaussian", "mu", "bound")
@dataclass(frozen=True)
class TruncatedGaussian(BoundedNoise):
    """Gaussian noise, cut off, against the same noise, shifted.

    :ivar mu: shift over scale, at least ``LEAST[0]`` and below twice ``bound``
    :ivar bound: largest absolute value over scale, in [LEAST[1], MOST]
    """

    mu: float
    bound: float

    LEAST, MOST = (1e-9, 1e-3), 36.0

    @property
    def mass_error(self) -> float:
        """Relative error of ``infinite``."""
        return 8 * SPECIAL + 16 * UNIT * (1 + self.bound) ** 2

    @cached_property
    def _whole(self) -> float:
        """Z."""
        if self.bound <= 1.0:
            return float(_short(np.zeros(1), 2 * self.bound)[0]) / sqrt(2 * pi)
        return 1 - 2 * float(scipy.special.ndtr(-self.bound))

    @cached_property
    def infinite(self) -> float:
        """P-probability of what the other law cannot return, rounded up."""
        mu, middle = self.mu, abs(self.bound - self.mu / 2)
        if (middle + 1) * mu <= 2.0:
            value = exp(-middle * middle / 2) * float(_short(np.array([middle]), mu)[0])
            value /= sqrt(2 * pi)
        else:
            first, second = scipy.special.ndtr(np.array([mu - self.bound, -self.bound]))
            value = float(first - second)
        return min(1.0, value / self._whole * (1 + self.mass_error))

    @property
    def _reach(self) -> float:
        """B, up to a relative error of 3 roundings."""
        return self.mu * (self.bound - self.mu / 2)

    @property
    def largest_loss(self) -> float:
        """B, rounded up."""
        return self._reach * (1 + 8 * UNIT)

    @property
    def largest_loss_lower(self) -> float:
        """B, rounded down."""
        return self._reach * (1 - 8 * UNIT)

    @property
    def variance(self) -> float:
        """That of the noise before the cut, or less."""
        return min(self.mu, self._reach) ** 2

    def _above_zero(self, epsilon: Array) -> Bounds:
        """A sum of two numbers above 0. Its least value is that at B."""
        inside = np.minimum(epsilon, self.largest_loss)
        noise = gaussian_profile(self.mu, inside)
        tail = _density(self.bound) * float(mills(np.array(self.bound)))
        more = np.expm1(inside) * tail
        error = 4 * SPECIAL + 8 * UNIT * (1 + self.bound) ** 2 + _SHORT
        most, least = self.infinite, self.infinite * (1 - 2 * self.mass_error)
        lower = (noise.lower + more) / self._whole * (1 - error)
        upper = (noise.upper + more) / self._whole * (1 + error)
        beyond = epsilon >= self.largest_loss
        return Bounds(
            np.where(beyond, least, np.maximum(lower, least)), np.where(beyond, most, upper)
        )

    # --- the characteristic function --------------------------------------------------------

    def _ends(self, tau: Numbers) -> tuple[Any, Any]:
        """Where the normal distribution is cut after tilting: μ - r + τμ and r + τμ."""
        return self.mu - self.bound + tau * self.mu, self.bound + tau * self.mu

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of the formula above; even in τ + 1/2."""
        return self._cumulants(np.asarray(tau, dtype=float))[0]

    def mgf_error(self, tau: Numbers) -> Any:
        """Errors of the special functions, of a difference, and of the exponent."""
        return self._cumulants(np.asarray(tau, dtype=float))[1]

    def _cumulants(self, tau: Array) -> tuple[Array, Array]:
        """K(τ) and a bound on its error."""
        tau = np.abs(tau + 0.5) - 0.5
        low, high = self._ends(tau)
        value, size = self._in_units(tau)
        # the exponent of the units: φ of the lower end, or that of the whole line
        left = self.mu - self.bound
        tail = tau * self._reach - left * left / 2 - log(2 * pi) / 2
        inner = tau * (tau + 1) * (self.mu * self.mu / 2)
        with np.errstate(divide="ignore"):
            found = np.where(low >= 0.0, tail, inner) + np.log(value) - log(self._whole)
        # a difference is at least a fifth of its terms: else the cut leaves little, see _is_narrow
        fixed = 8 * (1 + self.bound) ** 2 + 128 * (1 + self.bound)
        exponent = 16 * (1 + tau) * self._reach + np.where(low < 0.0, 16 * inner, 0.0)
        rounding = UNIT * (fixed + exponent)
        narrow = self._is_narrow(high)
        relative = np.where(narrow, _SHORT, 4 * SPECIAL * size / value)
        error: Array = relative + rounding + 4 * SPECIAL + 4 * UNIT * np.abs(found)
        return found, error

    def _is_narrow(self, high: Any) -> Any:
        """Whether the cut leaves so little that a difference of tails would lose accuracy."""
        return (high + 1) * (2 * self.bound - self.mu) <= 2.0

    def _in_units(self, tau: Array) -> tuple[Array, Array]:
        """E_P[e^(τL); L finite] Z, in units of φ(low) if low >= 0; the sizes of its terms."""
        low, high = self._ends(tau)
        left, right, width = np.minimum(low, 0.0), np.maximum(low, 0.0), 2 * self.bound - self.mu
        ratio = np.exp(-(2 * tau + 1) * self._reach)
        first, second = mills(right), ratio * mills(np.maximum(high, 0.0))
        below, above = scipy.special.ndtr(left), scipy.special.ndtr(-high)
        value = np.where(low >= 0.0, first - second, 1 - below - above)
        size = np.where(low >= 0.0, first + second, 1 + below + above)
        narrow = self._is_narrow(high)
        if np.any(narrow):
            middle = np.where(narrow, (low + high) / 2, 0.0)  # at least 0, for τ >= -1/2
            front = np.where(low >= 0.0, np.exp(-width / 4 * (middle + right)), 0.0)
            front = np.where(low < 0.0, np.exp(-middle * middle / 2) / sqrt(2 * pi), front)
            value = np.where(narrow, _short(np.maximum(middle, 0.0), width) * front, value)
        return value, size

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """With M at both ends of the cut."""
        mu, reach = self.mu, self._reach
        low, high = (float(one) for one in self._ends(tau))
        omega = step * np.arange(nodes)
        at: Array = np.asarray(omega * mu)
        turn = np.exp(1j * omega * reach)
        boundary = 4 * SPECIAL + 16 * UNIT * (1 + self.bound + mu)
        if low >= 0.0:
            weights = 1.0, exp(-(2 * tau + 1) * reach)
            values = weights[0] * turn * _complex_mills(low, at)
            error = ELEMENTARY
        else:
            weights = _density(low), _density(high)
            exponent, phase = -at * at / 2, at * ((tau + 0.5) * mu)
            values = np.exp(exponent + 1j * phase) - weights[0] * turn * _complex_mills(-low, -at)
            error = 4 * ELEMENTARY + 12 * UNIT * (0.5 + float(np.max(np.exp(exponent) * phase)))
        values = values - weights[1] * np.conj(turn) * _complex_mills(high, at)
        error += sum(weights) * (boundary + 4 * ELEMENTARY) * 2
        error += sum(weights) * 16 * UNIT * (1 + abs(low) + (2 * tau + 1) * reach) * 2
        whole = values[0].real
        if not whole > 4 * error:
            return Transform(np.ones(nodes, dtype=complex), 1e3)  # inversion.py gives up
        return Transform(values / whole, 2 * error / (whole - error))

    def swapped(self) -> TruncatedGaussian:
        """The pair (Q, P), which is the same: reflect both."""
        return self
