"""The sum of the d_mids, for measures whose distance is one number.

Pure DP: [VW21, Theorem 1.5]; docs/proofs/rules.rst has the proof for adaptively chosen losses,
transcript by transcript. zCDP: [HSTVVXZ23, Theorems 4.10 and 4.11]. Both for concurrent children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isinf

from ..arguments import checks
from ..exact.rounding import from_units_down, from_units_up, to_units
from ..types import Loss

_units = lru_cache(maxsize=4096)(to_units)  # of losses and bounds, few of which are distinct


@dataclass(frozen=True, slots=True)
class ScalarSum:
    """Exact sum of nonnegative doubles; ``units`` is None when it is infinite."""

    units: int | None = 0

    @property
    def loss(self) -> float:
        """Return the least double that is at least the exact sum."""
        return inf if self.units is None else from_units_up(self.units)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> ScalarSum:
        """Add ``count`` times ``d_mid``."""
        if type(count) is not int or count < 1:
            count = checks.count(count=count)  # raises: a charge is never refunded
        if type(d_mid) is not float or not 0.0 <= d_mid < inf:
            d_mid = checks.non_negative(d_mid=d_mid)
            if isinf(d_mid):
                return ScalarSum(None)
        if self.units is None:
            return self
        return ScalarSum(self.units + count * _units(d_mid))

    def within(self, d_out: float) -> bool:
        """Return whether the exact sum is at most ``d_out``."""
        if self.units is None or not 0.0 <= d_out < inf:
            return self.loss <= d_out
        return self.units <= _units(d_out)  # a sum of doubles: exact, also for a fraction

    def remaining(self, d_out: float) -> float:
        """Return the largest double whose exact sum with this sum is at most ``d_out``."""
        if isinf(d_out):
            return inf
        if self.units is None:
            return 0.0
        return from_units_down(max(0, _units(d_out) - self.units))

    def amounts(self, d_mid: Loss) -> tuple[int | None]:
        """Return the units of a launch."""
        return (ScalarSum().after(d_mid).units,)

    def limits(self, d_out: float) -> tuple[int]:
        """Return the units of a finite bound."""
        return (_units(d_out),)

    def of_amounts(self, totals: Sequence[int]) -> ScalarSum:
        """Return the sum of these units."""
        return ScalarSum(*totals)

    def to_record(self) -> str | None:
        """Return the units in hexadecimal, or None if infinite."""
        return None if self.units is None else hex(self.units)

    @classmethod
    def from_record(cls, record: str | None) -> ScalarSum:
        """Inverse of :meth:`to_record`."""
        return cls(None if record is None else int(record, 16))
