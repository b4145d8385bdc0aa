"""Slots in any order: a plan of trade-off functions, from which a launch takes what covers it.

A launch that is f-DP takes unused slots with f at most their product, the cheapest that are found.
The whole is the product of all slots, for any adaptive choice of children and of slots: each slot
is attained by a pair of distributions, and all samples can be drawn first. A child is, for fixed
neighbours, a postprocessing of the product over its slots (Blackwell; for interactive children
[VZ23], restated as [HSTVVXZ23, Theorem 3.3], under finite communication), and disjoint sets use
independent samples. So the whole view is a postprocessing of all samples.

What is spent is not the product of the slots used so far, as which ones these are may depend on the
answers: as soon as one is used the loss is that of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar

from ..errors import BudgetExceededError
from ..fdp.function import TradeoffFunction, check_function
from ..measures.sums.accumulator import times
from ..measures.tradeoff import TRADEOFF_DIVERGENCE

_LOOKED_AT, _COMPARED = 2000, 60  # sets up to which the search for the cheapest cover goes on
_KEPT = 2**22  # numbers that are kept for it
_KINDS = 8  # different slots in a set up to which it does


@dataclass(frozen=True, slots=True)
class Slots:
    """A plan and what is left of it.

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

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return check_function(d_mid=d_mid)

    def taking(self, d_mid: TradeoffFunction) -> Slots | None:
        """What is left when the cheapest cover of ``d_mid`` is taken; None if there is none."""
        if d_mid == TradeoffFunction.identity():
            return self
        for taken in covers(self.left, d_mid):
            left = list(self.left)
            for slot in taken:
                left.remove(slot)
            return Slots(self.slots, tuple(left))
        return None

    def after(self, d_mid: Any, count: int = 1) -> Slots:
        """Take slots ``count`` times; what is covered by none leaves nothing."""
        slots, function = self, check_function(d_mid=d_mid)
        for _ in range(times(count)):
            slots = slots.taking(function) or Slots(self.slots, ())
        return slots

    def within(self, d_out: TradeoffFunction) -> bool:
        """Whether the loss is at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: Any = None) -> tuple[TradeoffFunction, ...]:
        """The slots that are left."""
        del d_out
        return self.left

    def to_record(self) -> list[int]:
        """Which slots are left, by their places in the plan."""
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
    """Sets of slots whose product is at least ``d_mid``, the cheapest first.

    With more sets than can be looked at, the last one is the dearest slots, as many as cover, less
    those that are not needed then.

    The cost is -ln of the affinity E_P[e^(-L/2)], which adds up over products and falls under
    postprocessing: no set that costs less than ``d_mid`` does can cover it.
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
    """The rule of a compositor whose shares may be used in any order."""

    kind: ClassVar[str] = "compositor"

    def supports(self, measure: Any) -> bool:
        """f-DP; where losses add up, a filter takes launches in any order."""
        return bool(measure == TRADEOFF_DIVERGENCE)

    def admits(self, accumulator: Slots, d_mid: Any) -> Slots | BudgetExceededError:
        """Admit when unused slots cover ``d_mid``."""
        function = accumulator.read(d_mid)
        taken = accumulator.taking(function)
        if taken is not None:
            return taken
        return BudgetExceededError(
            accumulator.loss,
            function,
            accumulator.left,
            shares=len(accumulator.slots),
            any_order=True,
        )

    def remaining(self, accumulator: Slots) -> tuple[TradeoffFunction, ...]:
        """Return the slots that are left."""
        return accumulator.left
