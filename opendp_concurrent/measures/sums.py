"""Exact sums of numbers, pairs and squares; and the plan whose d_mids are fixed up front.

Composition with d_mids fixed in advance: [VW21, Theorem 1.5] for pure DP, [LW22, Theorems 1 and 2]
for (ε, δ)-DP and Rényi DP. A launch consumes its whole share, even if its loss is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, isinf
from typing import Any, ClassVar, Generic

from .. import _checks as checks
from ..errors import D, InvalidValueError, Json
from ..numerics import SMALLEST, from_units_down, from_units_up, sqrt_down, sqrt_up, to_units
from .measure import AccumulatorState, times


@dataclass(frozen=True, slots=True)
class Planned(Generic[D]):
    """A plan, the number of consumed shares, and the sum of these shares."""

    d_mids: tuple[D, ...]
    consumed: int
    total: AccumulatorState[D]

    @property
    def loss(self) -> D:
        """Loss of the consumed shares."""
        return self.total.loss

    @property
    def exhausted(self) -> bool:
        """Return whether every share is consumed."""
        return self.consumed == len(self.d_mids)

    def read(self, d_mid: D) -> D:
        """Return ``d_mid`` in the form in which the total adds it."""
        return self.total.read(d_mid)

    def after(self, d_mid: D, count: int = 1) -> Planned[D]:
        """Consume the next ``count`` shares. The rule has compared ``d_mid`` with them before."""
        upto = self.consumed + times(count)
        if upto > len(self.d_mids):
            raise InvalidValueError(f"all {len(self.d_mids)} d_mids are used")
        total = self.total
        for share in self.d_mids[self.consumed : upto]:
            total = total.after(share)
        return Planned(self.d_mids, upto, total)

    def within(self, d_out: D) -> bool:
        """Return whether the consumed shares are within ``d_out``."""
        return self.total.within(d_out)

    def remaining(self, d_out: D | None = None) -> tuple[D, ...]:
        """Return the remaining shares, the next one first."""
        return self.d_mids[self.consumed :]

    def to_record(self) -> Json:
        """Return the number of consumed shares and their sum."""
        return [self.consumed, self.total.to_record()]


# The sum of the d_mids, for measures whose distance is one number.
#
# Pure DP: [VW21, Theorem 1.5]; docs/proofs/rules.rst has the proof for adaptively chosen losses,
# transcript by transcript. zCDP: [HSTVVXZ23, Theorems 4.10 and 4.11]. Both for concurrent children.

_units = lru_cache(maxsize=4096)(to_units)  # of losses and bounds, few of which are distinct


@dataclass(frozen=True, slots=True)
class ScalarSum(AccumulatorState[float]):
    """Exact sum of nonnegative doubles; ``units`` is None when it is infinite.

    :cvar in_units: the units of a double, exactly
    :cvar up: the least double that is at least so many units
    :cvar down: the largest double that is at most so many units
    """

    units: int | None = 0

    in_units: ClassVar[Any] = staticmethod(_units)
    up: ClassVar[Any] = staticmethod(from_units_up)
    down: ClassVar[Any] = staticmethod(from_units_down)

    @property
    def loss(self) -> float:
        """Return the least double that is at least the exact sum."""
        return inf if self.units is None else float(self.up(self.units))

    def after(self, d_mid: float, count: int = 1) -> ScalarSum:
        """Add ``count`` times ``d_mid``."""
        if type(count) is not int or count < 1:
            count = checks.count(count=count)  # raises: a charge is never refunded
        if type(d_mid) is not float or not 0.0 <= d_mid < inf:
            d_mid = checks.non_negative(d_mid=d_mid)
            if isinf(d_mid):
                return type(self)(None)
        if self.units is None:
            return self
        return type(self)(self.units + count * self.in_units(d_mid))

    def within(self, d_out: float) -> bool:
        """Return whether the exact sum is at most ``d_out``."""
        if self.units is None or not 0.0 <= d_out < inf:
            return self.loss <= d_out
        # the sum is of doubles: exact, also if d_out is a fraction
        return bool(self.units <= self.in_units(d_out))

    def remaining(self, d_out: float) -> float:
        """Return the largest double whose exact sum with this sum is at most ``d_out``."""
        if isinf(d_out):
            return inf
        if self.units is None:
            return 0.0
        return float(self.down(max(0, self.in_units(d_out) - self.units)))

    def amounts(self, d_mid: float) -> tuple[int | None]:
        """Return the units of a launch."""
        return (type(self)().after(d_mid).units,)

    def limits(self, d_out: float) -> tuple[int]:
        """Return the units of a finite bound."""
        return (self.in_units(d_out),)

    def of_amounts(self, totals: Sequence[int]) -> ScalarSum:
        """Return the sum of these units."""
        return type(self)(*totals)

    def to_record(self) -> str | None:
        """Return the units in hexadecimal, or None if infinite."""
        return None if self.units is None else hex(self.units)

    @classmethod
    def from_record(cls, record: str | None) -> ScalarSum:
        """Inverse of :meth:`to_record`."""
        return cls(None if record is None else int(record, 16))


# The sums of both parameters, for measures whose distance is a pair.
#
# (ε, δ)-DP: basic composition, concurrent with adaptive parameters by [HSTVVXZ23, Section 3.1]
# under finite communication. Approximate zCDP: [BS16, Lemma 8.2] with 1 - prod(1 - δ_i) <= sum δ_i,
# for adaptive parameters [WRRW23, Theorem 1]; for children see docs/proofs/approximate-zcdp.rst.


@dataclass(frozen=True, slots=True)
class PairSum(AccumulatorState[tuple[float, float]]):
    """Exact sums of the first and of the second components, each as in :class:`ScalarSum`."""

    first: int | None = 0
    second: int | None = 0

    @property
    def loss(self) -> tuple[float, float]:
        """Return both sums, each rounded up once."""
        return ScalarSum(self.first).loss, ScalarSum(self.second).loss

    def after(self, d_mid: tuple[float, float], count: int = 1) -> PairSum:
        """Add ``count`` times ``d_mid``, component by component."""
        if type(d_mid) is not tuple or len(d_mid) != 2:
            d_mid = checks.pair(d_mid=d_mid)
        (one, other), first, second = d_mid, self.first, self.second
        usual = type(one) is type(other) is float and type(count) is int and count > 0
        usual = usual and 0.0 <= one < inf and 0.0 <= other < inf
        if first is None or second is None or not usual:
            sums = ScalarSum(first).after(one, count), ScalarSum(second).after(other, count)
            return PairSum(sums[0].units, sums[1].units)
        # every launch comes here: both sums are written out, since calls would take longer
        return PairSum(first + count * _units(one), second + count * _units(other))

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether both exact sums are at most those of ``d_out``."""
        (one, other), first, second = d_out, self.first, self.second
        if first is None or second is None or not (0.0 <= one < inf and 0.0 <= other < inf):
            return ScalarSum(first).within(one) and ScalarSum(second).within(other)
        return bool(first <= _units(one) and second <= _units(other))

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return the largest pair that can still be spent; the components are independent."""
        one, other = d_out
        return ScalarSum(self.first).remaining(one), ScalarSum(self.second).remaining(other)

    def amounts(self, d_mid: tuple[float, float]) -> tuple[int | None, int | None]:
        """Return the units of both components of a launch's loss."""
        total = PairSum().after(d_mid)
        return total.first, total.second

    def limits(self, d_out: tuple[float, float]) -> tuple[int, int]:
        """Return the units of both components of a finite bound."""
        return _units(d_out[0]), _units(d_out[1])

    def of_amounts(self, totals: Sequence[int]) -> PairSum:
        """Return the pair of sums of these units."""
        return PairSum(*totals)

    def to_record(self) -> list[str | None]:
        """Both sums in their exact form."""
        return [ScalarSum(self.first).to_record(), ScalarSum(self.second).to_record()]

    @classmethod
    def from_record(cls, record: list[str | None]) -> PairSum:
        """Inverse of :meth:`to_record`."""
        first, second = map(ScalarSum.from_record, record)
        return cls(first.units, second.units)


# The root of the sum of squares, for Gaussian DP.
#
# Fully adaptive: [ST22, Theorem 1] and [KTH22]; concurrent by [VZ23] and [HSTVVXZ23, Theorem 1.21].
# Only the Gaussian family has this property. The tensor product of other trade-off functions is in
# general not an accumulator under adaptively chosen parameters.


def _square(value: float | Fraction) -> int:
    """Square as a multiple of 2**-(2 * SMALLEST); exact for doubles, else rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator**2 << 2 * SMALLEST) // denominator**2


@dataclass(frozen=True, slots=True)
class SquareSum(ScalarSum):
    """Exact sum of squares, as a multiple of 2**-(2 * SMALLEST); None when it is infinite."""

    in_units: ClassVar[Any] = staticmethod(_square)
    up: ClassVar[Any] = staticmethod(sqrt_up)
    down: ClassVar[Any] = staticmethod(sqrt_down)
