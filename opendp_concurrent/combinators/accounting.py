"""Whether an accumulator goes with a measure. Both answer for themselves."""

from __future__ import annotations

from typing import Any

from ..checks import is_a, shown
from ..errors import InvalidTypeError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..measures.sums.accumulator import Accounting
from ..measures.sums.basic import Basic

_METHODS = ("supports", "start", "from_record")


def accounting_for(measure: CompositionMeasure, accumulator: Any = None) -> Accounting:
    """Return ``accumulator`` if it can add up losses of ``measure``; by default its own sum.

    :raises InvalidTypeError: if it is no accounting
    :raises UnsupportedMeasureError: if it is for another measure
    """
    if accumulator is None or is_a(accumulator, Basic):
        return measure.sum()
    if not all(callable(getattr(type(accumulator), name, None)) for name in _METHODS):
        raise InvalidTypeError(
            "accumulator must be an accounting such as oc.accumulators.basic() or "
            f"oc.accumulators.zcdp(1e-7), found {shown(accumulator)}; the class of one of your own "
            f"has the methods {', '.join(_METHODS)}"
        )
    found: Accounting = accumulator
    if not found.supports(measure):
        measure.sum()  # may refuse with a better reason
        made_for = getattr(type(found), "made_for", "other measures")
        raise UnsupportedMeasureError(
            f"accumulator ({shown(found)}) is for {made_for}, output_measure is {measure.name}, "
            f"whose distance is {measure.distance_form}; leave it out, or cast the measurements to "
            "the other measure"
        )
    return found


def check_budget(accounting: Accounting, d_out: Any) -> None:
    """Raise if the accumulator could never admit a launch under ``d_out``, where it knows that."""
    check = getattr(type(accounting), "check_budget", None)
    if check is not None:
        check(accounting, d_out)
