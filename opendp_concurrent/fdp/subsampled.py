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
from functools import cached_property
from math import inf, log, log1p, nextafter

import numpy as np

from ..arguments.written import written
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, TwoSided, probabilities
from .cells import Measure, Noise, below, gaussian_cells, laplace_cells, losses
from .gaussian import Gaussian
from .laplace import Laplace

_HUGE = 1e300  # larger odds count as this
_TAIL = 1e-12  # P-mass that may be missing where only a scale is asked for


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
            value, error = losses(np.exp([self.size]), ELEMENTARY, self.rate)
            found = float(value[0] + error[0])
        return nextafter(found * (1 + 2 * ELEMENTARY), inf)

    @property
    def largest_loss_lower(self) -> float:
        """The same, rounded down."""
        if self.unit == "removed" and self.noise == "laplace":
            value, error = losses(np.exp([self.size]), ELEMENTARY, self.rate)
            return float(value[0] - error[0]) * (1 - 2 * ELEMENTARY)
        return self.largest_loss * (1 - 8 * ELEMENTARY)

    def cells(self, tail: float) -> Noise | None:
        """Cells of the noise; None if there are none."""
        if self.noise == "gaussian":
            return gaussian_cells(self.size, self.rate, tail)
        return laplace_cells(self.size)

    @cached_property
    def _near(self) -> Measure:
        """Losses with P-masses that are near the pair: for scales, and not for bounds."""
        noise = self.cells(_TAIL)
        nothing = Measure(np.zeros(1), np.ones(1))
        return below(noise, self.rate, self.unit == "removed") if noise else nothing

    @cached_property
    def variance(self) -> float:
        """Of the loss, approximately."""
        near = self._near
        mean = float(near.masses @ near.losses)
        return float(near.masses @ (near.losses - mean) ** 2)

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of E_P[e^(τL)], approximately."""
        near = self._near
        found: Array = np.log(np.exp(np.multiply.outer(tau, near.losses)) @ near.masses)
        return found

    def swapped(self) -> Subsampled:
        """The pair (Q, P): the unit is added where it was removed."""
        return replace(self, unit="added" if self.unit == "removed" else "removed")

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
