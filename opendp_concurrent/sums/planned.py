"""The accumulator of a plan: the shares consumed so far, of d_mids that are fixed up front.

Composition with d_mids fixed in advance: [VW21, Theorem 1.5] for pure DP, [LW22, Theorems 1 and 2]
for (ε, δ)-DP and Rényi DP. A launch consumes its whole share, even if its loss is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidValueError
from ..types import Json, Loss
from .accumulator import Accumulator, times


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the number of consumed shares, and the sum of these shares."""

    d_mids: tuple[Loss, ...]
    consumed: int
    total: Accumulator

    @property
    def loss(self) -> Loss:
        """Loss of the consumed shares."""
        return self.total.loss

    @property
    def exhausted(self) -> bool:
        """Return whether every share is consumed."""
        return self.consumed == len(self.d_mids)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid`` in the form in which the total adds it."""
        return self.total.read(d_mid)

    def after(self, d_mid: Loss, count: int = 1) -> Planned:
        """Consume the next ``count`` shares. The rule has compared ``d_mid`` with them before."""
        upto = self.consumed + times(count)
        if upto > len(self.d_mids):
            raise InvalidValueError(f"all {len(self.d_mids)} d_mids are used")
        total = self.total
        for share in self.d_mids[self.consumed : upto]:
            total = total.after(share)
        return Planned(self.d_mids, upto, total)

    def within(self, d_out: Loss) -> bool:
        """Return whether the consumed shares are within ``d_out``."""
        return self.total.within(d_out)

    def remaining(self, d_out: Loss = None) -> tuple[Loss, ...]:
        """Return the remaining shares, the next one first."""
        return self.d_mids[self.consumed :]

    def to_record(self) -> Json:
        """Return the number of consumed shares and their sum."""
        return [self.consumed, self.total.to_record()]
