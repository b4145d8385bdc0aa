"""One budget in a ledger: a turn reads the running total, decides, and adds one charge.

The ledger keeps the exact total beside the newest charge. The cost of a turn therefore does not
depend on the number of charges. A process only trusts what it has read from the disk: if a commit
fails, the next turn finds out whether the charge was written.
"""

from __future__ import annotations

import os
from time import time_ns
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable

from ..accounts.account import Account, Launch, Verdict
from ..accounts.lifecycle import Lifecycle
from ..accounts.store import Charge, LimitCharge, Terms
from ..errors import ForkedError, LedgerDamagedError, tell_charged
from ..interrupts import Lock
from ..sums.accumulator import Accumulator
from ..types import Loss
from .kept import KeptState
from .queue import Queue
from .records.chain import hasher
from .records.encoding import canonical, encode
from .records.limits import Path, check_kept
from .records.readable import reading, require_count
from .records.replay import Known, replay
from .records.total import agreed_total
from .seen import Seen
from .storage import tables
from .storage.connection import DriverConnection
from .storage.store import Store

if TYPE_CHECKING:
    from typing_extensions import Self


class SqlBook:
    """A budget whose terms are written in the ledger.

    :param known: the state of the ledger when it was opened and audited
    :param seen: records the newest charge that this process has seen
    :param kept: keeps a state from time to time
    """

    def __init__(
        self, store: Store, dataset: str, terms: Terms, known: Known, seen: Seen, kept: KeptState
    ) -> None:
        self._store, self.dataset, self._terms, self._seen = store, dataset, terms, seen
        self._known, self._lock, self._process = known, Lock(), os.getpid()
        self._text: tuple[Any, str] = (None, "")
        self._queue, self._kept = Queue(self.turn), kept

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""
        return self._known.sequence

    def read(self) -> Accumulator:
        """Return the sum of all charges so far.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        with self._lock:
            with self._store.snapshot() as connection:
                driver = self._store.driver(connection)
                found = driver.run(self._values(), tables.READ_HEAD, tables.READ_LATER)
            known = self._newest(driver, *found)
            if known is not self._known:
                with self._store.reading() as connection:
                    self._store.flush(self._store.driver(connection))
                self._see(known)
            return known.accumulator

    def turn(self) -> SqlTurn:
        """Take a turn, by ``with``. Nobody else has one at the same time.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        return SqlTurn(self)

    def settle(self, launch: Launch, charge: Charge) -> Lifecycle | None:
        """Take a turn, together with other threads that wait; see :meth:`.Book.settle`.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        begun = self._queue.settle(launch, charge)
        try:
            if self._kept.due(self._known.sequence):
                with self._lock:  # no turn changes the state that is written
                    known = self._known.copied()
                self._kept.pass_by(known, self._terms)
        except BaseException as error:  # an interrupt, while it waits for others
            tell_charged(error, begun is not None)
            raise
        return begun

    def _see(self, known: Known) -> None:
        self._known = known.settled()
        self._seen.see(known.sequence, known.head)

    def check_process(self) -> None:
        """Check that this process opened the book.

        :raises ForkedError: if it was forked from the process that did
        """
        if os.getpid() != self._process:
            raise ForkedError

    def _values(self) -> dict[str, Any]:
        return {"of": self.dataset, "after": self._known.sequence}

    def _newest(
        self, driver: DriverConnection, heads: list[Any], later: list[Any] | None = None
    ) -> Known:
        """Return the state of the ledger now, which must continue the last known state.

        :param heads: the row of the budget, in a list
        :param later: charges after the last known charge, if they were read already
        :raises LedgerDamagedError: if the ledger does not continue the last known state
        """
        if not heads:
            raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
        known, (sequence, head, record) = self._known, heads[0]
        require_count(f"the budget of {self.dataset!r}", sequence=sequence)
        if sequence == known.sequence and head == known.head:
            return known
        if sequence <= known.sequence:
            raise LedgerDamagedError(
                f"charge {known.sequence} was written, but the ledger has {sequence} charges or "
                f"another charge {known.sequence}"
            )
        if later is None:
            (later,) = driver.run(self._values(), tables.READ_LATER)
        newest = replay(known, later)
        if newest[:2] != (sequence, head):
            raise LedgerDamagedError(f"charge {sequence} is missing or was replaced")
        with reading(f"the budget of {self.dataset!r}"):
            total = agreed_total(self._terms, record, newest.accumulator)
        return newest.holding(total)

    def limit(self, path: Path, terms: Terms) -> LimitBook:
        """Open a limit. Its first charge writes its terms to the ledger.

        :raises InvalidTypeError: if the ledger cannot keep it
        """
        check_kept(terms)
        return LimitBook(self, path, terms)

    def text(self, d_mid: Loss) -> str:
        """Encode a d_mid, and keep the text: consecutive launches often have the same d_mid."""
        last, text = self._text
        if last is not d_mid:
            text = encode("d_mid", d_mid)
            self._text = d_mid, text
        return text


class SqlTurn:
    """A turn at a book, for ``with``: a transaction that excludes all other turns.

    It is a critical section, so the transaction has ended when the block has, in whatever way.

    :ivar planned: the states of accounts after the launches that this turn has written
    :ivar after: the state after what this turn has written
    """

    def __init__(self, book: SqlBook) -> None:
        self._book = book
        self._changes: list[tuple[Executable, dict[str, Any]]] = []  # made at its end
        self.planned: dict[Account, Verdict] = {}

    def __enter__(self) -> Self:
        book = self._book
        store, reading = book._store, [tables.LOCK_HEAD, tables.READ_LATER]
        if store.embedded:  # a query is cheap: read later charges only if there are any
            reading.pop()
        book._lock.__enter__()
        try:
            self._driver, found = store.begin(book._values(), *reading)
            try:
                self.after = book._newest(self._driver, *found)
            except BaseException as error:
                store.undo(self._driver, error)
                raise
        except BaseException:
            book._lock.__exit__()
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, *more: object) -> None:
        book, changes = self._book, self._changes
        store, dataset = book._store, book.dataset
        self._changes, self.planned = [], {}  # a traceback may hold this turn
        try:
            if error is not None or not changes:
                store.undo(self._driver, error)
                return
            sequence, head = self.after[:2]
            moved = {"sequence": sequence, "head": head, "record": self._record}
            changes.append((tables.MOVE_HEAD, {"of": dataset, **moved}))
            store.finish(self._driver, changes)
            book._see(self.after)
        finally:
            book._lock.__exit__()

    @property
    def accumulator(self) -> Accumulator:
        """Sum of all charges before this turn, and of those that it has written."""
        return self.after.accumulator

    def total(self, limit: LimitCharge) -> Accumulator:
        """Sum of all charges of a limit before this turn, and of those that it has written.

        :raises LimitMismatchError: if its terms in the ledger are others
        """
        return self.after.limits.total(limit.path, limit.terms)

    def write(
        self,
        charge: Charge,
        after: Accumulator,
        limits: tuple[Accumulator, ...] = (),
    ) -> None:
        """Add a charge, which is then the newest charge of the budget.

        :param limits: the sums of the limits that it is below, after it
        """
        dataset, (sequence, head, _, known) = self._book.dataset, self.after
        time, label, mechanism = time_ns() // 1000, charge.label, charge.mechanism
        if charge.limits:
            record, known = known.charged(charge.d_mid, charge.limits, limits)
            d_mid = encode("d_mid", record)
        else:
            d_mid = self._book.text(charge.d_mid)
        sequence += 1
        head = hasher(dataset, label, mechanism)(head, sequence, time, canonical(d_mid))
        row = {"dataset": dataset, "time": time, "label": label, "mechanism": mechanism}
        row |= {"sequence": sequence, "d_mid": d_mid, "hash": head}
        self._record = canonical(after.to_record())
        self._changes.append((tables.ADD_CHARGE, row))
        self.after = Known(sequence, head, after, known)


class LimitBook:
    """A limit that is opened on a book. The turns are those of the book."""

    dataset = ""  # it has no name of its own in the ledger

    def __init__(self, book: SqlBook, path: Path, terms: Terms) -> None:
        self._book, self.path, self.terms = book, path, terms

    @property
    def launches(self) -> int:
        """Number of launches below the limit at the last turn or read."""
        return self._book._known.limits.launches(self.path)

    def check_process(self) -> None:
        """Check that this process opened the book.

        :raises ForkedError: if it was forked from the process that did
        """
        self._book.check_process()

    def read(self) -> Accumulator:
        """Return the sum of all charges below the limit so far.

        :raises LimitMismatchError: if its terms in the ledger are others
        """
        self._book.read()
        return self._book._known.limits.total(self.path, self.terms)
