"""The running total: as it is recorded beside the newest charge, and as the charges add up.

Where costs go through functions of the C library, machines may differ in the last places. Each is
rounded up, so each total is a bound; the accumulator takes the larger. What is exact must be the
same.
"""

from __future__ import annotations

import json
from typing import Any

from ..accounts.charge import Terms
from ..errors import LedgerDamagedError
from ..measures.sums.accumulator import Accumulator
from .encoding import canonical
from .readable import UNREADABLE


def agreed_total(terms: Terms, text: str, added: Any) -> Accumulator:
    """Return the total, if what is recorded as ``text`` is what the charges ``added`` up to.

    :raises LedgerDamagedError: if it is not
    """
    if canonical(added.to_record()) == text:
        total: Accumulator = added
        return total
    recorded = _read(terms, text)
    merge = getattr(type(added), "merged", None)
    merged: Accumulator | None = None if merge is None else merge(added, recorded)
    if merged is None:
        raise LedgerDamagedError(
            f"the running total is {recorded.loss}, where the charges add up to {added.loss}"
        )
    return merged


def _read(terms: Terms, text: str) -> Any:
    try:
        total = terms.read_total(json.loads(text))
        if canonical(total.to_record()) == text and total.loss is not None:
            return total
    except UNREADABLE:
        pass
    raise LedgerDamagedError("the running total is unreadable")
