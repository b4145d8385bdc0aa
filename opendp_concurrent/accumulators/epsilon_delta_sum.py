"""(ε, δ) accounting with a slack: what is common to the rules of Theorem 3.7 and its relatives.

A rule says what adds up over the launches (a cost, such as ε²) and how large an ε the sum amounts
to, at a slack δ' that is fixed up front. The δ_i add up beside it:

    loss = (epsilon(sum of cost(ε_i)), δ' + sum of δ_i),   and (0, 0) before anything is spent.

Several rules at once: the least of their ε, with all of their slacks. This is the filter that goes
on while one of them would. It is valid because an (ε_i, δ_i)-DP child is, for two fixed neighbours,
a postprocessing of randomized response that fails, and then reveals all, with probability δ_i
([KOV15]; interactively [LW22, Theorem 3]; both under finite communication). Failures cost
sum of δ_i once. Without them the children are pure, and views on which rule j is the first one
still standing at the end contribute at most its slack δ_j' to the divergence, since there the run
and the one that also stops when rule j does are equally likely.

A conversion of an exact sum takes the least double at or above it, so that within() can compare
with the largest double that a bound allows, and agree with the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any, Protocol

from .. import checks
from ..errors import InvalidValueError
from ..exact.rounding import largest_double, to_units
from ..measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from ..measures.sums.accumulator import nearly_equal, times
from ..measures.sums.scalar_sum import ScalarSum


class EpsilonRule(Protocol):
    """One theorem: what adds up, and how large an ε it amounts to."""

    @property
    def delta_slack(self) -> float:
        """The δ' that the rule spends once."""

    def cost(self, epsilon: float) -> int:
        """Units of what adds up, for an ε-DP child with finite ε; rounded up."""

    def spent(self, units: float) -> float:
        """Least double at or above that many units."""

    def epsilon(self, spent: float) -> float:
        """Upper bound on ε after costs of ``spent``; grows with it."""

    def largest(self, epsilon: float) -> float:
        """Largest double ``spent`` with ``self.epsilon(spent) <= epsilon``."""


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

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Any, count: int = 1) -> EpsilonDeltaSum:
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
        """Whether some rule is within ε, and the slacks and the δ within δ."""
        if self._nothing_spent:
            return True
        if not self._delta.within(d_out[1]):
            return False
        for rule, cost in zip(self.rules, self.costs, strict=True):
            if d_out[0] == inf or (cost != inf and rule.spent(cost) <= rule.largest(d_out[0])):
                return True
        return False

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Largest ε, and largest δ, that one more launch may have."""
        delta = self._delta
        if not delta.within(d_out[1]):
            return 0.0, 0.0

        def admits(epsilon: float) -> bool:
            return self.after((epsilon, 0.0)).within(d_out)

        epsilon = inf if d_out[0] == inf else largest_double(admits, near=max(d_out[0], 1e-300))
        return epsilon, delta.remaining(d_out[1])

    def to_record(self) -> list[Any]:
        """The exact costs and the exact sum of the δ."""
        costs = [None if cost == inf else hex(int(cost)) for cost in self.costs]
        return [costs, self.deltas.to_record()]

    def merged(self, other: EpsilonDeltaSum) -> EpsilonDeltaSum | None:
        """Return the larger costs of two sums, if they differ by the C library only."""
        if (self.rules, self.deltas) != (other.rules, other.deltas):
            return None
        if len(self.costs) != len(other.costs) or not all(
            map(nearly_equal, self.costs, other.costs)
        ):
            return None
        return EpsilonDeltaSum(self.rules, tuple(map(max, self.costs, other.costs)), self.deltas)


@lru_cache(maxsize=1024)
def _slacks(rules: tuple[EpsilonRule, ...]) -> int:
    """Units of all slacks together."""
    return sum(to_units(rule.delta_slack) for rule in rules)


class EpsilonDeltaAccounting:
    """What the rules have in common as accountings."""

    __slots__ = ()

    def parts(self) -> tuple[Any, ...]:
        """The rules of which one must stand: just this one, unless there are several."""
        return (self,)

    made_for = "Approximate(MaxDivergence)"

    def supports(self, measure: Any) -> bool:
        """Approximate DP."""
        return bool(measure == APPROXIMATE_MAX_DIVERGENCE)

    def start(self, measure: Any = None) -> EpsilonDeltaSum:
        """Nothing spent."""
        del measure
        rules = self.parts()
        return EpsilonDeltaSum(rules, (0,) * len(rules), ScalarSum())

    def from_record(self, measure: Any, record: list[Any]) -> EpsilonDeltaSum:
        """Inverse of :meth:`EpsilonDeltaSum.to_record`."""
        del measure
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


def slack(value: Any) -> float:
    """Return ``delta_slack`` as a double in (0, 1), or raise."""
    double = checks.number(delta_slack=value)
    if not 0.0 < double < 1.0:
        raise InvalidValueError(
            f"delta_slack ({value}) must be above 0 and below 1; "
            "it is the part of delta that the rule spends once, such as half of it"
        )
    return double
