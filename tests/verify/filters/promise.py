"""A promise of a measure and an accumulator, tested against all analysts with a menu.

A budget is the cost of some launches, or slightly less. A filter that admits slightly more than its
budget then admits one launch too many, and the promise is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from opendp_concurrent.accounting.rule import Within
from opendp_concurrent.errors import Loss
from opendp_concurrent.verify.adversary import Item, Rule, check_depth, next_state
from opendp_concurrent.verify.mechanism import Number, randomized_response

JUST_BELOW = 1 - 1e-6  # a share of the cost at which the last launch does not fit
ORDERS = (1.5, 2.0, 4.0, 16.0)
ROUNDING = 1e-12  # largest error of a sum of probabilities in doubles
CURVE = (0.0, 0.25, 0.5, 1.0, 2.0)  # ε at which whole curves of δ are compared


@dataclass(frozen=True)
class Outcome:
    """The loss of the worst analyst, and the promised loss.

    :ivar part: component of the budget that was at the share, such as "epsilon"
    :ivar about: the quantity that is compared, such as "delta at epsilon"
    :ivar worst: its largest value over all analysts
    :ivar promised: its promised bound
    """

    part: str
    about: str
    worst: Number
    promised: Number

    @property
    def excess(self) -> float:
        """``worst`` minus ``promised``: at most 0 if the promise is kept."""
        if inf in (self.worst, self.promised):
            return 0.0 if self.worst == self.promised else float(self.worst) - float(self.promised)
        return float(Fraction(self.worst) - Fraction(self.promised))

    @property
    def share(self) -> float:
        """``worst`` divided by ``promised``."""
        if self.promised == 0.0:
            return 0.0 if self.worst <= ROUNDING else inf
        return float(self.worst) / float(self.promised)


@dataclass(frozen=True)
class Budget:
    """A budget from the cost of some launches, with one component at a share of its cost.

    :ivar epsilons: of the randomized responses of a menu
    :ivar counts: the number of launches of each
    :ivar part: the component at the share; all other components are at their cost
    :ivar share: of the component that is promised
    :ivar loosened: factor by which the bound of the rule exceeds the promise
    """

    epsilons: Sequence[float]
    counts: Sequence[int]
    part: str
    share: float
    loosened: float

    @property
    def launches(self) -> list[float]:
        """The ε of each launch."""
        pairs = zip(self.epsilons, self.counts, strict=True)
        return [one for one, count in pairs for _ in range(count)]

    def menu(self, declare: Callable[[float], Any]) -> list[Item]:
        """The randomized responses; ``declare`` maps the ε of each to its declared d_mid."""
        return [Item(f"{e:g}", declare(e), randomized_response(e)) for e in self.epsilons]

    def after(self, start: Any, declare: Callable[[float], Any]) -> Any:
        """The accumulator after the launches."""
        return accumulated(start, map(declare, self.epsilons), self.counts)

    def promised(self, part: str, cost: float) -> float:
        """The promise for a component of the distance, from its cost."""
        return cost * self.share if part == self.part else cost

    def limit(self, part: str, cost: float) -> float:
        """The bound of the rule for a component of the distance, from its cost."""
        promised = self.promised(part, cost)
        return promised * self.loosened if part == self.part else promised

    def outcome(self, about: str, worst: Number, promised: Number) -> Outcome:
        """The outcome of one comparison under this budget."""
        return Outcome(self.part, about, worst, promised)


Check = Callable[[Budget], Iterable[Outcome]]


def accumulated(start: Any, d_mids: Iterable[Any], counts: Sequence[int]) -> Any:
    """The accumulator after ``counts`` launches of each d_mid."""
    for d_mid, count in zip(d_mids, counts, strict=True):
        start = start.after(d_mid, count)
    return start


@dataclass(frozen=True)
class Promise:
    """A measure with an accumulator.

    :ivar name: of the measure and the accumulator
    :ivar parts: components of the measure's distance
    """

    name: str
    parts: tuple[str, ...]
    _check: Check
    _loosened: float = 1.0

    def check(
        self, epsilons: Sequence[float], counts: Sequence[int], share: float = JUST_BELOW
    ) -> list[Outcome]:
        """Test the promise against all analysts with a menu of randomized responses.

        The budget is the cost of ``counts`` launches of each item, with one component at a share of
        its cost. Each component is tested in turn.

        :param epsilons: of the menu
        :param counts: number of launches of each item
        :param share: in (0, 1]. A share less than 1e-12 below 1 counts as 1
        """
        budgets = [Budget(epsilons, counts, part, share, self._loosened) for part in self.parts]
        return [outcome for budget in budgets for outcome in self._check(budget)]


class Bound(Within):
    """The rule of a filter. Its refusals do not say what remains, for which it would bisect."""

    def remaining(self, accumulator: Any) -> None:
        """Return None."""


class CachedRule:
    """A rule with its verdicts cached.

    :param rule: its verdicts depend on the state and d_mid only
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._verdicts: dict[Any, Any] = {}

    def admits(self, state: Any, d_mid: Loss) -> Any:
        """Return the next state, or the refusal."""
        key = state, d_mid
        if key not in self._verdicts:
            self._verdicts[key] = self._rule.admits(state, d_mid)
        return self._verdicts[key]


def admitted_counts(
    items: list[Item], accumulator: Any, rule: Rule, most: int = 300
) -> set[tuple[int, ...]]:
    """The numbers of launches of each item, for all sequences of launches that a rule admits."""
    found: set[tuple[int, ...]] = set()
    reached, launches = {(accumulator, (0,) * len(items))}, 0
    while reached:
        check_depth(launches, most)
        found |= {counts for _, counts in reached}
        reached = {
            (after, (*counts[:index], counts[index] + 1, *counts[index + 1 :]))
            for state, counts in reached
            for index, item in enumerate(items)
            if (after := next_state(rule, state, item)) is not None
        }
        launches += 1
    return found
