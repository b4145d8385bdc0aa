"""Sums for (ε, δ) accumulators with a slack: the common part of Theorem 3.7 and similar theorems.

A rule defines the cost of a launch (such as ε²) and the ε that a sum of costs implies at a slack
δ'. The slack is fixed up front. The δ_i are summed separately:

    loss = (epsilon(sum of cost(ε_i)), δ' + sum of δ_i),   and (0, 0) before anything is spent.

Several rules at once have the least of their ε, with all of their slacks. This is the filter that
continues while one of the rules does. It is valid because an (ε_i, δ_i)-DP child is, for two fixed
neighbours, a postprocessing of randomized response that fails with probability δ_i and then reveals
everything ([KOV15]; interactively [LW22, Theorem 3]; both under finite communication). Failures
cost sum of δ_i once. Without failures the children are pure. Consider the views on which rule j is
the first rule that still continues at the end. On them the run has the same probability as the run
that also stops when rule j does, so they contribute at most δ_j' to the divergence.

An exact sum is converted to the least double at or above it. Thus within(), which compares with
the largest double that a bound allows, agrees with the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, Protocol

from ..arguments import checks
from ..errors import InvalidValueError
from ..exact.rounding import largest_double, to_units
from ..measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import nearly_equal, times
from ..sums.scalar_sum import ScalarSum
from ..types import Argument, Json, Loss


class EpsilonRule(Protocol):
    """The cost function of one theorem, and the ε that a sum of costs implies."""

    @property
    def delta_slack(self) -> float:
        """The δ' that the rule spends once."""

    def cost(self, epsilon: float) -> int:
        """Return the cost in units of an ε-DP child with finite ε, rounded up."""

    def spent(self, units: float) -> float:
        """Return the least double at or above ``units``."""

    def epsilon(self, spent: float) -> float:
        """Return an upper bound on ε after costs of ``spent``; it increases in ``spent``."""

    def largest(self, epsilon: float) -> float:
        """Return the largest double ``spent`` with ``self.epsilon(spent) <= epsilon``."""


@dataclass(frozen=True, slots=True)
class EpsilonDeltaSum:
    """Exact costs under each rule, possibly infinite, and the exact sum of the δ."""

    rules: tuple[EpsilonRule, ...]
    costs: tuple[float, ...]
    deltas: ScalarSum

    @property
    def loss(self) -> tuple[float, float]:
        """Least ε of the rules, and all slacks with the sum of the δ; each rounded up."""
        if self._nothing_spent:
            return 0.0, 0.0
        pairs = zip(self.rules, self.costs, strict=True)
        epsilons = (inf if cost == inf else rule.epsilon(rule.spent(cost)) for rule, cost in pairs)
        return min(epsilons), self._delta.loss

    @property
    def _nothing_spent(self) -> bool:
        return self.deltas.units == 0 and not any(self.costs)

    @property
    def _delta(self) -> ScalarSum:
        units, slacks = self.deltas.units, _slacks(self.rules)
        return ScalarSum(None if units is None else units + slacks)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> EpsilonDeltaSum:
        """Add ``count`` times the costs of ``d_mid``."""
        if type(d_mid) is not tuple or len(d_mid) != 2:
            d_mid = checks.pair(d_mid=d_mid)
        epsilon, delta = d_mid
        count = times(count)
        if type(epsilon) is not float or not 0.0 <= epsilon:
            epsilon = checks.non_negative(**{"d_mid[0]": epsilon})
        deltas = self.deltas
        if type(delta) is not float or delta != 0.0:
            deltas = deltas.after(checks.non_negative(**{"d_mid[1]": delta}), count)
        costs = tuple(
            [
                inf if inf in (cost, epsilon) else cost + count * rule.cost(epsilon)
                for rule, cost in zip(self.rules, self.costs, strict=True)
            ]
        )
        return EpsilonDeltaSum(self.rules, costs, deltas)

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether some rule is within the ε of ``d_out``, and all δ within its δ."""
        if self._nothing_spent:
            return True
        if not self._delta.within(d_out[1]):
            return False
        for rule, cost in zip(self.rules, self.costs, strict=True):
            if d_out[0] == inf or (cost != inf and rule.spent(cost) <= rule.largest(d_out[0])):
                return True
        return False

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return the largest ε, and the largest δ, that one more launch may have."""
        delta = self._delta
        if not delta.within(d_out[1]):
            return 0.0, 0.0

        def admits(epsilon: float) -> bool:
            return self.after((epsilon, 0.0)).within(d_out)

        epsilon = inf if d_out[0] == inf else largest_double(admits, near=max(d_out[0], 1e-300))
        return epsilon, delta.remaining(d_out[1])

    def to_record(self) -> list[Json]:
        """The exact costs and the exact sum of the δ."""
        costs = [None if cost == inf else hex(int(cost)) for cost in self.costs]
        return [costs, self.deltas.to_record()]

    def merged(self, other: EpsilonDeltaSum) -> EpsilonDeltaSum | None:
        """Return the larger costs of two sums, if they differ by C library rounding only."""
        if (self.rules, self.deltas) != (other.rules, other.deltas):
            return None
        if len(self.costs) != len(other.costs) or not all(
            map(nearly_equal, self.costs, other.costs)
        ):
            return None
        return EpsilonDeltaSum(self.rules, tuple(map(max, self.costs, other.costs)), self.deltas)


@lru_cache(maxsize=1024)
def _slacks(rules: tuple[EpsilonRule, ...]) -> int:
    """Return the sum of all slacks, in units."""
    return sum(to_units(rule.delta_slack) for rule in rules)


class EpsilonDeltaAccounting:
    """The common methods of the (ε, δ) accumulators with a slack."""

    __slots__ = ()

    def parts(self) -> tuple[Any, ...]:
        """Return the rules, of which one must continue: only this rule, unless it has several."""
        return (self,)

    made_for = "Approximate(MaxDivergence)"

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure is approximate DP."""
        return bool(measure == APPROXIMATE_MAX_DIVERGENCE)

    def start(self, measure: CompositionMeasure | None = None) -> EpsilonDeltaSum:
        """Return the sums before the first launch."""
        rules = self.parts()
        return EpsilonDeltaSum(rules, (0,) * len(rules), ScalarSum())

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> EpsilonDeltaSum:
        """Inverse of :meth:`EpsilonDeltaSum.to_record`."""
        costs, deltas = record
        exact = tuple(inf if cost is None else int(cost, 16) for cost in costs)
        return EpsilonDeltaSum(self.parts(), exact, ScalarSum.from_record(deltas))

    def check_budget(self, d_out: tuple[float, float]) -> None:
        """Raise if the slack exceeds the δ of ``d_out``."""
        if not self.start().after((5e-324, 0.0)).loss[1] <= d_out[1]:
            raise InvalidValueError(
                f"d_out[1] ({d_out[1]}) must be at least the slack of {self!r}; "
                "take a smaller delta_slack, such as half of it"
            )


def slack(value: Argument) -> float:
    """Return ``delta_slack`` as a double in (0, 1), or raise."""
    double = checks.number(delta_slack=value)
    if not 0.0 < double < 1.0:
        raise InvalidValueError(
            f"delta_slack ({value}) must be above 0 and below 1; it is the part of delta "
            "that the accumulator spends once; pass for example half of your delta"
        )
    return double
