"""The root of the sum of squares, for Gaussian DP.

Fully adaptive: [ST22, Theorem 1] and [KTH22]; concurrent by [VZ23] and [HSTVVXZ23, Theorem 1.21].
Only the Gaussian family has this property. The tensor product of other trade-off functions is in
general not an accumulator under adaptively chosen parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isinf
from typing import TYPE_CHECKING

from ..arguments import checks
from ..arguments.written import written
from ..exact.rounding import SMALLEST, sqrt_down, sqrt_up
from ..types import Loss
from .accumulator import Divided, times

if TYPE_CHECKING:
    from ..measures.measure import CompositionMeasure


def _square(value: float | Fraction) -> int:
    """Square as a multiple of 2**-(2 * SMALLEST); exact for doubles, else rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator**2 << 2 * SMALLEST) // denominator**2


@dataclass(frozen=True, slots=True)
class SquareSum:
    """Exact sum of squares, as a multiple of 2**-(2 * SMALLEST); None when it is infinite."""

    units: int | None = 0

    @property
    def loss(self) -> float:
        """Return the least double whose square is at least the exact sum."""
        return inf if self.units is None else sqrt_up(self.units)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> SquareSum:
        """Add ``count`` times the square of ``d_mid``."""
        mu, count = checks.non_negative(d_mid=d_mid), times(count)
        if isinf(mu) or self.units is None:
            return SquareSum(None)
        return SquareSum(self.units + count * _square(mu))

    def within(self, d_out: float) -> bool:
        """Return whether the exact sum is at most the square of ``d_out``."""
        if isinf(d_out):
            return True
        return self.units is not None and self.units <= _square(d_out)

    def remaining(self, d_out: float) -> float:
        """Return the largest double whose square can still be added."""
        if isinf(d_out):
            return inf
        if self.units is None:
            return 0.0
        return sqrt_down(max(0, _square(d_out) - self.units))

    def amounts(self, d_mid: Loss) -> tuple[int | None]:
        """Return the square of a launch's loss."""
        return (SquareSum().after(d_mid).units,)

    def limits(self, d_out: float) -> tuple[int]:
        """Return the square of a finite bound."""
        return (_square(d_out),)

    def of_amounts(self, totals: Sequence[int]) -> SquareSum:
        """Return the sum of these squares."""
        return SquareSum(*totals)

    def to_record(self) -> str | None:
        """Return the units in hexadecimal, or None if infinite."""
        return None if self.units is None else hex(self.units)


@written("squares")
@dataclass(frozen=True, slots=True)
class Squares(Divided):
    """The accumulator for Gaussian DP."""

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether this is the measure's own sum."""
        return bool(measure.sum() == self)

    def start(self, measure: CompositionMeasure | None = None) -> SquareSum:
        """Zero."""
        return SquareSum()

    def from_record(self, measure: CompositionMeasure | None, record: str | None) -> SquareSum:
        """Inverse of :meth:`SquareSum.to_record`."""
        return SquareSum(None if record is None else int(record, 16))

    def __repr__(self) -> str:
        return "root of the sum of squares"
