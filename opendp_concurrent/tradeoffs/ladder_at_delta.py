"""The accumulator ``ladder`` for (ε, δ)-DP: launches cost whole units of one trade-off function.

A launch of (ε_i, δ_i) costs as many units as the worst such function, which is randomized response
[KOV15], interactively by [LW22, Theorem 3]. So K spent units are unit^K-DP, as in ``ladder``. The
loss is the ε of unit^K at a δ that is fixed up front.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from .. import checks
from ..errors import InvalidValueError
from ..fdp.function import TradeoffFunction
from ..measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from ..sums.accumulator import times


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

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Any, count: int = 1) -> EpsilonDeltaRungs:
        """Spend the units that the pair ``d_mid`` costs, ``count`` times."""
        count, (epsilon, delta) = times(count), checks.pair(d_mid=d_mid)
        epsilon = checks.non_negative(**{"d_mid[0]": epsilon})
        delta = checks.non_negative(**{"d_mid[1]": delta})
        units = TradeoffFunction.approximate(epsilon, min(delta, 1.0)).units(self.unit)
        if units is None or self.spent is None:
            return EpsilonDeltaRungs(self.unit, self.delta_slack, None)
        return EpsilonDeltaRungs(self.unit, self.delta_slack, self.spent + count * units)

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether the loss is at most ``d_out``."""
        epsilon, delta = self.loss
        return epsilon <= d_out[0] and delta <= d_out[1]

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return an ε, and the largest δ, that one more launch may have: to about 10^-6."""
        if self.spent is None or not self.within(d_out):
            return 0.0, 0.0
        left = 0  # units, by doubling and halving
        step = 1
        while step <= _MOST and self._moved(left + step).within(d_out):
            left, step = left + step, 2 * step
        while step > 1:
            step //= 2
            if self._moved(left + step).within(d_out):
                left += step
        if left == 0:
            return 0.0, 0.0
        low, high = 0.0, self.unit.power(left).epsilon(0.0)
        if high == inf:  # losses without a bound: look up to this ε
            high = min(4 * d_out[0] + 1.0, 1e3)
        delta = float(self.unit.power(left).delta_bounds(inf).lower)
        if self.after((high, 0.0)).within(d_out):
            return high, delta
        for _ in range(20):
            middle = (low + high) / 2
            admitted = self.after((middle, 0.0)).within(d_out)
            low, high = (middle, high) if admitted else (low, middle)
        return low, delta

    def _moved(self, units: int) -> EpsilonDeltaRungs:
        """So many units more."""
        return EpsilonDeltaRungs(self.unit, self.delta_slack, (self.spent or 0) + units)

    def to_record(self) -> int | None:
        """Units spent."""
        return self.spent


_MOST = 2**22  # units that ``remaining`` counts


@lru_cache(maxsize=65536)
def _epsilon(unit: TradeoffFunction, units: int | None, delta: float) -> float:
    """ε of the power of the unit at δ, rounded up."""
    return inf if units is None else unit.power(units).epsilon(delta)


@dataclass(frozen=True, slots=True)
class EpsilonDeltaLadder:
    """The accumulator of (ε, δ) losses in units of one trade-off function."""

    unit: TradeoffFunction
    delta_slack: float

    made_for = "Approximate(MaxDivergence)"

    def supports(self, measure: Any) -> bool:
        """Return whether the measure is approximate DP."""
        return bool(measure == APPROXIMATE_MAX_DIVERGENCE)

    def start(self, measure: Any = None) -> EpsilonDeltaRungs:
        """Return the state with no units spent."""
        del measure
        return EpsilonDeltaRungs(self.unit, self.delta_slack)

    def from_record(self, measure: Any, record: int | None) -> EpsilonDeltaRungs:
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
