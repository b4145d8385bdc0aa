"""The accumulator ``ladder`` for (ε, δ)-DP: launches cost whole units of one trade-off function.

A launch of (ε_i, δ_i) costs as many units as the worst such function, which is randomized response
[KOV15], interactively by [LW22, Theorem 3]. So K spent units are unit^K-DP, as in ``ladder``. The
loss is the ε of unit^K at a δ that is fixed up front.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import atanh, inf

from ..arguments import checks
from ..arguments.written import written
from ..errors import InvalidValueError
from ..fdp.function import TradeoffFunction
from ..measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import times
from ..types import Loss


@dataclass(frozen=True, slots=True)
class EpsilonDeltaRungs:
    """The number of units spent on (ε, δ) launches, or None if no number covers a launch."""

    unit: TradeoffFunction
    delta_slack: float
    spent: int | None = 0

    @property
    def loss(self) -> tuple[float, float]:
        """The ε of the power of the unit at the slack, rounded up; (0, 0) if nothing is spent."""
        if self.spent == 0:
            return 0.0, 0.0
        return _epsilon(self.unit, self.spent, self.delta_slack), self.delta_slack

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> EpsilonDeltaRungs:
        """Spend the units that the pair ``d_mid`` costs, ``count`` times."""
        count, (epsilon, delta) = times(count), checks.pair(d_mid=d_mid)
        epsilon = checks.non_negative(**{"d_mid[0]": epsilon})
        delta = checks.non_negative(**{"d_mid[1]": delta})
        units = TradeoffFunction.approximate(epsilon, min(delta, 1.0)).units(self.unit)
        if units is None or self.spent is None:
            return replace(self, spent=None)
        return self.moved(count * units)

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether the loss is at most ``d_out``."""
        epsilon, delta = self.loss
        return epsilon <= d_out[0] and delta <= d_out[1]

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return an ε, and the largest δ, that one more launch may have: to about 10^-6.

        The largest ε that k units cover is 2 artanh δ(0), for the δ of unit^k (``fdp/order.py``).
        """
        if self.spent is None or not self.within(d_out):
            return 0.0, 0.0
        left = self.left(d_out)
        if left == 0:
            return 0.0, 0.0
        power = self.unit.power(left)
        delta = float(power.delta_bounds(inf).lower)
        high = power.epsilon(0.0)
        if high < inf and self.after((high, 0.0)).within(d_out):  # the unit may be pure
            return high, delta
        low, high = 0.0, 2 * atanh(min(float(power.delta_bounds(0.0, _WIDTH).lower), 1 - 2.0**-53))
        for step in range(20):  # the first is enough, unless the unit is not symmetric
            middle = (low + high) / 2 if step else high * (1 - 1e-9)
            admitted = self.after((middle, 0.0)).within(d_out)
            low, high = (middle, high) if admitted else (low, middle)
            if low > 0.999999 * high:
                break
        return low, delta

    def left(self, d_out: tuple[float, float]) -> int:
        """The largest number of units more within ``d_out``, if losses rise; at most ``_MOST``."""
        least, most, before = 0, _MOST + 1, self.loss[0] ** 2  # the last one within, the first not
        beyond, step, tries = inf, 1, 0
        while most - least > 1:
            epsilon, tries = self.moved(step).loss[0], tries + 1
            square = min(epsilon, _LARGEST) ** 2
            if self.moved(step).within(d_out):
                least, before = step, square
            else:
                most, beyond = step, square
            # ε² is about linear in the number of units
            share = (min(d_out[0], _LARGEST) ** 2 - before) / (beyond - before)
            guess = least + (most - least) * share if beyond < inf else 8 * step
            if tries % 4 == 0 and beyond < inf:
                guess = (least + most) / 2
            step = min(max(round(guess), least + 1), most - 1)
        return least

    def moved(self, units: int) -> EpsilonDeltaRungs:
        """So many units more."""
        return replace(self, spent=(self.spent or 0) + units)

    def to_record(self) -> int | None:
        """Units spent."""
        return self.spent

    def merged(self, other: EpsilonDeltaRungs) -> EpsilonDeltaRungs | None:
        """Return the larger of two counts of the same launches."""
        spent = larger_count(self.spent, other.spent)
        same = (self.unit, self.delta_slack) == (other.unit, other.delta_slack)
        return replace(self, spent=spent) if same and spent is not None else None


def larger_count(one: int | None, other: int | None) -> int | None:
    """Return the larger of two counts of units for the same launches; None if they do not agree.

    Each launch costs the least number of units that is shown to cover it. A later version, or
    another C library, may show one unit less or more. Each count is a bound.
    """
    if one is None or other is None:
        return None
    return max(one, other) if max(one, other) <= 2 * min(one, other) else None


_MOST = 2**22  # units that ``remaining`` counts
_LARGEST = 1e100  # ε whose square is a double
_WIDTH = 1e-5  # of the bounds on δ(0), as where launches are compared with units


@lru_cache(maxsize=65536)
def _epsilon(unit: TradeoffFunction, units: int | None, delta: float) -> float:
    """ε of the power of the unit at δ, rounded up."""
    return inf if units is None else unit.power(units).epsilon(delta)


@written("ladder-at-delta", "unit", slack="delta_slack")
@dataclass(frozen=True, slots=True)
class EpsilonDeltaLadder:
    """The accumulator of (ε, δ) losses in units of one trade-off function."""

    unit: TradeoffFunction
    delta_slack: float

    made_for = "Approximate(MaxDivergence)"

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure is approximate DP."""
        return bool(measure == APPROXIMATE_MAX_DIVERGENCE)

    def start(self, measure: CompositionMeasure | None = None) -> EpsilonDeltaRungs:
        """Return the state with no units spent."""
        del measure
        return EpsilonDeltaRungs(self.unit, self.delta_slack)

    def from_record(
        self, measure: CompositionMeasure | None, record: int | None
    ) -> EpsilonDeltaRungs:
        """Inverse of :meth:`EpsilonDeltaRungs.to_record`."""
        del measure
        spent = None if record is None else checks.whole(record=record)
        return EpsilonDeltaRungs(self.unit, self.delta_slack, spent)

    def check_budget(self, d_out: tuple[float, float]) -> None:
        """Raise if the slack exceeds the δ of ``d_out``."""
        if not self.delta_slack <= d_out[1]:
            raise InvalidValueError(
                f"d_out[1] ({d_out[1]}) must be at least the slack of {self!r}; "
                "take a smaller delta_slack, such as all of it"
            )

    def __repr__(self) -> str:
        return f"ladder({self.unit}, delta_slack={self.delta_slack})"


def alike_ladder(loss: tuple[float, float], delta: float) -> EpsilonDeltaLadder | None:
    """Return the ladder whose unit is one launch, or None if the launch bounds nothing."""
    unit = TradeoffFunction.approximate(*loss)
    return None if unit == TradeoffFunction.worst() else EpsilonDeltaLadder(unit, delta)
