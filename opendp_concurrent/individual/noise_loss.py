"""What one person loses when a sum is released with noise: a power of value over noise.

Sums are of whole steps, noise is on the integers, so that no floating point is in the way:

* Laplace: a shift of d steps has a divergence of |d|/s, for pure DP;
* Gaussian: α d²/(2 s²) at every order α, so ρ = d²/(2 s²) for zCDP [CKS20, Theorem 14].

A group of k people shifts the sum by at most the sum of their values. Laplace: their losses add up.
Gaussian: the square of a sum of k numbers is at most k times the sum of their squares [Cauchy and
Schwarz], so that over all queries the divergence is at most k times the sum of k people's losses,
k² times the budget of one. This is so at each order, hence for one fixed order, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..errors import UnsupportedMeasureError
from ..exact.rounding import from_units_up, to_units
from ..measures import composition_measure
from ..measures.families import FIXED, PURE, ZCDP


@dataclass(frozen=True, slots=True)
class NoiseLoss:
    """Loss of a value v at a noise scale s: factor (|v|/s)^power; exact.

    :ivar power: 1 for Laplace noise, 2 for Gaussian
    :ivar factor: of the measure
    """

    power: int
    factor: Fraction

    @property
    def is_laplace(self) -> bool:
        """Whether the noise is Laplace, and not Gaussian."""
        return self.power == 1

    def of(self, value: Fraction, scale: float) -> Fraction:
        """Loss of one release in which a person has this value."""
        return self.factor * (abs(value) / Fraction(scale)) ** self.power

    def of_group(self, people: int, d_out: float) -> float:
        """Bound on the loss of a group of whom each has the budget ``d_out``; rounded up."""
        return from_units_up(to_units(d_out) * people**self.power)


def noise_loss(output_measure: Any) -> NoiseLoss:
    """The loss of the noise that belongs to a measure.

    :raises UnsupportedMeasureError: for measures whose losses are not such a power
    """
    measure = composition_measure(output_measure)
    if measure.family == PURE:
        return NoiseLoss(1, Fraction(1))
    if measure.family == ZCDP:
        return NoiseLoss(2, Fraction(1, 2))
    if measure.family == FIXED:
        return NoiseLoss(2, Fraction(output_measure.descriptor.alpha) / 2)
    raise UnsupportedMeasureError(
        f"output_measure ({measure.name}) must be pure DP, for Laplace noise, or zero-concentrated "
        "DP or Rényi DP of a fixed order, for Gaussian noise; build for one of these, and use cast"
    )
