"""What noise that is cut off at a bound has in common, whatever its density."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

import numpy as np

from .bounds import ELEMENTARY, Array, Bounds, TwoSided, probabilities


class BoundedNoise(TwoSided, ABC):
    """Noise around 0, given that it is within a bound, against the same noise, shifted.

    :cvar LEAST: shift and bound over scale, at least; so that no number is below 1e-300
    :cvar MOST: bound over scale, at most; a larger one counts as this one
    """

    LEAST: ClassVar[tuple[float, float]]
    MOST: ClassVar[float]

    gaussian, symmetric = inf, True

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε; below 0, δ(ε) = 1 - e^ε + e^ε δ(-ε)."""
        epsilon = np.asarray(epsilon, dtype=float)
        above = self._above_zero(np.abs(epsilon))
        below = np.minimum(epsilon, 0.0)
        flat, share = -np.expm1(below), np.exp(below)
        return probabilities(
            (flat + share * above.lower) * (1 - 4 * ELEMENTARY),
            (flat + share * above.upper) * (1 + 4 * ELEMENTARY),
        )

    @abstractmethod
    def _above_zero(self, epsilon: Array) -> Bounds:
        """δ at ε >= 0."""
