"""The accumulator ``ladder``: each launch costs whole units of one trade-off function.

Powers of one trade-off function are totally ordered. A launch of f costs the least k with
f <= unit^k. Draw the first K samples of the unit's pair in advance. A child that costs k is a
postprocessing of k unused samples (Blackwell; for interactive children [VZ23], restated as
[HSTVVXZ23, Theorem 3.3], under finite communication). The whole interaction is therefore a
postprocessing of the spent samples, and so unit^K-DP for every adaptive choice of launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..accumulators.epsilon_delta_sum import slack
from ..arguments import checks
from ..arguments.written import written
from ..errors import InvalidValueError
from ..fdp.function import TradeoffFunction, check_both, check_function
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import times
from ..types import Loss
from .ladder_at_delta import EpsilonDeltaLadder, larger_count
from .tradeoff import TRADEOFF_DIVERGENCE


@dataclass(frozen=True, slots=True)
class Rungs:
    """The number of units spent, or None if no number of units covers a launch."""

    unit: TradeoffFunction
    spent: int | None = 0

    @property
    def loss(self) -> TradeoffFunction:
        """The power of the unit."""
        return TradeoffFunction.worst() if self.spent is None else self.unit.power(self.spent)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> Rungs:
        """Spend the units that ``d_mid`` costs, ``count`` times."""
        count, units = times(count), check_function(d_mid=d_mid).units(self.unit)
        if units is None or self.spent is None:
            return Rungs(self.unit, None)
        return Rungs(self.unit, self.spent + count * units)

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether ``d_out`` covers the units spent."""
        return self.spent is not None and self.spent <= d_out.admits(self.unit)

    def remaining(self, d_out: TradeoffFunction) -> TradeoffFunction:
        """Return the power of the unit that is left."""
        if self.spent is None:
            return TradeoffFunction.identity()
        return self.unit.power(max(0, d_out.admits(self.unit) - self.spent))

    def to_record(self) -> int | None:
        """Units spent."""
        return self.spent

    def merged(self, other: Rungs) -> Rungs | None:
        """Return the larger of two counts of the same launches."""
        spent = larger_count(self.spent, other.spent)
        return Rungs(self.unit, spent) if self.unit == other.unit and spent is not None else None


@written("ladder", "unit")
@dataclass(frozen=True, slots=True)
class Ladder:
    """The accumulator in units of one trade-off function."""

    unit: TradeoffFunction

    made_for = "Tradeoff"

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure is f-DP."""
        return bool(measure == TRADEOFF_DIVERGENCE)

    def start(self, measure: CompositionMeasure | None = None) -> Rungs:
        """Return the state with no units spent."""
        del measure
        return Rungs(self.unit)

    def from_record(self, measure: CompositionMeasure | None, record: int | None) -> Rungs:
        """Inverse of :meth:`Rungs.to_record`."""
        del measure
        return Rungs(self.unit, None if record is None else checks.whole(record=record))

    def shares(
        self, measure: CompositionMeasure, d_out: TradeoffFunction, weights: list[Fraction]
    ) -> list[TradeoffFunction]:
        """Return whole units in proportion to the weights, rounded down."""
        del measure
        units, whole = d_out.admits(self.unit), sum(weights)
        return [self.unit.power(int(units * weight / whole)) for weight in weights]

    def __repr__(self) -> str:
        return f"ladder({self.unit})"


def ladder(unit: TradeoffFunction, delta_slack: float | None = None) -> Ladder | EpsilonDeltaLadder:
    """Add up adaptively chosen f-DP losses in whole units of one trade-off function.

    A launch of f costs the least k with f <= unit^k. An odometer's loss is the power of the unit
    that was spent. A filter admits as many units as ``d_out`` covers, and refuses a launch that no
    number of units is known to cover; an odometer charges the worst loss for it. Powers of one
    function are totally ordered, so this is valid (proof: ``tradeoffs/ladder.py``). Equal
    launches of the unit reach the optimal composition of losses fixed up front [KOV15], [MV16].

    With ``delta_slack`` it adds up (ε, δ) losses under ``approximate(max_divergence())``: a launch
    of (ε, δ) costs as many units as the worst (ε, δ)-DP function, and the loss is the ε of the
    units spent at ``delta_slack``, which needs no further δ for the launches.

    :param unit: a trade-off function other than the identity
    :param delta_slack: for (ε, δ)-DP: δ of the reported loss, such as all of the δ of ``d_out``
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.ladder(oc.TradeoffFunction.pure(0.01))
    >>> budget = oc.TradeoffFunction.approximate(1.0, 1e-6)
    >>> oc.accumulators.launches_admitted(rule, budget, [oc.TradeoffFunction.pure(0.01)])
    562
    >>> rule = oc.accumulators.ladder(oc.TradeoffFunction.pure(0.01), delta_slack=1e-6)
    >>> oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(0.01, 0.0)])
    562
    """
    if check_both(unit=unit) in (TradeoffFunction.identity(), TradeoffFunction.worst()):
        raise InvalidValueError(
            f"unit ({unit}) must be neither TradeoffFunction.identity() nor "
            "TradeoffFunction.worst(); pass for example oc.TradeoffFunction.pure(0.01)"
        )
    if delta_slack is None:
        return Ladder(unit)
    return EpsilonDeltaLadder(unit, slack(delta_slack))
