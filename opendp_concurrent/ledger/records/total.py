"""Compare the recorded running total with the sum of the charges.

Some accumulators call functions of the C library, whose last digits differ between machines. Each
machine rounds up, so each total is an upper bound, and the accumulator's ``merged`` takes the
larger. Totals of exact accumulators must be equal.
"""

from __future__ import annotations

import json
from typing import Any

from ...accounts.store import Terms
from ...errors import LedgerDamagedError
from ...sums.accumulator import Accumulator
from .encoding import canonical
from .measures import read_total
from .readable import UNREADABLE


def agreed_total(terms: Terms, text: str, added: Any) -> Accumulator:
    """Return the running total.

    :param text: the recorded total
    :param added: the sum of the charges
    :raises LedgerDamagedError: if they do not agree
    """
    if canonical(added.to_record()) == text:
        total: Accumulator = added
        return total
    recorded = _read(terms, text)
    merge = getattr(type(added), "merged", None)
    merged: Accumulator | None = None if merge is None else merge(added, recorded)
    if merged is None:
        raise LedgerDamagedError(
            f"the running total is {recorded.loss}, but the charges add up to {added.loss}"
        )
    return merged


def _read(terms: Terms, text: str) -> Any:
    try:
        total = read_total(terms, json.loads(text))
        if canonical(total.to_record()) == text and total.loss is not None:
            return total
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the running total is unreadable")
