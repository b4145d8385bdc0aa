"""One budget in a ledger: a turn reads the running total, decides, and adds one charge.

The total is kept exactly beside the newest charge, so a turn costs the same however many there are.
What this process knows is only ever what is on disk: a charge that fails is read back, or not, at
the next turn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import time_ns
from typing import Any

from ..accounts.charge import Charge, Terms
from ..errors import ForkedError, LedgerDamagedError
from ..measures.sums.accumulator import Accumulator
from . import tables
from .chain import next_hash
from .encoding import canonical, encode
from .follow import Known, follow
from .line import Line
from .noted import Place
from .readable import reading, require_count
from .seen import Seen
from .store import Store
from .total import agreed_total


class SqlBook:
    """A budget under terms that the ledger has settled.

    :param known: where the ledger was when it was opened and audited
    :param seen: is told what this process has seen
    """

    def __init__(self, store: Store, dataset: str, terms: Terms, known: Known, seen: Seen) -> None:
        self._store, self.dataset, self._terms, self._seen = store, dataset, terms, seen
        self._known, self._lock, self._process = known, Lock(), os.getpid()
        self._text: tuple[Any, str] = (None, "")

    @property
    def launches(self) -> int:
        """How many charges were seen at the last turn or reading."""
        return self._known.sequence

    def read(self) -> Accumulator:
        """All charges so far.

        :raises ForkedError: in a process that was forked from the one that opened the book
        """
        self.check_process()
        with self._lock:
            with self._store.snapshot() as connection:
                line = self._store.line(connection)
                found = line.run(self._place(), tables.READ_HEAD, tables.READ_LATER)
            known = self._newest(line, *found)
            if known is not self._known:
                with self._store.reading() as connection:
                    self._store.flush(self._store.line(connection))
                self._see(known)
            return known.accumulator

    @contextmanager
    def turn(self) -> Iterator[SqlTurn]:
        """Take a turn.

        :raises ForkedError: in a process that was forked from the one that opened the book
        """
        self.check_process()
        store, reading = self._store, [tables.LOCK_HEAD, tables.READ_LATER]
        if store.embedded:  # it is near: ask for later ones only if there are any
            reading.pop()
        with self._lock:
            line, found = store.begin(self._place(), *reading)
            try:
                turn = SqlTurn(self, line, self._newest(line, *found))
                yield turn
            except BaseException as error:
                store.undo(line, error)
                raise
            store.commit(line)
            self._see(turn.after)
            if store.notes is not None:
                store.notes.note(self.dataset, Place(turn.after.sequence, turn.after.head))

    def _see(self, known: Known) -> None:
        self._known = known
        self._seen.see(known.sequence, known.head)

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the book.

        :raises ForkedError: there
        """
        if os.getpid() != self._process:
            raise ForkedError

    def _place(self) -> dict[str, Any]:
        return {"of": self.dataset, "after": self._known.sequence}

    def _newest(self, line: Line, heads: list[Any], later: list[Any] | None = None) -> Known:
        """Where the ledger is now, if it has come there from where it was known to be.

        :param heads: the row of the budget
        :param later: charges after the known one, if they were read already
        :raises LedgerDamagedError: if it has not
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
                "another one in its place"
            )
        if later is None:
            (later,) = line.run(self._place(), tables.READ_LATER)
        newest = follow(known, later)
        if newest[:2] != (sequence, head):
            raise LedgerDamagedError(f"charge {sequence} is missing, or another one is there")
        with reading(f"the budget of {self.dataset!r}"):
            total = agreed_total(self._terms, record, newest.accumulator)
        return newest._replace(accumulator=total)

    def text(self, d_mid: Any) -> str:
        """Encode a d_mid; many launches in a row have the same."""
        last, text = self._text
        if last is not d_mid:
            text = encode("d_mid", d_mid, self._known.form)
            self._text = d_mid, text
        return text


class SqlTurn:
    """A turn at a book. Inside, nobody else has one."""

    __slots__ = ("_book", "_line", "_now", "after")

    def __init__(self, book: SqlBook, line: Line, now: Known) -> None:
        self._book, self._line = book, line
        self._now = self.after = now

    @property
    def accumulator(self) -> Accumulator:
        """All charges so far."""
        return self._now.accumulator

    def write(self, charge: Charge, after: Accumulator) -> None:
        """Add a charge, and move the head to it."""
        dataset, (before, head, _, form) = self._book.dataset, self._now
        sequence, time, d_mid = before + 1, time_ns() // 1000, self._book.text(charge.d_mid)
        label, mechanism = charge.label, charge.mechanism
        head = next_hash(head, (dataset, sequence, time, label, mechanism, d_mid))
        self._line.run(
            {
                "dataset": dataset,
                "of": dataset,
                "sequence": sequence,
                "time": time,
                "label": label,
                "mechanism": mechanism,
                "d_mid": d_mid,
                "hash": head,
                "head": head,
                "record": canonical(after.to_record()),
            },
            tables.ADD_CHARGE,
            tables.MOVE_HEAD,
        )
        self.after = Known(sequence, head, after, form)
