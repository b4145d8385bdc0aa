"""Which accounting goes with which measure."""

from __future__ import annotations

from typing import Any

from ..accumulators.basic import Basic, basic
from ..accumulators.epsilon_delta_sum import EpsilonDeltaAccounting
from ..accumulators.from_rule import FromRule
from ..accumulators.ladder import Ladder
from ..accumulators.residue import Residue
from ..checks import is_a, shown
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..measures.families import APPROXIMATE, GAUSSIAN, TRADEOFF, TRUNCATED
from ..measures.sums.accumulator import Accounting
from ..measures.sums.square_sum import Squares
from ..measures.sums.tradeoff_product import Products
from ..measures.sums.truncated_sum import Truncated

_OWN: dict[str, Accounting] = {
    GAUSSIAN: Squares(),
    TRUNCATED: Truncated(),
}


def accounting_for(measure: CompositionMeasure, accumulator: Any = None) -> Any:
    """Return ``accumulator`` if it can add up losses of ``measure``; by default its basic one.

    :raises InvalidTypeError: if it is no accounting
    :raises UnsupportedMeasureError: if it is for another measure
    """
    if measure.family == TRADEOFF:
        return _for_tradeoff(accumulator)
    if is_a(accumulator, Ladder, Residue):
        raise UnsupportedMeasureError(
            f"accumulator ({shown(accumulator)}) is for {TRADEOFF}, output_measure is "
            f"{measure.name}; leave it out, or cast to oc.tradeoff()"
        )
    if accumulator is None or is_a(accumulator, Basic):
        return _OWN.get(measure.family, basic())
    if is_a(accumulator, EpsilonDeltaAccounting):
        if measure.family == APPROXIMATE:
            return accumulator
        raise UnsupportedMeasureError(
            f"accumulator ({shown(accumulator)}) is for Approximate(MaxDivergence), "
            f"output_measure is {measure.name}; leave it out, or cast to dp.approximate(...)"
        )
    if is_a(accumulator, FromRule):
        if measure.zero == 0.0:
            return accumulator
        raise UnsupportedMeasureError(
            f"accumulator ({shown(accumulator)}) is for measures whose distance is one number, "
            f"that of {measure.name} is {measure.distance_form}"
        )
    raise InvalidTypeError(
        "accumulator must be an accounting such as oc.accumulators.basic() or "
        f"oc.accumulators.zcdp(1e-7), found {shown(accumulator)}"
    )


def fixed_accounting(measure: CompositionMeasure) -> Any:
    """Return how losses add up that are fixed up front."""
    return Products() if measure.family == TRADEOFF else accounting_for(measure)


def _for_tradeoff(accumulator: Any) -> Any:
    if is_a(accumulator, Ladder, Residue):
        return accumulator
    raise UnsupportedMeasureError(
        "accumulator must be oc.accumulators.ladder(unit) or oc.accumulators.residue(mu) under "
        f"Tradeoff, found {shown(accumulator)}: the product of trade-off functions that are chosen "
        "on the way bounds nothing [RHLMTL26], [TKRH26]; docs/refused.rst has analysts who exceed "
        "it. Gaussian DP has an odometer of its own: oc.gaussian_tradeoff()"
    )


def check_budget(accounting: Any, d_out: Any) -> None:
    """Raise if the slack of ``accounting`` exceeds the δ of ``d_out``."""
    if not isinstance(accounting, EpsilonDeltaAccounting):
        return
    if not accounting.start(None).after((5e-324, 0.0)).loss[1] <= d_out[1]:
        raise InvalidValueError(
            f"d_out[1] ({d_out[1]}) must be at least the slack of {accounting!r}; "
            "take a smaller delta_slack, such as half of it"
        )
