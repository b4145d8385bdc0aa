"""The basic accumulator: the plain sum that each measure has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...checks import shown
from ...errors import InvalidTypeError
from .accumulator import Accumulator


@dataclass(frozen=True, slots=True)
class Basic:
    """Add up the d_mids by the measure's own sum."""

    def supports(self, measure: Any) -> bool:
        """Return True: every measure has a sum."""
        del measure
        return True

    def start(self, measure: Any) -> Accumulator:
        """Return the empty sum of the measure."""
        empty: Accumulator = _checked(measure).empty()
        return empty

    def from_record(self, measure: Any, record: Any) -> Accumulator:
        """Return the sum that ``to_record`` described."""
        total: Accumulator = _checked(measure).read_sum(record)
        return total

    def __repr__(self) -> str:
        return "basic()"


def _checked(measure: Any) -> Any:
    if not callable(getattr(type(measure), "empty", None)):
        raise InvalidTypeError(
            f"measure must be a composition measure, found {shown(measure)}; pass for example "
            "oc.measures.composition_measure(dp.max_divergence())"
        )
    return measure
