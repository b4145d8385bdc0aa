"""Audit a budget from its first charge: check that the charges are consistent, and sum them.

The audit reads all charges. The sequence must have no gap, each hash must follow from the hash
before it, each d_mid must be an exact record, and the sum must be the running total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ..accounts.rule import Within
from ..accounts.store import Terms
from ..arguments.checks import shown
from ..errors import InvalidValueError, LedgerDamagedError
from ..interrupts import let_in
from ..progress import counted
from .kept import find_kept
from .records.chain import first_hash
from .records.limits import Limits, LimitTotal
from .records.measures import empty_total
from .records.readable import reading, require_count, require_text
from .records.replay import Known, replay
from .records.terms import read_terms
from .records.total import agreed_total
from .storage import tables


class Milestone(NamedTuple):
    """A charge that a ledger must have.

    :ivar said: the source of this requirement, as an error names it
    """

    sequence: int
    head: str
    said: str


def milestone(anchor: str) -> Milestone:
    """Return the charge that an anchor names.

    :raises InvalidValueError: if ``anchor`` is not an anchor
    """
    found = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", str(anchor))
    if found is None:
        raise InvalidValueError(f"anchor ({shown(anchor)}) must be number:hash, as in a summary")
    return Milestone(int(found[1]), found[2], "the anchor")


@dataclass(frozen=True, slots=True)
class LimitSummary:
    """The state of a limit below a budget (:func:`.make_limited`).

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: measure, accumulator, metric and bounds
    :ivar launches: number of charges below it
    :ivar spent: upper bound on the privacy loss of these
    :ivar remaining: largest privacy loss that its own bound admits
    """

    path: tuple[str, ...]
    terms: Terms
    launches: int
    spent: Any
    remaining: Any


@dataclass(frozen=True, slots=True)
class Summary:
    """The state of a budget.

    :ivar dataset: name of the dataset
    :ivar created: time when the ledger was created, in UTC
    :ivar terms: measure, accumulator, metric and bounds; None before the first use
    :ivar launches: number of charges
    :ivar spent: upper bound on the privacy loss so far; None before the first use
    :ivar remaining: largest privacy loss that one more launch may have; None for an odometer
    :ivar anchor: number and hash of the newest charge
    :ivar limits: the limits that were charged, in the order of their first charges
    """

    dataset: str
    created: str
    terms: Terms | None
    launches: int
    spent: Any
    remaining: Any
    anchor: str
    limits: tuple[LimitSummary, ...] = ()


class Audited(NamedTuple):
    """A budget whose charges are consistent.

    :ivar dataset: name of the dataset
    :ivar created: time when the ledger was created, in UTC
    :ivar terms: None before the first use
    :ivar newest: the state after the newest charge
    :ivar first: the state before the first charge that was read
    """

    dataset: str
    created: str
    terms: Terms | None
    newest: Known
    first: Known

    @property
    def known(self) -> Known | None:
        """Return the state after the newest charge; None before the first use."""
        return None if self.terms is None else self.newest

    def summary(self) -> Summary:
        """Return the state of the budget for its owner."""
        sequence, head, total = self.newest[:3]
        facts, anchor = (self.dataset, self.created, self.terms), f"{sequence}:{head}"
        if self.terms is None:
            return Summary(*facts, 0, None, None, anchor)
        bound = self.terms.d_out
        with reading(f"the budget of {self.dataset!r}"):
            remaining = None if bound is None else Within(bound).remaining(total)
            limits = tuple(map(_limit, self.newest.limits.all()))
            return Summary(*facts, sequence, total.loss, remaining, anchor, limits)


def audit(
    connection: Connection,
    dataset: str,
    milestones: Iterable[Milestone] = (),
    *,
    later: bool = False,
    progress: bool = False,
) -> Audited:
    """Read all charges of a budget, and check that they are consistent.

    :param connection: a connection whose statements all see the same state
    :param milestones: charges that the ledger must have
    :param later: whether to read only charges after the state that is kept, if there is one
    :param progress: show a bar, if tqdm is installed (extra ``progress``)
    :raises LedgerDamagedError: naming what is inconsistent
    """
    row = connection.execute(tables.READ_BUDGET, {"of": dataset}).mappings().one_or_none()
    if row is None:
        raise LedgerDamagedError(f"the budget of {dataset!r} is gone")
    what = f"the budget of {dataset!r}"
    require_text(what, created=row["created"], head=row["head"])
    require_count(what, sequence=row["sequence"])
    if row["terms"] is not None:
        require_text(what, terms=row["terms"])
    terms = None if row["terms"] is None else read_terms(row["terms"])
    total: Any = None if terms is None else empty_total(terms)
    first = Known(0, first_hash(dataset, row["terms"]), total, Limits())
    passed = _Passed(milestones, dataset, first.head)
    if later and terms is not None:
        kept = find_kept(connection, first, dataset, terms)
        if kept is not None and passed.begin_after(*kept[:2]):
            first = kept
    found = connection.execute(
        tables.READ_LATER,
        {"of": dataset, "after": first.sequence},
        execution_options={"yield_per": 1000},
    )
    with found as charges:
        if terms is None and charges.first() is not None:
            raise LedgerDamagedError("charge 1 was written before the terms")
        rows = [] if terms is None else map(passed.see, charges)
        charged = counted(rows, progress, row["sequence"])
        known = let_in(replay, first.copied(), charged)  # not what opens and closes the result
    known = known.settled()
    if (row["sequence"], row["head"]) != known[:2]:
        raise LedgerDamagedError(
            f"there are {known.sequence} charges, but the budget says that the newest is number "
            f"{row['sequence']}"
        )
    passed.end(known.sequence)
    if terms is not None:
        with reading(what):
            total = agreed_total(terms, row["record"], known.accumulator)
    return Audited(dataset, row["created"], terms, known.holding(total), first)


def audit_later(connection: Connection, dataset: str, milestones: Iterable[Milestone]) -> Audited:
    """Read what came after the state that is kept; if this does not fit, read all charges.

    :raises LedgerDamagedError: naming what is inconsistent
    """
    with suppress(LedgerDamagedError):
        return audit(connection, dataset, milestones, later=True)
    return audit(connection, dataset, milestones)


def _limit(one: LimitTotal) -> LimitSummary:
    remaining = Within(one.terms.d_out).remaining(one.accumulator)
    return LimitSummary(one.path, one.terms, one.launches, one.accumulator.loss, remaining)


class _Passed:
    """Check that the audit passes all milestones."""

    def __init__(self, milestones: Iterable[Milestone], dataset: str, first: str) -> None:
        self._all = sorted(milestones)
        self._at: dict[int, list[Milestone]] = {}
        for one in self._all:
            self._at.setdefault(one.sequence, []).append(one)
        # the terms are written after the ledger is created, and change the first hash
        for one in self._at.get(0, ()):
            if one.head not in (first, first_hash(dataset, None)):
                raise LedgerDamagedError(f"this ledger is not the ledger of {one.said}")

    def begin_after(self, sequence: int, head: str) -> bool:
        """Return whether a charge is before all milestones but the terms, or is one of them."""
        after = [one for one in self._all if one.sequence and one[:2] != (sequence, head)]
        return all(one.sequence > sequence for one in after)

    def see(self, row: Any) -> Any:
        """Check the row of one charge, and return it."""
        for one in self._at.get(row[1], ()):
            if row[6] != one.head:
                raise LedgerDamagedError(f"charge {row[1]} is not the charge of {one.said}")
        return row

    def end(self, sequence: int) -> None:
        """Check that no milestone is after the newest charge."""
        for one in self._all:
            if sequence < one.sequence:
                raise LedgerDamagedError(
                    f"there are {sequence} charges, but {one.said} is number {one.sequence}"
                )
