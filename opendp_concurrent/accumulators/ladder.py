"""A ladder: launches cost whole units of one trade-off function, whose powers are totally ordered.

A launch of f costs the least k with f <= unit^k. The first K samples of the unit's pair are drawn
before anything else; a child that costs k is a postprocessing of k of them that were not used
(Blackwell; for interactive children [VZ23], restated as [HSTVVXZ23, Theorem 3.3], under finite
communication), so the whole is a postprocessing of as many as were spent: unit^K-DP, whatever was
chosen on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import checks
from ..errors import InvalidValueError
from ..fdp.function import TradeoffFunction, check_function
from ..measures.sums.accumulator import times
from ..measures.tradeoff import TRADEOFF_DIVERGENCE


@dataclass(frozen=True, slots=True)
class Rungs:
    """How many units are spent; None if a launch was worth no number of them."""

    unit: TradeoffFunction
    spent: int | None = 0

    @property
    def loss(self) -> TradeoffFunction:
        """The power of the unit."""
        return TradeoffFunction.worst() if self.spent is None else self.unit.power(self.spent)

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Any, count: int = 1) -> Rungs:
        """Spend the units that ``d_mid`` is worth, ``count`` times."""
        count, units = times(count), check_function(d_mid=d_mid).units(self.unit)
        if units is None or self.spent is None:
            return Rungs(self.unit, None)
        return Rungs(self.unit, self.spent + count * units)

    def within(self, d_out: TradeoffFunction) -> bool:
        """Whether the units spent are at most those that ``d_out`` admits."""
        return self.spent is not None and self.spent <= d_out.admits(self.unit)

    def remaining(self, d_out: TradeoffFunction) -> TradeoffFunction:
        """The power of the unit that is left."""
        if self.spent is None:
            return TradeoffFunction.identity()
        return self.unit.power(max(0, d_out.admits(self.unit) - self.spent))

    def to_record(self) -> int | None:
        """Units spent."""
        return self.spent


@dataclass(frozen=True, slots=True)
class Ladder:
    """Accounting in units of one trade-off function."""

    unit: TradeoffFunction

    made_for = "Tradeoff"

    def supports(self, measure: Any) -> bool:
        """f-DP."""
        return bool(measure == TRADEOFF_DIVERGENCE)

    def start(self, measure: Any = None) -> Rungs:
        """Nothing spent."""
        del measure
        return Rungs(self.unit)

    def from_record(self, measure: Any, record: int | None) -> Rungs:
        """Inverse of :meth:`Rungs.to_record`."""
        del measure
        return Rungs(self.unit, None if record is None else checks.whole(record=record))

    def __repr__(self) -> str:
        return f"ladder({self.unit})"


def ladder(unit: TradeoffFunction) -> Ladder:
    """Accounting for f-DP with losses chosen on the way, in whole units of one trade-off function.

    A launch of f costs the least k with f <= unit^k; an odometer's loss is the power of the unit
    that was spent, and a filter admits as many units as its ``d_out`` is worth. Valid since powers
    of one function are totally ordered; the proof is in ``accumulators/ladder.py``. Equal launches
    of the unit reach the optimal composition of losses fixed up front [KOV15], [MV16]. A launch
    that no number of units is known to cover is refused by a filter; its loss is the worst one.

    :param unit: not the identity
    :return: an accounting for the ``accumulator`` of ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.ladder(oc.TradeoffFunction.pure(0.01))
    >>> budget = oc.TradeoffFunction.approximate(1.0, 1e-6)
    >>> oc.accumulators.launches_admitted(rule, budget, [oc.TradeoffFunction.pure(0.01)])
    562
    """
    if check_function(unit=unit) in (TradeoffFunction.identity(), TradeoffFunction.worst()):
        raise InvalidValueError(f"unit ({unit}) must have a privacy loss, and some privacy")
    return Ladder(unit)
