"""What a promise is: a measure and a rule, held against all analysts of a menu.

Budgets are what some launches cost, or just below it: a rule that admits a little more than its
budget then admits one launch too many, and is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from ... import checks
from ...checks import at_most, checked, each, positive
from ...errors import InvalidValueError
from ..mechanism import Number, randomized_response
from .menu import EndlessError, Item

JUST_BELOW = 1 - 1e-6  # share of what launches cost that does not pay for them
ORDERS = (1.5, 2.0, 4.0, 16.0)
ROUNDING = 1e-12  # what doubles may add to a sum of probabilities
TESTS = (0.0, 0.25, 0.5, 1.0, 2.0)  # ε at which whole curves of δ are compared
_COUNT = at_most(100, "all orders of launches are tried")


def _share(**argument: Any) -> float:
    """Return a number in (0, 1], or raise."""
    return min(positive(**argument), checks.probability(**argument))


@dataclass(frozen=True)
class Outcome:
    """What the worst analyst reaches, beside what was promised.

    :ivar part: which part of the budget was at the share, such as "epsilon"
    :ivar about: what is compared, such as "delta at epsilon"
    :ivar worst: the largest that an analyst reaches
    :ivar promised: bound on it
    """

    part: str
    about: str
    worst: Number
    promised: Number

    @property
    def excess(self) -> float:
        """How far the worst is above the promise; at most 0 where it is kept."""
        if inf in (self.worst, self.promised):
            return 0.0 if self.worst == self.promised else float(self.worst) - float(self.promised)
        return float(Fraction(self.worst) - Fraction(self.promised))

    @property
    def share(self) -> float:
        """The part of the promise that the worst analyst uses up."""
        if self.promised == 0.0:
            return 0.0 if self.worst <= ROUNDING else inf
        return float(self.worst) / float(self.promised)


@dataclass(frozen=True)
class Budget:
    """How much of what launches cost is promised, and how much more a rule is given.

    :ivar part: of the distance; all other parts are promised in full
    :ivar share: of the part
    :ivar loosened: factor by which the rule's bound exceeds what is promised
    """

    part: str
    share: float
    loosened: float

    def promised(self, part: str, cost: float) -> float:
        """The promise for a part of the distance, if launches cost so much."""
        return cost * self.share if part == self.part else cost

    def limit(self, part: str, cost: float) -> float:
        """The bound that the rule is given."""
        promised = self.promised(part, cost)
        return promised * self.loosened if part == self.part else promised


Check = Callable[[Sequence[float], Sequence[int], Budget], Iterable[Outcome]]


@dataclass(frozen=True)
class Promise:
    """A measure and a rule.

    :ivar name: both of them
    :ivar parts: of the measure's distance, each of which has a budget
    """

    name: str
    parts: tuple[str, ...]
    _check: Check
    _loosened: float = 1.0

    @checked(epsilons=each("numbers", positive), counts=each("counts", _COUNT), share=_share)
    def check(
        self, epsilons: Sequence[float], counts: Sequence[int], share: float = JUST_BELOW
    ) -> list[Outcome]:
        """Hold the promise against all analysts with a menu of randomized responses.

        The budget is, for one part of the distance after the other, a share of what ``counts``
        launches of each cost; the other parts are exactly what they cost.

        :param epsilons: of the menu
        :param counts: how many launches of each the budget is made for, from 1 to 100
        :param share: in (0, 1]; the largest double below 1 that matters is some 1e-12 below
        :raises InvalidTypeError, InvalidValueError: naming the argument

        :example:

        >>> from opendp_concurrent import verify
        >>> promise = verify.promises()[0]
        >>> outcomes = promise.check([0.5, 1.0], counts=[2, 1], share=1.0)
        >>> outcomes[0].worst == outcomes[0].promised == 2.0
        True
        >>> promise = verify.promises(loosened=1 + 1e-5)[0]
        >>> max(outcome.excess for outcome in promise.check([0.5, 1.0], counts=[2, 1]))
        2.0000...e-06
        """
        if len(counts) != len(epsilons):
            raise InvalidValueError(
                f"counts must be one for each of epsilons: {len(epsilons)}, found {len(counts)}"
            )
        try:
            return [
                outcome
                for part in self.parts
                for outcome in self._check(epsilons, counts, Budget(part, share, self._loosened))
            ]
        except EndlessError as error:
            raise InvalidValueError(
                f"epsilons ({checks.shown(epsilons)}) must be closer together, or counts smaller: "
                "more launches are within the budget than are tried"
            ) from error


def menu_of(epsilons: Iterable[float], declare: Callable[[float], Any]) -> list[Item]:
    """Randomized responses, with what each declares."""
    return [Item(f"{e:g}", declare(e), randomized_response(e)) for e in epsilons]


def after(start: Any, d_mids: Iterable[Any], counts: Sequence[int]) -> Any:
    """The accumulator after so many launches of each."""
    for d_mid, count in zip(d_mids, counts, strict=True):
        start = start.after(d_mid, count)
    return start
