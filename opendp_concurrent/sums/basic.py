"""The basic accumulator: the plain sum that each measure has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arguments.checks import shown
from ..arguments.written import written
from ..errors import InvalidTypeError
from ..exact.rounding import from_units_up, to_units
from ..types import Json
from .accumulator import Accumulator, Divided

if TYPE_CHECKING:
    from ..measures.measure import CompositionMeasure


@dataclass(frozen=True, slots=True)
class PlainSum:
    """Basic composition as one of the rules: adds up ε, and needs no slack."""

    delta_slack: float = 0.0

    def cost(self, epsilon: float) -> int:
        """ε, exactly."""
        return to_units(epsilon)

    def spent(self, units: float) -> float:
        """Return the least double at or above the sum."""
        return from_units_up(int(units))

    def epsilon(self, spent: float) -> float:
        """Return the sum itself."""
        return spent

    def largest(self, epsilon: float) -> float:
        """Return the bound itself."""
        return epsilon


@written("basic")
@dataclass(frozen=True, slots=True)
class Basic(Divided):
    """Add up the d_mids by the measure's own sum."""

    needs_measure = True

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return True: every measure has a sum."""
        return True

    def start(self, measure: CompositionMeasure | None = None) -> Accumulator:
        """Return the empty sum of the measure, without which it is not known what is added up."""
        empty: Accumulator = _checked(measure).empty()
        return empty

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> Accumulator:
        """Return the sum that ``to_record`` described."""
        total: Accumulator = _checked(measure).read_sum(record)
        return total

    def parts(self) -> tuple[PlainSum, ...]:
        """Return the plain sum of the ε."""
        return (PlainSum(),)

    def __repr__(self) -> str:
        return "basic()"


def _checked(measure: CompositionMeasure | None) -> Any:
    if not callable(getattr(type(measure), "empty", None)):
        raise InvalidTypeError(
            f"measure must be a composition measure, found {shown(measure)}, because each measure "
            "has a sum of its own; pass for example "
            "oc.measures.composition_measure(dp.max_divergence())"
        )
    return measure
