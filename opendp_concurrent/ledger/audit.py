"""Reading a budget from its first charge: whether it fits together, and what is spent.

All of it is read: the sequence has no gap, each hash follows from the one before, each d_mid is an
exact record, and what they add up to is the running total.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..accounts.charge import Terms
from ..accounts.rule import Within
from ..checks import shown
from ..errors import InvalidValueError, LedgerDamagedError
from . import tables
from .chain import first_hash
from .entries import Entry
from .follow import Known, follow
from .readable import reading, require_count, require_text
from .terms import read_terms
from .total import agreed_total
from .wire import NEWEST


class Milestone(NamedTuple):
    """A charge that a ledger must have.

    :ivar said: who says so, as an error names it
    """

    sequence: int
    head: str
    said: str


def milestone(anchor: str) -> Milestone:
    """The charge of an anchor.

    :raises InvalidValueError: if it is none
    """
    found = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", str(anchor))
    if found is None:
        raise InvalidValueError(
            f"anchor ({shown(anchor)}) must be number:hash, as a summary has it"
        )
    return Milestone(int(found[1]), found[2], "the anchor")


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
    milestones: Iterable[Milestone] = (),
    tell: Callable[[Entry], object] | None = None,
) -> tuple[Summary, Known | None]:
    """Read a budget whole, and check that all of it fits together.

    :param connection: all of whose statements see one state
    :param milestones: charges that the ledger must have
    :param tell: is told every entry, in order
    :raises LedgerDamagedError: naming what does not fit
    """
    row = connection.execute(tables.READ_BUDGET, {"of": dataset}).mappings().one_or_none()
    if row is None:
        raise LedgerDamagedError(f"the budget of {dataset!r} is gone")
    what = f"the budget of {dataset!r}"
    require_text(what, created=row["created"], head=row["head"])
    require_count(what, sequence=row["sequence"])
    if row["terms"] is not None:
        require_text(what, terms=row["terms"])
    terms, form = (None, NEWEST) if row["terms"] is None else read_terms(row["terms"])
    total: Any = None if terms is None else terms.empty_total()
    first = Known(0, first_hash(dataset, row["terms"]), total, form)
    passed = _Passed(milestones, dataset, first.head)
    found = connection.execute(
        tables.READ_CHARGES, {"of": dataset}, execution_options={"yield_per": 1000}
    )
    with found as charges:
        if terms is None and charges.first() is not None:
            raise LedgerDamagedError("charge 1 was made before there were terms")
        known = follow(first, [] if terms is None else map(passed.see, charges), tell)
    if (row["sequence"], row["head"]) != known[:2]:
        raise LedgerDamagedError(
            f"there are {known.sequence} charges, where the newest is said to be number "
            f"{row['sequence']}"
        )
    passed.end(known.sequence)
    place = f"{known.sequence}:{known.head}"
    if terms is None:
        return Summary(dataset, row["created"], None, 0, None, None, place), None
    with reading(what):
        total = agreed_total(terms, row["record"], known.accumulator)
        remaining = None if terms.d_out is None else Within(terms.d_out).remaining(total)
        facts = row["created"], terms, known.sequence, total.loss, remaining, place
    return Summary(dataset, *facts), known._replace(accumulator=total)


class _Passed:
    """Charges that the ledger must have passed."""

    def __init__(self, milestones: Iterable[Milestone], dataset: str, first: str) -> None:
        self._all = sorted(milestones)
        self._at: dict[int, list[Milestone]] = {}
        for one in self._all:
            self._at.setdefault(one.sequence, []).append(one)
        # terms are settled after the ledger was created, and change its first hash
        for one in self._at.get(0, ()):
            if one.head not in (first, first_hash(dataset, None)):
                raise LedgerDamagedError(f"the ledger is not the one of {one.said}")

    def see(self, row: Any) -> Any:
        """Return the row of a charge, which may be one of them."""
        for one in self._at.get(row[1], ()):
            if row[6] != one.head:
                raise LedgerDamagedError(f"charge {row[1]} is not the one of {one.said}")
        return row

    def end(self, sequence: int) -> None:
        for one in self._all:
            if sequence < one.sequence:
                raise LedgerDamagedError(
                    f"there are {sequence} charges, where {one.said} is number {one.sequence}"
                )
