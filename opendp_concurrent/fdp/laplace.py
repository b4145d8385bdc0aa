"""The Laplace mechanism, continuous or on a grid, at a shift of ``epsilon`` scales.

For noise on a grid at a shift of d steps, let α = e^(-ε/d). Then P(X <= n) = 1 - α^(n+1)/(1 + α)
for n >= 0, and the loss is (d - 2x) ε/d for 0 <= x <= d. One step is randomized response;
infinitely many steps are the Laplace distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, inf, isinf, log1p
from typing import Any

import numpy as np

from .._checks import tagged
from . import bounds
from .finite import Finite, response

_FEW = 4096  # steps up to which outcomes are listed
_FINE = 2.0**60  # a finer grid becomes this one and loses no less (proof: measures/tradeoffs.py)


@tagged("laplace", "epsilon", "steps")
@dataclass(frozen=True)
class Laplace(bounds.Lasting):
    """Two-sided exponential noise against the same noise, shifted.

    :ivar epsilon: shift over scale; the largest loss
    :ivar steps: shift over step of the grid, an integer; infinite for continuous noise
    """

    epsilon: float
    steps: float = inf

    infinite = mass_error = slack = 0.0
    gaussian = inf
    symmetric, stands_for, unit = True, "", ""

    @property
    def largest_loss(self) -> float:
        """ε."""
        return self.epsilon

    largest_loss_lower = largest_loss

    @property
    def variance(self) -> float:
        """Twice the Kullback-Leibler divergence of the continuous distribution."""
        return 2 * (self.epsilon + expm1(-self.epsilon)) if self.epsilon > 1e-5 else self.epsilon**2

    @property
    def _cell(self) -> float:
        return self.epsilon / self.steps

    def _weights(self) -> tuple[float, float]:
        """Weights of cosh(uε) and of the ratio of hyperbolic sines, without e^(-ε/2)."""
        if isinf(self.steps):
            return 1.0, 0.5
        alpha = exp(-self._cell)
        return 2 / (1 + alpha), -expm1(-self._cell) / (1 + alpha)

    def log_mgf(self, tau: bounds.Array) -> bounds.Array:
        """The logarithm of e^(-ε/2) (a cosh(uε) + b sinh(uε(1 - 1/d)) / sinh(uε/d)), u = τ + 1/2.

        All exponentials are scaled by e^(-uε).
        """
        u = np.asarray(tau, dtype=float) + 0.5
        a, b = self._weights()
        scaled = a * (1 + np.exp(-2 * u * self.epsilon)) / 2 + b * self._ratio(u)
        value: bounds.Array = (u - 0.5) * self.epsilon + np.log(scaled)
        return value

    def _ratio(self, u: bounds.Array) -> bounds.Array:
        """e^(-uε) sinh(uε(1 - 1/d)) / sinh(uε/d), or its limit e^(-uε) sinh(uε) / u."""
        u = np.where(u == 0.0, 1e-9, u)  # continuous at 0
        whole, cell = u * self.epsilon, u * self._cell
        if isinf(self.steps):
            return -np.expm1(-2 * whole) / (2 * u)
        return np.exp(-2 * cell) * np.expm1(-2 * (whole - cell)) / np.expm1(-2 * cell)

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Errors of the exponentials, and of the sum of two large numbers."""
        return 4 * bounds.ELEMENTARY + 4 * bounds.UNIT * (1 + tau) * self.epsilon

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """As :meth:`log_mgf`, with u = τ + 1/2 + iω."""
        omega = step * np.arange(nodes)
        u = (tau + 0.5) + 1j * omega
        a, b = self._weights()
        phase = _phase(omega * self.epsilon)
        # e^(-(τ+1/2)ε) cosh(uε) = (phase + decay / phase) / 2
        back = exp(-(2 * tau + 1) * self.epsilon) * np.conj(phase)
        if isinf(self.steps):
            ratio = (phase - back) / (2 * u)
        else:
            cell = self._cell
            angle, less = omega * cell, exp(-(2 * tau + 1) * cell)
            shrink = less * _phase(-2 * angle)  # e^(-2uε/d)
            rest = 2 * np.sin(angle) ** 2 + 1j * np.sin(2 * angle)  # 1 - e^(-2iωε/d)
            ratio = (phase * shrink - back) / (less * rest - expm1(-(2 * tau + 1) * cell))
        values = a * (phase + back) / 2 + b * ratio
        whole = values[0].real
        largest = float(omega[-1]) * self.epsilon
        error = (
            16 * bounds.ELEMENTARY + 16 * bounds.UNIT * (largest + self.epsilon * (tau + 1))
        ) / whole
        return bounds.Transform(values / whole, error)

    def profile(self, epsilon: bounds.Array) -> bounds.Bounds:
        """For |ε| < ε₀: 1 - e^((ε-ε₀)/2) if continuous; piecewise linear in e^ε on a grid."""
        e0 = self.epsilon
        inside = np.clip(epsilon, -e0, e0)
        if isinf(self.steps):
            value = -np.expm1((inside - e0) / 2)
            error = bounds.ELEMENTARY * (
                value + np.exp((inside - e0) / 2) * (np.abs(inside) + e0) / 2
            )
        else:
            cell, d = self._cell, self.steps
            # n counts the x in 0, 1, ... with a loss above ε; another n gives a lower bound
            n = np.clip(np.ceil((e0 - inside) / (2 * cell)), 1, d)
            odd = log1p(exp(-cell))
            # 1 - α^n / (1 + α) - e^ε α^(d+1-n) / (1 + α)
            one = np.exp(-n * cell - odd)
            two = np.exp(inside - (d + 1 - n) * cell - odd)
            value = (1 - one) - two
            error = bounds.ELEMENTARY * (
                1 + (n * cell + e0 + 1) * one + (np.abs(inside) + 2 * e0 + 1) * two
            )
        left = np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0)))  # where every loss is above ε
        value = np.where(epsilon >= e0, 0.0, np.where(epsilon <= -e0, left, value))
        error = np.where(epsilon <= -e0, bounds.ELEMENTARY * left, error)
        error = np.where(epsilon >= e0, 0.0, error + bounds.TINY)  # a small ε underflows
        return bounds.probabilities(value - error, value + error)

    def swapped(self) -> Laplace:
        """The pair (Q, P), which is the same."""
        return self


def _phase(angle: Any) -> bounds.ComplexArray:
    phase: bounds.ComplexArray = np.exp(1j * angle)
    return phase


def laplace(epsilon: float, steps: float = inf) -> Finite | Laplace:
    """The Laplace mechanism; a finite pair if the shift has few steps."""
    if epsilon == 0.0 or steps > _FEW:
        return Laplace(epsilon, steps if isinf(steps) else min(steps, _FINE))
    if steps == 1.0:
        return response(epsilon)
    count = int(steps)
    cell = epsilon / count
    x = np.arange(count, -1, -1.0)
    odd = log1p(exp(-cell))
    masses = np.exp(-x * cell - odd) * -expm1(-cell)
    masses[0], masses[-1] = exp(-epsilon - odd), exp(-odd)
    error = 3 * bounds.ELEMENTARY + 4 * bounds.UNIT * (1 + epsilon)
    return Finite(
        *((count - 2 * x) * cell, masses, 0.0, 0.0, error, 4 * bounds.UNIT * epsilon + bounds.TINY),
        symmetric=True,
        limit=epsilon,
    )
