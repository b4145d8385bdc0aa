"""What a measure says of noise: which kind is its own, and what a shift of it costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from ..exact.rounding import from_units_up, to_units


class Noise(Enum):
    """The noise with which integers are released."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


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
