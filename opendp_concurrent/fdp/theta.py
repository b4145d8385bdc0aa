"""The discrete Gaussian by its theta series [CKS20]: no outcome is listed.

X has masses in proportion to e^(-x²/(2σ²)), and the loss is L = (s - 2X) s / (2σ²). Let v = s²/σ²,
p = 2πσ²/s and G(ω) = e^(-ω²v/2 + iω(τ + 1/2)v). By Poisson's formula,

    E[e^((τ+iω)L)] = e^((τ²+τ)v/2) Σ_m (-1)^(ms) G(ω - mp) / (1 + 2 Σ_(m>0) e^(-2π²m²σ²)).

At ω = 0 the sum is 1 + 2 Σ_(m>0) e^(-2π²m²σ²) cos(2πmsτ). Beyond m = ±1 from the nearest multiple
of p, terms are at most 2 e^(-44σ²) together, below rounding for σ >= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, pi, sin
from typing import Any

import numpy as np

from .bounds import ELEMENTARY, UNIT, Array, ComplexArray, Numbers, Transform, log1p_complex

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

    def log_mgf(self, tau: Array) -> Array:
        """(τ² + τ) v / 2, and the ratio of two sums that are nearly 1."""
        tau = np.asarray(tau, dtype=float)
        value: Array = tau * (tau + 1) * (self.variance / 2)
        if self._ripple:
            waves = np.cos(2 * pi * np.mod(self.shift * tau, 1.0))
            value = value + (np.log1p(self._ripple * waves) - np.log1p(self._ripple))
        return value

    def mgf_error(self, tau: Numbers) -> Any:
        """Roundings of v and of the angle sτ; what is left out is below the fourth power."""
        tau, small = np.asarray(tau, dtype=float), self._ripple
        angle = np.minimum(2.0, 16 * UNIT * self.shift * tau)
        smooth = 12 * UNIT * (tau * (tau + 1) * (self.variance / 2))
        return smooth + small * (4 * ELEMENTARY + 8 * angle) + small**4

    def logs(self, tau: float, step: float, nodes: int) -> tuple[ComplexArray, Array]:
        """Ln ρ at the nodes, and bounds on the relative errors of ρ."""
        v, p = self.variance, self.period
        omega = step * np.arange(nodes)
        turns = np.round(omega / p)
        near = omega - turns * p
        turn = pi * np.mod(turns * (self.shift % 2), 2.0)
        mean = (tau + 0.5) * v
        value: ComplexArray = -near * near * (v / 2) + 1j * (near * mean + turn)
        # of v, of p and of ω: an error d of ω moves the exponent by d (|ω'| v + mean)
        moved = 8 * UNIT * np.where(turns == 0.0, np.abs(near), omega)
        error: Array = 8 * UNIT * (near * near * v / 2 + np.abs(near) * mean)
        error = error + moved * (np.abs(near) * v + mean) + 2 * UNIT * np.abs(turn)
        error = np.expm1(np.minimum(error, 600.0))
        if self.scale < 12.0:  # else neighbours are below e^-708, where G is least
            more, wrong = self._neighbours(tau, near, step * nodes)
            value, error = value + more, error + wrong + error * wrong
        return value, error

    def _neighbours(self, tau: float, near: Array, end: float) -> tuple[ComplexArray, Array]:
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
        wrong = 32 * UNIT * ((pi * self.scale) ** 2 + self.shift * (end + tau)) + 4 * ELEMENTARY
        error: Array = ((ahead + behind) * min(wrong, 4.0) + 1e-19) / size
        error = error + np.where(size <= 2 * _ZERO, 2.0, 0.0) + self._ripple * min(wrong, 4.0)
        return log1p_complex(both) - less, error

    def transform(self, tau: float, step: float, nodes: int) -> Transform:
        """ρ at the nodes."""
        logs, error = self.logs(tau, step, nodes)
        values = np.exp(logs)
        whole = np.abs(values) * (error + 2 * UNIT * np.abs(logs)) + 2 * ELEMENTARY
        return Transform(values, 1.01 * float(np.max(whole)))
