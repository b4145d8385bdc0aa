"""Checks that an accumulator supports a measure and a bound. The accumulator decides."""

from __future__ import annotations

from collections.abc import Sequence

from ..accounts.store import Terms
from ..arguments.checks import shown
from ..errors import InvalidTypeError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..queryables.mechanism import ConcurrentOdometer
from ..queryables.session import validate_d_in
from ..sums.accumulator import Accounting
from ..sums.basic import Basic
from ..sums.orders_sum import grid_curve
from ..types import Argument, Distance, Loss
from .guards import check_orders

_METHODS = ("supports", "start", "from_record")


def accounting_for(measure: CompositionMeasure, accumulator: Argument = None) -> Accounting:
    """Return ``accumulator`` if it supports ``measure``; if left out, the measure's own sum.

    :raises InvalidTypeError: if it is not an accumulator
    :raises UnsupportedMeasureError: if it does not support the measure
    """
    if accumulator is None or isinstance(accumulator, Basic):
        return measure.sum()
    if not all(callable(getattr(type(accumulator), name, None)) for name in _METHODS):
        raise InvalidTypeError(
            "accumulator must be one of oc.accumulators, such as oc.accumulators.basic(), "
            f"or of your own, whose class has the methods {', '.join(_METHODS)}; found "
            f"{shown(accumulator)}"
        )
    found: Accounting = accumulator
    if not found.supports(measure):
        measure.sum()  # may refuse with a better reason
        made_for = getattr(type(found), "made_for", "other measures")
        raise UnsupportedMeasureError(
            f"accumulator ({shown(found)}) supports {made_for}, but output_measure is "
            f"{measure.name}, whose distance is {measure.distance_form}; leave accumulator "
            "out, or cast the measurements to a supported measure"
        )
    return found


def check_budget(accounting: Accounting, d_out: Loss) -> None:
    """Raise if the accumulator has ``check_budget`` and would admit no launch under ``d_out``."""
    check = getattr(type(accounting), "check_budget", None)
    if check is not None:
        check(accounting, d_out)


def bounded(
    odometer: ConcurrentOdometer, d_in: Distance, d_out: Loss, orders: Sequence[float] | None
) -> Terms:
    """Return the terms under which an odometer is bounded.

    :raises InvalidTypeError, InvalidValueError: naming the argument
    """
    measure, accounting = odometer.measure, odometer.accumulator
    d_in = validate_d_in(odometer.input_metric, d_in, odometer.distance_type)
    budget = measure.validate_budget("d_out", d_out)
    check_budget(accounting, budget)
    on_orders = check_orders(measure, orders)
    if on_orders is not None:
        accounting, budget = on_orders, grid_curve(on_orders.orders, budget, "d_out")
    return Terms(measure.name, accounting, odometer.metric_name, d_in, budget)
