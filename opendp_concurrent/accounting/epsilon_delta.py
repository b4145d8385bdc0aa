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

from .. import _checks as checks
from .. import errors, measures
from ..numerics import SMALLEST, Bracket, Digits, from_units_up, largest_double, to_units, upper


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
class EpsilonDeltaSum(measures.AccumulatorState[tuple[float, float]]):
    """Exact costs under each rule, possibly infinite, and the exact sum of the δ."""

    rules: tuple[EpsilonRule, ...]
    costs: tuple[float, ...]
    deltas: measures.ScalarSum

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
    def _delta(self) -> measures.ScalarSum:
        units, slacks = self.deltas.units, _slacks(self.rules)
        return measures.ScalarSum(None if units is None else units + slacks)

    def after(self, d_mid: tuple[float, float], count: int = 1) -> EpsilonDeltaSum:
        """Add ``count`` times the costs of ``d_mid``."""
        if type(d_mid) is not tuple or len(d_mid) != 2:
            d_mid = checks.pair(d_mid=d_mid)
        epsilon, delta = d_mid
        count = measures.times(count)
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

    def to_record(self) -> list[Any]:
        """The exact costs and the exact sum of the δ."""
        costs = [None if cost == inf else hex(int(cost)) for cost in self.costs]
        return [costs, self.deltas.to_record()]

    def merged(self, other: EpsilonDeltaSum) -> EpsilonDeltaSum | None:
        """Return the larger costs of two sums, if they differ by C library rounding only."""
        if (self.rules, self.deltas) != (other.rules, other.deltas):
            return None
        if len(self.costs) != len(other.costs) or not all(
            map(measures.nearly_equal, self.costs, other.costs)
        ):
            return None
        return EpsilonDeltaSum(self.rules, tuple(map(max, self.costs, other.costs)), self.deltas)


@lru_cache(maxsize=1024)
def _slacks(rules: tuple[EpsilonRule, ...]) -> int:
    """Return the sum of all slacks, in units."""
    return sum(to_units(rule.delta_slack) for rule in rules)


class EpsilonDeltaAccumulator(measures.OfOneMeasure):
    """The common methods of the (ε, δ) accumulators with a slack."""

    __slots__ = ()
    made_for = measures.APPROXIMATE

    def spent(self, units: float) -> float:
        """Return the least double at or above the sum of the costs."""
        return from_units_up(int(units))

    def parts(self) -> tuple[Any, ...]:
        """Return the rules, of which one must continue: only this rule, unless it has several."""
        return (self,)

    def start(self, measure: measures.CompositionMeasure[Any] | None = None) -> EpsilonDeltaSum:
        """Return the sums before the first launch."""
        rules = self.parts()
        return EpsilonDeltaSum(rules, (0,) * len(rules), measures.ScalarSum())

    def from_record(
        self, measure: measures.CompositionMeasure[Any] | None, record: list[Any]
    ) -> EpsilonDeltaSum:
        """Inverse of :meth:`EpsilonDeltaSum.to_record`."""
        costs, deltas = record
        exact = tuple(inf if cost is None else int(cost, 16) for cost in costs)
        return EpsilonDeltaSum(self.parts(), exact, measures.ScalarSum.from_record(deltas))

    def check_budget(self, d_out: tuple[float, float]) -> None:
        """Raise if the slack exceeds the δ of ``d_out``."""
        if not self.start().after((5e-324, 0.0)).loss[1] <= d_out[1]:
            raise errors.InvalidValueError(
                f"d_out[1] ({d_out[1]}) must be at least the slack of {self!r}; "
                "take a smaller delta_slack, such as half of it"
            )


def slack(value: errors.Argument) -> float:
    """Return ``delta_slack`` as a double in (0, 1), or raise."""
    double = checks.number(delta_slack=value)
    if not 0.0 < double < 1.0:
        raise errors.InvalidValueError(
            f"delta_slack ({value}) must be above 0 and below 1; it is the part of delta "
            "that the accumulator spends once; pass for example half of your delta"
        )
    return double


# The basic accumulator: the plain sum of losses, for every kind of distance.


@checks.sent(measures.Basic)
def basic() -> measures.Basic:
    """Add up privacy losses by their plain sum: basic composition.

    The sum is valid for every measure of this package, against any adaptive analyst. Children may
    be concurrent where the measure allows it [HSTVVXZ23, Theorems 1.20, 1.21 and 4.6].

    :return: an accumulator for ``make_concurrent_odometer``

    :example:

    >>> oc.accumulators.basic()
    basic()
    """
    return measures.Basic()


# The accumulator ``advanced``: Theorems 3.7, 3.8 of [HSTVVXZ23], and [WRRW23, Theorem 2].
#
# With S = sum of ε_i² and a slack δ' that is fixed up front, the launches so far are
# (sqrt(2 S log(1/δ')) + S/2, δ' + sum of δ_i)-DP.


@checks.tagged("advanced", slack="delta_slack")
@dataclass(frozen=True, slots=True, repr=False)
class Advanced(EpsilonDeltaAccumulator):
    """Add up the squares of ε."""

    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Return ε², exactly, in units of 2**-(2 * SMALLEST): ledgers keep these units."""
        return to_units(epsilon) ** 2

    def spent(self, units: float) -> float:
        """Return the least double at or above S."""
        return from_units_up(-(-int(units) >> SMALLEST))

    def epsilon(self, spent: float) -> float:
        """Return the ε of Theorem 3.8 at S = ``spent``."""
        return _epsilon(spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double S that Theorem 3.7 admits."""
        return _largest(epsilon, self.delta_slack)


@lru_cache(maxsize=65536)
def _epsilon(spent: float, delta_slack: float) -> float:
    if spent in (0.0, inf):
        return spent

    def epsilon(real: Digits) -> Bracket:
        s = real(spent)
        return (-(2 * s * real(delta_slack).ln())).sqrt() + s / 2

    return upper(epsilon)


@lru_cache(maxsize=4096)
def _largest(epsilon: float, delta_slack: float) -> float:
    return largest_double(lambda spent: _epsilon(spent, delta_slack) <= epsilon, epsilon)


@checks.sent(Advanced)
def advanced(delta_slack: float) -> Advanced:
    """Add up (ε, δ) losses by the sum of squares of ε.

    After launches with (ε_i, δ_i) the loss is (sqrt(2 S log(1/δ')) + S/2, δ' + sum of δ_i) with
    S = sum of ε_i² and δ' = ``delta_slack``. Before anything is spent it is (0, 0). The rule is
    valid for concurrent children with adaptively chosen losses, under finite communication
    [HSTVVXZ23, Theorems 3.7 and 3.8], [WRRW23, Theorem 2].

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> losses = oc.accumulators.advanced(delta_slack=1e-6).start().after((0.1, 0.0), 10)
    >>> losses.loss
    (1.712258136..., 1e-06)
    """
    return Advanced(slack(delta_slack))


# The accumulator ``either``: several rules at once, with their slacks added.
#
# Rules that are each valid at their own δ are jointly valid at the sum of these δ. They are not
# jointly valid at an undivided δ. The proof is at the head of this file.


@checks.tagged("either", "rules")
@dataclass(frozen=True, slots=True)
class Either(EpsilonDeltaAccumulator):
    """The least ε of several rules."""

    rules: tuple[Any, ...]

    def parts(self) -> tuple[EpsilonRule, ...]:
        """All rules."""
        return tuple(part for rule in self.rules for part in rule.parts())

    def __repr__(self) -> str:
        return f"either({', '.join(map(repr, self.rules))})"


def either(*rules: Any) -> Either:
    """Add up (ε, δ) losses under several rules, and use the rule with the least ε.

    The loss is the least ε of the rules. Its δ is the sum of all slacks and of the δ of the
    launches. Before anything is spent the loss is (0, 0). ``basic()`` has no slack, so adding it is
    free. A filter admits a launch if one of the rules does. ``either`` is valid where every rule is
    valid; ``accounting/epsilon_delta.py`` has the proof. One shared slack is not valid.

    :param rules: at least two accumulators for (ε, δ)-DP, such as ``basic()`` and ``zcdp(1e-7)``
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError: naming the argument

    :example:

    >>> rules = oc.accumulators.basic(), oc.accumulators.zcdp(1e-6)
    >>> losses = oc.accumulators.either(*rules).start()
    >>> losses.after((0.125, 0.0), 4).loss
    (0.5, 1e-06)
    >>> losses.after((0.1, 0.0), 1000).loss
    (20.5..., 1e-06)
    """
    if len(rules) < 2:
        raise errors.InvalidTypeError(f"rules must be at least two, found {len(rules)}")
    for index, rule in enumerate(rules):
        if not callable(getattr(type(rule), "parts", None)):
            raise errors.InvalidTypeError(
                f"rules[{index}] must be an accumulator for (epsilon, delta) such as "
                f"oc.accumulators.basic() or oc.accumulators.zcdp(1e-7), found {errors.shown(rule)}"
            )
    return Either(tuple(rules))


@checks.sent(Either)
def either_of(rules: Any) -> Either:
    """Return the accumulator that combines several rules, as a message names them."""
    return either(*checks.elements("accumulators", rules=rules))
