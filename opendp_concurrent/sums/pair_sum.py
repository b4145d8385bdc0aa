"""The sums of both parameters, for measures whose distance is a pair.

(ε, δ)-DP: basic composition, concurrent with adaptive parameters by [HSTVVXZ23, Section 3.1] under
finite communication. Approximate zCDP: [BS16, Lemma 8.2] with 1 - prod(1 - δ_i) <= sum δ_i, for
adaptive parameters [WRRW23, Theorem 1], with sequential children only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..arguments import checks
from ..types import Loss
from .scalar_sum import ScalarSum


@dataclass(frozen=True, slots=True)
class PairSum:
    """Exact sums of the first and of the second components."""

    first: ScalarSum = field(default_factory=ScalarSum)
    second: ScalarSum = field(default_factory=ScalarSum)

    @property
    def loss(self) -> tuple[float, float]:
        """Return both sums, each rounded up once."""
        return self.first.loss, self.second.loss

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> PairSum:
        """Add ``count`` times ``d_mid``, component by component."""
        if type(d_mid) is not tuple or len(d_mid) != 2:
            d_mid = checks.pair(d_mid=d_mid)
        first, second = d_mid
        return PairSum(self.first.after(first, count), self.second.after(second, count))

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether both exact sums are at most those of ``d_out``."""
        return self.first.within(d_out[0]) and self.second.within(d_out[1])

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return the largest pair that can still be spent; the components are independent."""
        return self.first.remaining(d_out[0]), self.second.remaining(d_out[1])

    def amounts(self, d_mid: Loss) -> tuple[int | None, ...]:
        """Return the units of both components of a launch's loss."""
        first, second = checks.pair(d_mid=d_mid)
        return (*self.first.amounts(first), *self.second.amounts(second))

    def limits(self, d_out: tuple[float, float]) -> tuple[int, ...]:
        """Return the units of both components of a finite bound."""
        return (*self.first.limits(d_out[0]), *self.second.limits(d_out[1]))

    def of_amounts(self, totals: Sequence[int]) -> PairSum:
        """Return the pair of sums of these units."""
        first, second = totals
        return PairSum(ScalarSum(first), ScalarSum(second))

    def to_record(self) -> list[str | None]:
        """Both sums in their exact form."""
        return [self.first.to_record(), self.second.to_record()]

    @classmethod
    def from_record(cls, record: list[str | None]) -> PairSum:
        """Inverse of :meth:`to_record`."""
        first, second = record
        return cls(ScalarSum.from_record(first), ScalarSum.from_record(second))
