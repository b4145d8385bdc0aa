"""Exact sums, and the base classes of measures whose distance is a number or a pair.

Losses that are fixed in advance or chosen adaptively add up exactly: ``ScalarSum``, ``PairSum``
and ``SquareSum``; ``Planned`` is the plan of a compositor. ``NumberMeasure`` and ``PairMeasure``
are what a new measure derives from. A join is the largest composition of the losses of parallel
parts, for each kind of distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, isinf
from operator import add
from types import ModuleType
from typing import Any, ClassVar, Generic

from .. import _checks as checks
from .. import numerics
from ..errors import Argument, D, InvalidValueError, Json, Loss
from .measure import AccumulatorState, CompositionMeasure, times

# Composition with d_mids fixed in advance: [VW21, Theorem 1.5] for pure DP, [LW22, Theorems 1 and
# 2] for (ε, δ)-DP and Rényi DP. A launch consumes its whole share, even if its loss is smaller.


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

_units = lru_cache(maxsize=4096)(
    numerics.to_units
)  # of losses and bounds, few of which are distinct


@dataclass(frozen=True, slots=True)
class ScalarSum(AccumulatorState[float]):
    """Exact sum of nonnegative doubles; ``units`` is None when it is infinite.

    :cvar in_units: the units of a double, exactly
    :cvar up: the least double that is at least so many units
    :cvar down: the largest double that is at most so many units
    """

    units: int | None = 0

    in_units: ClassVar[Any] = staticmethod(_units)
    up: ClassVar[Any] = staticmethod(numerics.from_units_up)
    down: ClassVar[Any] = staticmethod(numerics.from_units_down)

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
    return (numerator**2 << 2 * numerics.SMALLEST) // denominator**2


@dataclass(frozen=True, slots=True)
class SquareSum(ScalarSum):
    """Exact sum of squares, as a multiple of 2**-(2 * SMALLEST); None when it is infinite."""

    in_units: ClassVar[Any] = staticmethod(_square)
    up: ClassVar[Any] = staticmethod(numerics.sqrt_up)
    down: ClassVar[Any] = staticmethod(numerics.sqrt_down)


# Joins of parallel parts.
#
# ``losses[j - 1]`` are the losses of the distinct parts at distance j. The result is at least every
# composition of losses at distances that add up to ``len(losses)``, each of another part. ``parts``
# has how many parts lose each element of a row.

_MOST_STEPS = 2**22  # of a knapsack


def join_numbers(losses: list[list[float]], parts: Sequence[int], empty: Any = None) -> float:
    """Largest sum of losses of different parts, exact and then rounded up once.

    This is a knapsack: each part has at most one distance. If it were too much work, each part has
    the largest loss at each distance, which is an upper bound.

    :param empty: the accumulator in whose ``units`` losses add up; their plain sum if left out
    """
    total, empty = len(losses), ScalarSum() if empty is None else empty
    # as exact integers, in the units of the accumulator
    units = [[empty.after(loss).units for loss in row] for row in losses]
    if any(None in row for row in units):
        return inf
    copies = _copies(units, parts)
    if len(copies) * total**2 > _MOST_STEPS:
        units, copies = [[max(row)] for row in units], [0] * min(sum(parts), total)
    if len(set(copies)) == 1 and len(copies) >= total:  # one kind of part, enough of them
        found = _unlimited([row[copies[0]] for row in units])
    else:
        found = _knapsack(units, copies)
    return float(type(empty)(found).loss)


def _copies(units: list[list[int]], parts: Sequence[int]) -> list[int]:
    """Return the parts that count, each by the place of its losses in a row.

    At most as many parts as the distance have a loss. So a part that is not among that many with
    the largest losses at its distance can be exchanged for one of these that has none.
    """
    total, counted = len(units), set[int]()
    for row in units:
        left = total
        for place in sorted(range(len(row)), key=row.__getitem__, reverse=True):
            if left <= 0:
                break
            counted.add(place)
            left -= parts[place]
    return [place for place in sorted(counted) for _ in range(min(parts[place], total))]


def _unlimited(losses: list[int]) -> int:
    """Return the largest sum, with any number of parts: a sum is found before it is needed."""
    sums = [0]
    for k in range(1, len(losses) + 1):
        sums.append(max(map(add, reversed(sums), losses[:k])))
        sums[k] = max(sums[k], sums[k - 1])
    return sums[-1]


def _knapsack(units: list[list[int]], copies: list[int]) -> int:
    """Return the largest sum, with one distance for each of the parts."""
    sums = [0] * (len(units) + 1)
    for place in copies:
        own = [row[place] for row in units]
        before = list(sums)
        for k in range(1, len(sums)):
            sums[k] = max(sums[k], *map(add, reversed(before[:k]), own))
    return sums[-1]


# Measures whose distance is one number or a pair of numbers, and whose losses add up.


class NumberMeasure(CompositionMeasure[float]):
    """A measure whose distance is one number in [0, inf], and whose losses add up.

    A class below it says ``kind``, ``reason``, ``distance_form`` and ``opendp``. The author has a
    proof that the sum of adaptively chosen losses bounds the loss of sequential children. With a
    proof for concurrent children, the class sets ``composability`` to ``Composability.CONCURRENT``.

    :cvar group_power: datasets that are k steps apart lose k to this power times the loss of a
        step; None if that is not known

    :example:

    >>> isinstance(oc.extend.composition_measure(dp.max_divergence()), oc.extend.NumberMeasure)
    True
    """

    __slots__ = ()
    zero = 0.0
    total = ScalarSum
    one_number = True
    group_power: ClassVar[int | None] = None

    def validate(self, name: str, value: Argument) -> float:
        if type(value) is float and value >= 0.0:
            return value + 0.0  # -0.0 becomes 0.0
        return checks.non_negative(**{name: value})

    def validate_budget(self, name: str, value: Argument) -> float:
        if type(value) is float and 0.0 <= value < inf:
            return value + 0.0
        return checks.finite(**{name: numerics.down(value)})

    def at_most(self, left: float, right: float) -> bool:
        return left <= right

    def split(self, d_out: float, weights: list[Fraction]) -> list[float]:
        """Shares that add up to at most ``d_out``."""
        return list(numerics.split(d_out, weights))

    def search_family(
        self, d_out: float, delta: float
    ) -> tuple[float, Callable[[float, Fraction], float]]:
        """All distances."""
        return d_out, _part

    def join(self, losses: list[list[float]], parts: Sequence[int]) -> float:
        return join_numbers(losses, parts, self.total())

    def group_loss(self, loss: float, size: int) -> float:
        """The loss times the size to ``group_power``."""
        if self.group_power is None:
            return super().group_loss(loss, size)
        return times_up(loss, size**self.group_power)

    def member_loss(self, d_out: float, size: int) -> float:
        """The same, backwards."""
        if self.group_power is None:
            return super().member_loss(d_out, size)
        return divided_down(d_out, size**self.group_power)

    def event(self, dp_event: ModuleType, d_mid: float) -> Any:
        """The event of an infinite loss; that of a finite one is ``finite_event``."""
        if d_mid == float("inf"):
            return dp_event.NonPrivateDpEvent()
        return dp_event.NoOpDpEvent() if d_mid == 0.0 else self.finite_event(dp_event, d_mid)

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> Any:
        """The event of a loss above 0."""
        return dp_event.UnsupportedDpEvent()

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, (int, float))

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        return checks.non_negative(**{of: loss})


class PairMeasure(CompositionMeasure[tuple[float, float]]):
    """A measure whose distance is a loss and a probability of failure, each of which adds up."""

    __slots__ = ()
    zero = (0.0, 0.0)
    total = PairSum

    def validate(self, name: str, value: Argument) -> tuple[float, float]:
        """Two doubles in [0, inf]; a second one above 1 promises nothing, but is a bound."""
        first, second = checks.pair(**{name: value})
        return (
            checks.non_negative(**{f"{name}[0]": first}),
            checks.non_negative(**{f"{name}[1]": second}),
        )

    def validate_budget(self, name: str, value: Argument) -> tuple[float, float]:
        """A double in [0, inf) and a probability."""
        first, second = checks.pair(**{name: value})
        return (
            checks.finite(**{f"{name}[0]": numerics.down(first)}),
            checks.probability(**{f"{name}[1]": numerics.down(second)}),
        )

    def needs_bound(self, loss: tuple[float, float]) -> bool:
        """Whether it may fail. A mechanism that does not may answer any number of messages."""
        return loss[1] != 0.0

    def at_most(self, left: tuple[float, float], right: tuple[float, float]) -> bool:
        """The product order; pairs may be incomparable."""
        return left[0] <= right[0] and left[1] <= right[1]

    def split(
        self, d_out: tuple[float, float], weights: list[Fraction]
    ) -> list[tuple[float, float]]:
        """Shares that add up to at most ``d_out``, component by component."""
        return list(zip(*(numerics.split(part, weights) for part in d_out), strict=True))

    def search_family(
        self, d_out: tuple[float, float], delta: float
    ) -> tuple[float, Callable[[float, Fraction], tuple[float, float]]]:
        """The distances that have this ``delta``."""
        return d_out[0], lambda top, part: (_part(top, part), delta)

    def join(
        self, losses: list[list[tuple[float, float]]], parts: Sequence[int]
    ) -> tuple[float, float]:
        first = [[loss[0] for loss in row] for row in losses]
        second = [[loss[1] for loss in row] for row in losses]
        return join_numbers(first, parts), join_numbers(second, parts)

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, tuple)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        first, _ = checks.epsilon_delta(**{of: loss})
        return first

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        return "ε"


def _part(top: float, part: Fraction) -> float:
    """Return a part of a number, rounded down."""
    first, _ = numerics.split(top, [part, 1 - part])
    return first


# Group privacy: the loss between the ends of a path of datasets, from the loss of each step.
#
# All steps have the same loss. Pure DP: likelihood ratios multiply, k ε. zCDP: k² ρ [BS16,
# Proposition 27]. (ε, δ)-DP: each step adds δ and multiplies what came before by e^ε. Gaussian DP,
# k μ, and f-DP: [DRS22, Theorem 2.14].


def times_up(loss: float, factor: int) -> float:
    """Return ``factor`` times the loss, rounded up."""
    return numerics.from_units_up(numerics.to_units(loss) * factor)


def divided_down(d_out: float, factor: int) -> float:
    """Return the largest double of which ``factor`` times is at most ``d_out``."""
    return numerics.from_units_down(numerics.to_units(d_out) // factor)


def approximate_group(loss: tuple[float, float], size: int) -> tuple[float, float]:
    """Return (k ε, δ (1 + e^ε + ... + e^((k-1) ε))), rounded up."""
    epsilon, delta = loss
    if size == 1:
        return loss
    if delta == 0.0:
        return times_up(epsilon, size), 0.0
    return times_up(epsilon, size), numerics.upper(
        lambda digits: digits(delta) * _sum(digits, epsilon, size)
    )


def approximate_member(d_out: tuple[float, float], size: int) -> tuple[float, float]:
    """Return (ε, δ) whose group of ``size`` is within ``d_out``, rounded down."""
    epsilon, delta = divided_down(d_out[0], size), d_out[1]
    if delta == 0.0 or size == 1:
        return epsilon, delta
    return epsilon, numerics.lower(lambda digits: digits(delta) / _sum(digits, epsilon, size))


def _sum(digits: numerics.Digits, epsilon: float, size: int) -> numerics.Bracket:
    """Return 1 + e^ε + ... + e^((size-1) ε)."""
    ratio = digits(epsilon).exp()
    found, power = digits(1.0), ratio  # of one term, and e^ε to the number of terms
    for bit in f"{size:b}"[1:]:  # doubled for each digit, since sizes may have 63 of them
        found, power = found * (power + 1.0), power * power
        if bit == "1":
            found, power = found * ratio + 1.0, power * ratio
    return found
