"""Continuation rules (the papers' F), which decide whether a d_mid may be launched.

A filter's rule follows from its accumulator (Lemma 2.19 of [HSTVVXZ23]): admit a launch exactly if
the accumulator's loss after it is at most d_out. So no filter has a rule of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, ulp
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..errors import BudgetExceededError, D
from ..measures import AccumulatorState, Planned

A = TypeVar("A")  # the accumulators that a rule is made for


class ContinuationRule(Protocol[A]):
    """A rule that admits or refuses one launch, from public numbers only.

    :cvar kind: name of what enforces this rule
    """

    kind: ClassVar[str]

    def admits(self, accumulator: A, d_mid: Any) -> A | BudgetExceededError:
        """Return the accumulator after the launch, or the refusal with its values."""

    def remaining(self, accumulator: A) -> Any:
        """Return what may still be spent."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """The rule of an odometer: every launch is admitted."""

    kind: ClassVar[str] = "odometer"

    def admits(self, accumulator: AccumulatorState[D], d_mid: D) -> AccumulatorState[D]:
        """Admit every launch."""
        return accumulator.after(d_mid, 1)

    def remaining(self, accumulator: AccumulatorState[Any]) -> None:
        """Return None: nothing bounds an odometer."""


@dataclass(frozen=True, slots=True)
class Within(Generic[D]):
    """The rule of a filter: the loss after each launch is at most ``d_out``.

    :ivar exactly: the bound as it was typed, which ``d_out`` is rounded up from; None for a double
    """

    kind: ClassVar[str] = "filter"
    d_out: D
    exactly: D | None = None

    def admits(
        self, accumulator: AccumulatorState[D], d_mid: D, count: int = 1
    ) -> AccumulatorState[D] | BudgetExceededError:
        """Admit ``count`` launches when the loss afterwards is at most ``d_out``.

        It is then at most ``d_out`` after each of the launches: a loss never falls.
        """
        after = accumulator.after(d_mid, count)
        if after.within(self.d_out if self.exactly is None else self.exactly):
            return after
        asked, left = accumulator.read(d_mid), self.remaining(accumulator)
        return BudgetExceededError(accumulator.loss, asked, left, d_out=self.d_out)

    def remaining(self, accumulator: AccumulatorState[D]) -> Any:
        """Return the largest d_mid that would be admitted.

        What is below the last place of d_out is 0: so nothing remains after ten launches of a
        tenth, each of which was rounded down.
        """
        left = accumulator.remaining(self.d_out if self.exactly is None else self.exactly)
        return _without_dust(left, self.d_out)


def _without_dust(left: Any, d_out: Any) -> Any:
    if type(left) is tuple and type(d_out) is tuple:
        return tuple(map(_without_dust, left, d_out))
    numbers = type(left) is type(d_out) is float
    return 0.0 if numbers and left < ulp(d_out) < inf else left


@dataclass(frozen=True, slots=True)
class Shares(Generic[D]):
    """The rule of a compositor: each d_mid is at most the next share, all fixed in advance."""

    kind: ClassVar[str] = "compositor"
    at_most: Callable[[D, D], bool]

    def admits(self, accumulator: Planned[D], d_mid: D) -> Planned[D] | BudgetExceededError:
        """Admit when ``d_mid`` is at most the next share."""
        d_mid, used = accumulator.read(d_mid), accumulator.consumed
        shares = accumulator.d_mids
        if used < len(shares) and self.at_most(d_mid, shares[used]):
            return accumulator.after(d_mid)
        return BudgetExceededError(
            accumulator.loss, d_mid, accumulator.remaining(), shares=len(shares)
        )

    def remaining(self, accumulator: Planned[D]) -> tuple[D, ...]:
        """Return the shares that are left."""
        return accumulator.remaining()
