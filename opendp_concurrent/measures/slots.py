"""Slots in any order: a plan of trade-off functions; each launch takes slots that cover it.

A launch that is f-DP takes unused slots with f at most their product, the cheapest that are found.
The whole loss is the product of all slots, for any adaptive choice of children and of slots. Proof:
each slot is attained by a pair of distributions, and all samples can be drawn first. A child is,
for fixed neighbours, a postprocessing of the product over its slots (Blackwell; for interactive
children [VZ23], restated as [HSTVVXZ23, Theorem 3.3], under finite communication). Disjoint sets
use independent samples, so the whole view is a postprocessing of all samples.

The loss is not the product of the slots used so far, because their choice may depend on answers.
As soon as one slot is used, the loss is the product of all slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Any, ClassVar

from .. import _checks as checks
from ..errors import BudgetExceededError, InvalidTypeError, InvalidValueError, Json
from ..fdp import TradeoffFunction, check_function, optimal_composition
from .measure import AccumulatorState, CompositionMeasure, EvenlyDivisible, times

_LOOKED_AT, _COMPARED = 2000, 60  # limits on the sets that the search for a cheapest cover visits
_KEPT = 2**22  # limit on the numbers that the search keeps
_KINDS = 8  # limit on the different slots in a set


@dataclass(frozen=True, slots=True)
class Slots:
    """A plan and its unused slots.

    :ivar slots: the whole plan
    :ivar left: unused slots, the cheapest first
    """

    slots: tuple[TradeoffFunction, ...]
    left: tuple[TradeoffFunction, ...]

    @property
    def loss(self) -> TradeoffFunction:
        """The product of the plan; the identity before the first launch."""
        if len(self.left) == len(self.slots):
            return TradeoffFunction.identity()
        return TradeoffFunction.identity().compose(*self.slots)

    @classmethod
    def of(cls, shares: tuple[TradeoffFunction, ...]) -> Slots:
        """Return a plan of which nothing is used."""
        slots = tuple(sorted(shares, key=lambda share: share.affinity_cost))
        return cls(slots, slots)

    def read(self, d_mid: TradeoffFunction) -> TradeoffFunction:
        """Return ``d_mid``."""
        return check_function(d_mid=d_mid)

    def taking(self, d_mid: TradeoffFunction) -> Slots | None:
        """Return the slots without the cheapest cover of ``d_mid``; None if there is no cover."""
        if d_mid == TradeoffFunction.identity():
            return self
        for taken in covers(self.left, d_mid):
            left = list(self.left)
            for slot in taken:
                left.remove(slot)
            return Slots(self.slots, tuple(left))
        return None

    def after(self, d_mid: TradeoffFunction, count: int = 1) -> Slots:
        """Take slots ``count`` times. A launch that no slots cover leaves no slots."""
        slots, function = self, check_function(d_mid=d_mid)
        for _ in range(times(count)):
            slots = slots.taking(function) or Slots(self.slots, ())
        return slots

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether the loss is at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: TradeoffFunction | None = None) -> tuple[TradeoffFunction, ...]:
        """Return the unused slots."""
        return self.left

    def to_record(self) -> list[int]:
        """Return the unused slots, by their positions in the plan."""
        unused = Counter(self.left)
        places = []
        for place, slot in enumerate(self.slots):
            if unused[slot]:
                unused[slot] -= 1
                places.append(place)
        return places


def covers(
    left: tuple[TradeoffFunction, ...], d_mid: TradeoffFunction
) -> Iterator[tuple[TradeoffFunction, ...]]:
    """Yield sets of slots whose product is at least ``d_mid``, the cheapest first.

    If there are more sets than the search may visit, the last set has the most expensive slots:
    as many as cover ``d_mid``, without those that are then not needed.

    The cost is -ln of the affinity E_P[e^(-L/2)]. It adds up over products and falls under
    postprocessing, so a set that costs less than ``d_mid`` cannot cover ``d_mid``.
    """
    kinds = Counter(left)
    ordered = sorted(kinds, key=lambda slot: slot.affinity_cost)
    need, looked_at = d_mid.affinity_cost * (1 - 1e-9), 0
    compared = 0
    queue: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(ordered))]
    seen = {queue[0][1]}
    while queue and looked_at < _LOOKED_AT and compared < _COMPARED:
        if len(seen) * len(ordered) > _KEPT:
            break
        cost, counts = heappop(queue)
        looked_at += 1
        if cost >= need:
            compared += 1
            if sum(1 for n in counts if n) > _KINDS:
                break
            taken = [slot for slot, n in zip(ordered, counts, strict=True) for _ in range(n)]
            if d_mid <= TradeoffFunction.identity().compose(*taken):
                yield tuple(taken)
        for index, slot in enumerate(ordered):
            if counts[index] < kinds[slot]:
                more = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                if more not in seen:
                    seen.add(more)
                    heappush(queue, (cost + slot.affinity_cost, more))
    if queue:
        yield from _dearest(ordered, kinds, d_mid)


def _dearest(
    ordered: list[TradeoffFunction], kinds: Counter[TradeoffFunction], d_mid: TradeoffFunction
) -> Iterator[tuple[TradeoffFunction, ...]]:
    taken: list[TradeoffFunction] = []
    for slot in (slot for one in reversed(ordered) for slot in [one] * kinds[one]):
        taken.append(slot)
        if d_mid <= TradeoffFunction.identity().compose(*taken):
            for spare in list(taken):
                others = list(taken)
                others.remove(spare)
                if d_mid <= TradeoffFunction.identity().compose(*others):
                    taken = others
            yield tuple(taken)
            return


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """The continuation rule of a compositor whose shares may be used in any order."""

    kind: ClassVar[str] = "compositor"

    def admits(self, accumulator: Slots, d_mid: TradeoffFunction) -> Slots | BudgetExceededError:
        """Admit when unused slots cover ``d_mid``."""
        function = accumulator.read(d_mid)
        rest = accumulator.taking(function)
        if rest is not None:
            return rest
        return BudgetExceededError(
            accumulator.loss,
            function,
            accumulator.left,
            shares=len(accumulator.slots),
            any_order=True,
        )

    def remaining(self, accumulator: Slots) -> tuple[TradeoffFunction, ...]:
        """Return the unused slots of the plan."""
        return accumulator.left


# The tensor product of trade-off functions, for losses that are fixed up front [VZ23].
#
# It is no bound for adaptively chosen losses [RHLMTL26], [TKRH26], as the tests
# in tests/verify/test_real_constructors.py compute. Only the compositor uses it.


@dataclass(frozen=True, slots=True)
class TradeoffProduct(AccumulatorState[TradeoffFunction]):
    """The product of the functions so far."""

    loss: TradeoffFunction

    def after(self, d_mid: TradeoffFunction, count: int = 1) -> TradeoffProduct:
        """Compose with ``count`` times ``d_mid``."""
        return TradeoffProduct(self.loss.compose(check_function(d_mid=d_mid).power(times(count))))

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether the product is certified to be at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: TradeoffFunction) -> Any:
        """Return None: the remainder is in general not a trade-off function."""

    def to_record(self) -> Json:
        """Return None: a compositor records its shares."""


@dataclass(frozen=True, slots=True)
class Products(EvenlyDivisible):
    """The accumulator of a compositor under f-DP."""

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return False: no measure with adaptively chosen losses is supported."""
        return False

    def start(self, measure: CompositionMeasure[Any] | None = None) -> TradeoffProduct:
        """Return the identity."""
        return TradeoffProduct(TradeoffFunction.identity())

    def from_record(self, measure: CompositionMeasure[Any] | None, record: Json) -> TradeoffProduct:
        """Refuse: a compositor records its shares."""
        raise InvalidTypeError("a product of trade-off functions has no record of its own")


def optimal_pair(shares: tuple[tuple[float, float], ...], delta: float) -> tuple[float, float]:
    """Return the optimal composition of (ε, δ) losses that are fixed up front, at one δ.

    It is that of [KOV15] and [MV16], which [LW22, Theorem 1] carries over to concurrent children.
    """
    failure = checks.probability(delta=delta)
    epsilon = optimal_composition(shares).epsilon(failure)
    if not epsilon < inf:
        raise InvalidValueError(
            f"delta ({delta}) must be above the total failure probability of the d_mids"
        )
    return epsilon, failure
