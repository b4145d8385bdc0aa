"""Laplace noise that is cut off at a bound, at a shift of ``epsilon`` scales.

Let C = 1/(1 - e^-r), where r is the bound in scales, and a the shift. One law lives on [-r, r] and
the other one on [a - r, a + r]. On what both share the loss is a - 2x for 0 <= x <= a and constant
beyond. So with b = min(a, 2r - a) and κ = (1 - e^(a-r))₊ the loss has

    the atoms a and -a, of the P-masses κC/2 and e^-a κC/2;
    the density (C/4) e^-(a-ℓ)/2 at ℓ in (-b, b);
    the rest at infinity: e^(a-r) (1 - e^-a) C/2 if a <= r.

    δ(ε) = P(L = ∞) + (C/2) (κ (1 - e^(ε-a)) + e^-(a-b)/2 (1 - e^(ε-b)/2)²) for |ε| <= b;
    E_P[e^(τL); L finite] = (C/2) e^-a/2 (2κ cosh(ua) + sinh(ub)/u), u = τ + 1/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, inf, nextafter
from typing import Any

import numpy as np

from ..arguments.written import written
from .bounds import ELEMENTARY, UNIT, Array, Bounds, Numbers, Transform
from .laplace import Laplace
from .truncated import BoundedNoise


@written("truncated-laplace", "epsilon", "bound")
@dataclass(frozen=True)
class TruncatedLaplace(BoundedNoise):
    """Laplace noise, cut off, against the same noise, shifted.

    :ivar epsilon: shift over scale, at least ``LEAST[0]`` and below twice ``bound``
    :ivar bound: largest absolute value over scale, in [LEAST[1], MOST]
    """

    epsilon: float
    bound: float

    LEAST, MOST = (1e-9, 1e-6), 650.0

    @property
    def mass_error(self) -> float:
        """Relative error of ``infinite``, and of the other masses."""
        return 8 * ELEMENTARY + 8 * UNIT * (self.epsilon + self.bound)

    @cached_property
    def infinite(self) -> float:
        """P-probability of what the other law cannot return, rounded up."""
        a, r = self.epsilon, self.bound
        if a <= r:
            value = exp(a - r) * -expm1(-a) / (2 * -expm1(-r))
        else:
            value = 0.5 + -expm1(r - a) / (2 * -expm1(-r))
        return min(1.0, value * (1 + self.mass_error))

    @property
    def _is_whole(self) -> bool:
        """Whether what both laws share reaches over the shift."""
        return self.epsilon <= self.bound

    @property
    def _middle(self) -> float:
        """b, up to one rounding if it is not a."""
        return self.epsilon if self._is_whole else 2 * self.bound - self.epsilon

    @property
    def _atom(self) -> float:
        """κ."""
        return -expm1(self.epsilon - self.bound) if self._is_whole else 0.0

    @property
    def largest_loss(self) -> float:
        """b, rounded up."""
        return self.epsilon if self._is_whole else nextafter(self._middle, inf)

    @property
    def largest_loss_lower(self) -> float:
        """b, rounded down."""
        return self.epsilon if self._is_whole else nextafter(self._middle, 0.0)

    @property
    def variance(self) -> float:
        """That of the noise before the cut."""
        return Laplace(self.epsilon).variance

    def _above_zero(self, epsilon: Array) -> Bounds:
        """A sum of numbers above 0."""
        a, b = self.epsilon, self._middle
        inside = np.minimum(epsilon, b)
        wrong = 0.0 if self._is_whole else UNIT * (b + inside)  # of b, in the gap
        front, share = 1 / (2 * -expm1(-self.bound)), exp((b - a) / 2)
        rest = -np.expm1((inside - b) / 2)
        value = front * (self._atom * -np.expm1(inside - a) + share * rest * rest)
        error = value * (self.mass_error + 2 * UNIT * a)
        error = error + 2 * front * share * wrong * (rest + wrong)
        most, least = self.infinite, self.infinite * (1 - 2 * self.mass_error)
        beyond = epsilon >= self.largest_loss
        return Bounds(
            np.where(beyond, least, (least + np.maximum(value - error, 0.0)) * (1 - 2 * UNIT)),
            np.where(beyond, most, (most + value + error) * (1 + 2 * UNIT)),
        )

    def _parts(self, u: Array) -> tuple[Array, Array]:
        """The two terms of E_P[e^(τL); L finite] 2/C, in units of e^(ub - a/2); b = a if κ > 0."""
        a, b = self.epsilon, self._middle
        u = np.where(u == 0.0, 1e-9, u)  # continuous and even: second order at 0
        atoms = self._atom * (1 + np.exp(-2 * u * a))
        return atoms, np.expm1(-2 * u * b) / (-2 * u)

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of the formula above; even in τ + 1/2."""
        u = np.abs(np.asarray(tau, dtype=float) + 0.5)
        (atoms, rest), b = self._parts(u), self._middle
        power = (u - 0.5) * b - (self.epsilon - b) / 2
        value: Array = power + np.log((atoms + rest) / (2 * -expm1(-self.bound)))
        return value

    def mgf_error(self, tau: Numbers) -> Any:
        """Errors of the exponentials, and of a sum."""
        return self.mass_error + 4 * ELEMENTARY + 16 * UNIT * (1 + np.abs(tau)) * (1 + self.epsilon)

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """The same at u = τ + 1/2 + iω."""
        a, b, half = self.epsilon, self._middle, tau + 0.5
        omega = step * np.arange(nodes)
        one, other = np.exp(1j * omega * a), np.exp(1j * omega * b)
        values = self._atom * (one + exp(-2 * half * a) * np.conj(one))
        less = exp(-2 * half * b)
        values = values + (other - less * np.conj(other)) / (2 * (half + 1j * omega))
        whole = values[0].real
        sizes = self._atom * (1 + exp(-2 * half * a)) + (1 + less) / (2 * half)
        phase = float(omega[-1]) * a
        each = self.mass_error + 16 * ELEMENTARY + 16 * UNIT * (phase + a * (tau + 1))
        return Transform(values / whole, sizes * each / whole)

    def swapped(self) -> TruncatedLaplace:
        """The pair (Q, P), which is the same: reflect both."""
        return self
