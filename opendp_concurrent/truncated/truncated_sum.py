"""The sum of the ρ and the least of the ω, for truncated concentrated DP.

Fixed parameters: [LW22, Corollary 1] is for equal ω. With the least ω of all, each child is
(ρ_i, ω)-tCDP. Adaptive: for each order α in (1, ω) the sum of the ρ_i α is a valid accumulator
[HSTVVXZ23, Theorem 4.6], so a filter on ρ is valid for children whose ω is large enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from ..arguments.written import written
from ..errors import InvalidTypeError
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import Divided
from ..sums.scalar_sum import ScalarSum
from ..types import Loss
from .distances import TruncatedConcentrated


@dataclass(frozen=True, slots=True)
class TruncatedSum:
    """Exact sum of ρ, and least ω."""

    rho: ScalarSum = field(default_factory=ScalarSum)
    omega: float = inf

    @property
    def loss(self) -> TruncatedConcentrated:
        """The sum, rounded up once, with the least ω."""
        return TruncatedConcentrated(self.rho.loss, self.omega)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> TruncatedSum:
        """Add ``count`` times the ρ of ``d_mid``; its ω counts once."""
        if not isinstance(d_mid, TruncatedConcentrated):
            raise InvalidTypeError(
                f"d_mid must be TruncatedConcentrated(rho, omega), found {d_mid!r}"
            )
        return TruncatedSum(self.rho.after(d_mid.rho, count), min(self.omega, d_mid.omega))

    def within(self, d_out: TruncatedConcentrated) -> bool:
        """Return whether the sum is at most the ρ of ``d_out``, and ω at least its ω."""
        return self.rho.within(d_out.rho) and self.omega >= d_out.omega

    def remaining(self, d_out: TruncatedConcentrated) -> TruncatedConcentrated:
        """Return the largest distance that can still be spent."""
        return TruncatedConcentrated(self.rho.remaining(d_out.rho), d_out.omega)

    def to_record(self) -> list[str | None]:
        """The exact sum, and ω in hexadecimal."""
        return [self.rho.to_record(), self.omega.hex()]


@written("least-omega")
@dataclass(frozen=True, slots=True)
class LeastOmega(Divided):
    """The accumulator for truncated concentrated DP."""

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether this is the measure's own sum."""
        return bool(measure.sum() == self)

    def start(self, measure: CompositionMeasure | None = None) -> TruncatedSum:
        """Return the empty sum."""
        return TruncatedSum()

    def from_record(
        self, measure: CompositionMeasure | None, record: list[str | None]
    ) -> TruncatedSum:
        """Inverse of :meth:`TruncatedSum.to_record`."""
        rho, omega = record
        return TruncatedSum(ScalarSum.from_record(rho), float.fromhex(str(omega)))

    def __repr__(self) -> str:
        return "sum of rho, least omega"
