"""Reading a budget from its first charge: whether it fits together, and what is spent.

All of it is read: the sequence has no gap, each hash follows from the one before, each d_mid is an
exact record, and what they add up to is the running total.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ..accounts.charge import Terms
from ..accounts.rule import Within
from ..errors import InvalidValueError, LedgerDamagedError
from . import tables
from .chain import first_hash
from .entries import Entry
from .follow import Known, follow
from .terms import read_terms
from .total import agreed_total


@dataclass(frozen=True, slots=True)
class Summary:
    """A budget and where it stands.

    :ivar dataset: what the budget is for
    :ivar created: when the ledger was created, in UTC
    :ivar terms: what the budget is about; None before its first use
    :ivar launches: how many were charged
    :ivar spent: bound on the privacy loss so far; None before the first use
    :ivar remaining: the largest loss that one more launch may have; None for an odometer
    :ivar anchor: number and hash of the newest charge
    """

    dataset: str
    created: str
    terms: Terms | None
    launches: int
    spent: Any
    remaining: Any
    anchor: str


def audit(
    connection: Connection,
    dataset: str,
    anchor: str | None = None,
    tell: Callable[[Entry], object] | None = None,
) -> tuple[Summary, Known | None]:
    """Read a budget whole, and check that all of it fits together.

    :param connection: all of whose statements see one state
    :param anchor: of an earlier summary: the ledger must go on from there
    :param tell: is told every entry, in order
    :raises LedgerDamagedError: naming what does not fit
    """
    row = connection.execute(tables.READ_BUDGET, {"of": dataset}).mappings().one_or_none()
    if row is None:
        raise LedgerDamagedError(f"the budget of {dataset!r} is gone")
    terms = None if row["terms"] is None else read_terms(row["terms"])
    first = _first(dataset, row["terms"], terms)
    anchored = _Anchor(anchor, dataset, first.head)
    found = connection.execute(
        tables.READ_CHARGES, {"of": dataset}, execution_options={"yield_per": 1000}
    )
    with found as charges:
        if terms is None and charges.first() is not None:
            raise LedgerDamagedError("charge 1 was made before there were terms")
        known = follow(first, [] if terms is None else map(anchored.see, charges), tell)
    if (row["sequence"], row["head"]) != known[:2]:
        raise LedgerDamagedError(
            f"there are {known.sequence} charges, where the newest is said to be number "
            f"{row['sequence']}"
        )
    anchored.end(known.sequence)
    place = f"{known.sequence}:{known.head}"
    if terms is None:
        return Summary(dataset, row["created"], None, 0, None, None, place), None
    total = agreed_total(terms, row["record"], known.accumulator)
    remaining = None if terms.d_out is None else Within(terms.d_out).remaining(total)
    facts = row["created"], terms, known.sequence, total.loss, remaining, place
    return Summary(dataset, *facts), known._replace(accumulator=total)


def _first(dataset: str, text: str | None, terms: Terms | None) -> Known:
    total: Any = None if terms is None else terms.accounting.start(terms.zero)
    return Known(0, first_hash(dataset, text), total)


class _Anchor:
    """A place that the ledger must have passed."""

    def __init__(self, anchor: str | None, dataset: str, first: str) -> None:
        self._sequence, self._hash = -1, ""
        if anchor is None:
            return
        found = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", str(anchor))
        if found is None:
            raise InvalidValueError(f"anchor ({anchor}) must be number:hash, as a summary has it")
        self._sequence, self._hash = int(found[1]), found[2]
        # terms are settled after the ledger was created, and change its first hash
        if not self._sequence and self._hash not in (first, first_hash(dataset, None)):
            raise LedgerDamagedError("the ledger is not the one of the anchor")

    def see(self, row: Any) -> Any:
        """Return the row of a charge, which may be the one."""
        if row[1] == self._sequence and row[6] != self._hash:
            raise LedgerDamagedError(f"charge {row[1]} is not the one of the anchor")
        return row

    def end(self, sequence: int) -> None:
        if sequence < self._sequence:
            raise LedgerDamagedError(
                f"there are {sequence} charges, where the anchor is number {self._sequence}"
            )
