"""Replay and audit the charges of a budget, from the first or from a state that is kept.

A process that has read ``EVERY`` charges since, all of which it has checked, writes the state after
them. Whoever opens the ledger then begins there. A state is not believed, and all charges are read,
if its digest is wrong, later charges or the newest one do not follow from it, or the triggers that
keep charges from being changed were made anew since. SQLite has no trigger for INSERT OR REPLACE of
an old charge: only who reads all charges finds it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, inspect

from .._checks import counted
from .._opendp import interruptible, uninterruptible
from ..accounting import Terms, Within
from ..errors import InvalidValueError, LedgerDamagedError, LedgerError, Loss, shown
from ..measures import AccumulatorState
from . import encoding
from . import schema as tables
from .charges import LimitedCharge, Limits, LimitTotal, Path, agreed_total, read_terms
from .store import Store

# Replay charges: check that each follows from the charge before it, and add up their losses.

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=timezone.utc) - _START) // _MICROSECOND


class Known(NamedTuple):
    """The state after a charge.

    Its number and hash, the sum so far, and the limits.
    """

    sequence: int
    head: str
    accumulator: AccumulatorState[Any]
    limits: Limits

    def copied(self) -> Known:
        """Return it with limits of its own."""
        return self._replace(limits=self.limits.copy())

    def settled(self) -> Known:
        """Return it, with the limits that it was a draft of brought to its state."""
        return self._replace(limits=self.limits.settled())


def replay(
    known: Known, rows: Iterable[Any], tell: Callable[[encoding.Entry], object] | None = None
) -> Known:
    """Return the state after ``known`` and the charges in ``rows``.

    :param rows: rows of the table ``charges``, with all columns
    :param tell: called with each entry
    :raises LedgerDamagedError: naming the charge that does not follow from the charge before it
    """
    sequence, head, total, limits = known
    before: Any = None  # dataset, label and mechanism of the charge before
    hash_after: Any = None
    last: Any = None  # the d_mid of the charge before
    waiting = 0  # how often more the total must have it

    def settled(newest: int) -> AccumulatorState[Any]:
        with encoding.reading(f"charge {newest}"):
            return total.after(last, waiting) if waiting else total

    for row in rows:
        dataset, number, microseconds, label, mechanism, text, written = row
        sequence += 1
        if type(number) is not int or number != sequence:
            raise LedgerDamagedError(f"charge {sequence} is missing")
        same = dataset, label, mechanism
        try:
            if same != before:
                hash_after = encoding.hasher(*same)
            head = hash_after(head, sequence, microseconds, encoding.canonical(text))
        except encoding.UNREADABLE:  # no charge was written with such values
            head = ""
        if not head or written != head:
            raise LedgerDamagedError(f"charge {sequence} does not follow from those before it")
        if same != before or not encoding.is_plain(text):
            what = f"charge {sequence}"
            encoding.require_text(
                what, dataset=dataset, label=label, mechanism=mechanism, d_mid=text
            )
        before = same
        try:
            if not (type(microseconds) is int and _FIRST <= microseconds <= _LAST):
                raise InvalidValueError(f"its time ({microseconds!r}) is not in years 1 to 9999")
            d_mid = charge = encoding.decode(text)
            if isinstance(charge, LimitedCharge):
                if limits is known.limits:
                    limits = limits.draft()  # to which all are added
                limits.replay(charge)
                d_mid = charge.d_mid
            if d_mid is last and tell is None:
                waiting += 1  # it was added without an error; many are added in one step
            else:
                total = settled(sequence - 1).after(d_mid, 1)
                last, waiting = d_mid, 0
        except encoding.UNREADABLE as error:
            raise encoding.unreadable(f"charge {sequence}", error) from None
        if tell is not None:
            path: Path = ()
            losses: tuple[Loss, ...] = ()
            if isinstance(charge, LimitedCharge):
                path, losses = limits.path(charge.limit), limits.losses(charge.limit)
            loss, time = total.loss, _START + timedelta(microseconds=microseconds)
            tell(encoding.Entry(sequence, time, label, mechanism, d_mid, loss, head, path, losses))
    return Known(sequence, head, settled(sequence), limits)


# Write the state of a budget after a charge, so that whoever opens it reads later charges only.
#
# The digest covers the state, the first hash, and thus dataset and terms, and what the database
# says of the triggers that keep charges from being changed. It shows damage and careless edits. It
# is no signature: who may write to the database can compute it.


def write_state(known: Known) -> str:
    """Write the state after a charge."""
    total, limits = known.accumulator.to_record(), known.limits.to_record()
    return encoding.canonical([known.sequence, known.head, total, limits])


def digest(first: str, guard: str, state: str) -> str:
    """Return the digest of a state.

    :param first: the hash before the first charge
    :param guard: what the database says of its triggers
    """
    return sha256(encoding.canonical([first, guard, state]).encode()).hexdigest()


EVERY = 20_000  # charges


class KeptState:
    """Keeps the state of one budget.

    :param at: number of the charge after which a state was kept
    """

    def __init__(self, store: Store, dataset: str, at: int) -> None:
        self._store, self._dataset, self._at = store, dataset, at

    def due(self, sequence: int) -> bool:
        """Return whether enough charges came since a state was kept."""
        return sequence - self._at >= EVERY

    def pass_by(self, known: Known, terms: Terms) -> None:
        """Keep a state, if enough charges came since. An error is none: opening takes longer."""
        if not self.due(known.sequence):
            return
        self._at = known.sequence
        with suppress(LedgerError, *encoding.UNREADABLE):
            every = [terms.accumulator, *(one.terms.accumulator for one in known.limits.all())]
            # records of these totals do not say what they are without the charges
            if not any(getattr(type(one), "follows_from_charges", False) for one in every):
                self._write(write_state(known))

    def _write(self, state: str) -> None:
        with self._store.writing({}) as (driver, _):
            connection = driver.connection
            tables.side.create_all(connection)
            budget = connection.execute(tables.READ_BUDGET, {"of": self._dataset}).one()
            first, guard = encoding.first_hash(self._dataset, budget.terms), _guard(connection)
            row = {"dataset": self._dataset, "state": state, "digest": digest(first, guard, state)}
            connection.execute(tables.FORGET_STATE, {"of": self._dataset})
            connection.execute(tables.kept.insert(), row)


def find_kept(connection: Connection, first: Known, dataset: str, terms: Terms) -> Known | None:
    """Return the state that was kept last, if it can be believed.

    :param first: the state before the first charge
    """
    if tables.kept.name not in inspect(connection).get_table_names():
        return None
    row = connection.execute(tables.READ_STATE, {"of": dataset}).one_or_none()
    if row is None or digest(first.head, _guard(connection), row.state) != row.digest:
        return None
    with suppress(*encoding.UNREADABLE):
        sequence, head, total, limits = json.loads(row.state)
        known = Known(sequence, head, encoding.read_total(terms, total), Limits.from_record(limits))
        if type(sequence) is int and type(head) is str and write_state(known) == row.state:
            return known
    return None


def _guard(connection: Connection) -> str:
    """Return what differs after the triggers of the charges were dropped, or disabled."""
    if connection.dialect.name == "sqlite":
        return str(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
    found: list[Any] = list(connection.execute(tables.READ_TRIGGERS))
    return str([tuple(map(str, one)) for one in found])


# Audit a budget from its first charge: check that the charges are consistent, and sum them.
#
# The audit reads all charges. The sequence must have no gap, each hash must follow from the hash
# before it, each d_mid must be an exact record, and the sum must be the running total.


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

    def summary(self) -> Summary:
        """Return the state of the budget for its owner."""
        sequence, head, total = self.newest[:3]
        facts, anchor = (self.dataset, self.created, self.terms), f"{sequence}:{head}"
        if self.terms is None:
            return Summary(*facts, 0, None, None, anchor)
        bound = self.terms.d_out
        with encoding.reading(f"the budget of {self.dataset!r}"):
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
    encoding.require_text(what, created=row["created"], head=row["head"])
    encoding.require_count(what, sequence=row["sequence"])
    if row["terms"] is not None:
        encoding.require_text(what, terms=row["terms"])
    terms = None if row["terms"] is None else read_terms(row["terms"])
    total: Any = None if terms is None else encoding.empty_total(terms)
    first = Known(0, encoding.first_hash(dataset, row["terms"]), total, Limits())
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
        known = interruptible(replay, first.copied(), charged)  # not what opens and closes rows
    known = known.settled()
    if (row["sequence"], row["head"]) != known[:2]:
        raise LedgerDamagedError(
            f"there are {known.sequence} charges, but the budget says that the newest is number "
            f"{row['sequence']}"
        )
    passed.end(known.sequence)
    if terms is not None:
        with encoding.reading(what):
            total = agreed_total(terms, row["record"], known.accumulator)
    return Audited(dataset, row["created"], terms, known._replace(accumulator=total), first)


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
            if one.head not in (first, encoding.first_hash(dataset, None)):
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


# The charges of a ledger, a page at a time.


class Entries(Sequence[encoding.Entry]):
    """Charges of a ledger up to one moment, in order. Each use reads them, and checks them again.

    It takes the memory of a thousand of them. For a list, call ``list(entries)``.

    :param first: the state before the first charge
    :param newest: the state after the last one to read
    :param wanted: tells which charges are in it; None for all
    """

    __hash__ = None  # type: ignore[assignment]  # it equals lists

    def __init__(
        self,
        store: Store,
        dataset: str,
        first: Known,
        newest: Known,
        wanted: Callable[[encoding.Entry], bool] | None = None,
    ) -> None:
        self._store, self._dataset, self._first, self._newest = store, dataset, first, newest
        self._wanted = wanted

    def __iter__(self) -> Iterator[encoding.Entry]:
        known, newest = self._first.copied(), self._newest
        while known.sequence < newest.sequence:
            page: list[encoding.Entry] = []
            known = self._read(known, page.append).settled()
            if known.sequence == newest.sequence and known.head != newest.head:
                raise LedgerDamagedError(f"charge {newest.sequence} was replaced")
            yield from page if self._wanted is None else filter(self._wanted, page)

    @uninterruptible
    def _read(self, known: Known, tell: Callable[[encoding.Entry], object]) -> Known:
        values = {"of": self._dataset, "after": known.sequence}
        with self._store.reading() as connection:
            rows = connection.execute(tables.READ_PAGE, values).all()
        if not rows:
            raise LedgerDamagedError(f"charge {known.sequence + 1} is missing")
        return replay(known, rows[: self._newest.sequence - known.sequence], tell)

    def __len__(self) -> int:
        return self._newest.sequence if self._wanted is None else sum(1 for _ in self)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        found = deque(self, -index) if index < 0 else deque(islice(self, index, index + 1))
        if len(found) < max(1, -index):
            raise IndexError(f"there is no charge at place {index}")
        return found[0]

    def __eq__(self, other: object) -> Any:
        return list(self) == list(other) if isinstance(other, (list, Entries)) else NotImplemented

    def __repr__(self) -> str:
        return f"<{len(self)} entries of {self._dataset!r}>"
