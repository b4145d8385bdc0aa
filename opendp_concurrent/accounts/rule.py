"""May this d_mid be launched? Continuation rules (the papers' F).

A filter's rule is derived from an accumulator (Lemma 2.19 of [HSTVVXZ23]): continue exactly while
the accumulator's loss after the launch is at most d_out. It is never written a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from ..accumulators.planned import Planned
from ..errors import BudgetExceededError
from ..measures.sums.accumulator import Accumulator


class ContinuationRule(Protocol):
    """A verdict on one launch, from public numbers only.

    :cvar kind: what a bound with this rule is called
    """

    kind: ClassVar[str]

    def admits(self, accumulator: Any, d_mid: Any) -> Accumulator | BudgetExceededError:
        """Return the accumulator after the launch, or the refusal with its values."""

    def remaining(self, accumulator: Any) -> Any:
        """Return what may still be spent."""


@dataclass(frozen=True, slots=True)
class Unlimited:
    """The rule of an odometer: every launch is admitted."""

    kind: ClassVar[str] = "odometer"

    def admits(self, accumulator: Accumulator, d_mid: Any) -> Accumulator:
        """Admit."""
        return accumulator.after(d_mid)

    def remaining(self, accumulator: Accumulator) -> None:
        """Return None: nothing bounds an odometer."""
        del accumulator


@dataclass(frozen=True, slots=True)
class Within:
    """The rule of a filter: the loss stays at or below ``d_out``."""

    kind: ClassVar[str] = "filter"
    d_out: Any

    def admits(self, accumulator: Accumulator, d_mid: Any) -> Accumulator | BudgetExceededError:
        """Admit when the loss afterwards is at most ``d_out``."""
        d_mid = accumulator.read(d_mid)
        after = accumulator.after(d_mid)
        if after.within(self.d_out):
            return after
        return BudgetExceededError(
            accumulator.loss, d_mid, self.remaining(accumulator), d_out=self.d_out
        )

    def remaining(self, accumulator: Accumulator) -> Any:
        """Return the largest d_mid that would be admitted."""
        return accumulator.remaining(self.d_out)


@dataclass(frozen=True, slots=True)
class Shares:
    """The rule of a compositor: each launch is at most the next of the d_mids fixed up front."""

    kind: ClassVar[str] = "compositor"
    at_most: Callable[[Any, Any], bool]

    def admits(self, accumulator: Planned, d_mid: Any) -> Planned | BudgetExceededError:
        """Admit when ``d_mid`` is at most the next share."""
        d_mid, exhausted = accumulator.read(d_mid), accumulator.exhausted
        if not exhausted and self.at_most(d_mid, accumulator.d_mids[accumulator.consumed]):
            return accumulator.after(d_mid)
        return BudgetExceededError(
            accumulator.loss, d_mid, accumulator.remaining(), shares=len(accumulator.d_mids)
        )

    def remaining(self, accumulator: Planned) -> tuple[Any, ...]:
        """Return the shares that are left."""
        return accumulator.remaining()
