"""Opening the book of a budget that is kept in a ledger."""

from __future__ import annotations

from typing import Any

from ..accounts.store import InLedger, Ledger, Terms
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..sums.accumulator import Accumulator


def check_ledger(ledger: Any, measure: CompositionMeasure, *, halt: bool = False) -> None:
    """Raise unless ``ledger`` is a ledger that can keep a budget under this measure."""
    if not callable(getattr(type(ledger), "book", None)):
        raise InvalidTypeError(
            f"ledger must be made by oc.ledger.open_ledger(...), found {type(ledger).__name__}"
        )
    if measure.sequential_reason:
        raise UnsupportedMeasureError(
            f"ledger is not supported under {measure.name}: {measure.reason}, and a launch "
            "in one process cannot close the children in another; use another measure"
        )
    if halt:
        raise InvalidValueError(
            "halt must be False with a ledger: a refusal in one process cannot close "
            "the children in another"
        )


def open_book(ledger: Ledger, terms: Terms) -> tuple[InLedger, Accumulator]:
    """Open the budget with these terms. Return its keeper, and the accumulator of its charges.

    :raises LedgerError: if the budget has other terms
    """
    keeper = InLedger(ledger.book(terms))
    return keeper, keeper.read()
