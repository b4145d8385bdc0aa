"""One budget in a ledger: a turn reads the running total, decides, and adds one charge.

The total is kept exactly beside the newest charge, so a turn costs the same however many there are.
What this process knows is only ever what is on disk: a charge that fails is read back, or not, at
the next turn.
"""

from __future__ import annotations

import json
import os
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from ..accounts.charge import Charge, Terms
from ..accumulators.accumulator import Accumulator
from ..errors import ForkedError, LedgerDamagedError
from . import tables
from .chain import next_hash
from .encoding import canonical, encode
from .store import Line, Store

if TYPE_CHECKING:
    from typing_extensions import Self


class Known(NamedTuple):
    """The newest charge, and what all of them add up to."""

    sequence: int
    head: str
    accumulator: Accumulator


class SqlBook:
    """A budget under terms that the ledger has settled.

    :param known: where the ledger was when it was opened and audited
    """

    def __init__(self, store: Store, dataset: str, terms: Terms, known: Known) -> None:
        self.store, self.dataset, self._terms = store, dataset, terms
        self.known, self.lock, self._process = known, Lock(), os.getpid()
        self._text: tuple[Any, str] = (None, "")

    @property
    def launches(self) -> int:
        """How many charges were seen at the last turn or reading."""
        return self.known.sequence

    def read(self) -> Accumulator:
        """All charges so far.

        :raises ForkedError: in a process that was forked from the one that opened the book
        """
        self._check_process()
        with self.lock, self.store.reading() as connection:
            line = self.store.line(connection)
            known = self.newest(line, tables.READ_HEAD)
            if known is not self.known:
                self.store.flush(line)
                self.known = known
            return known.accumulator

    def turn(self) -> SqlTurn:
        """Take a turn.

        :raises ForkedError: in a process that was forked from the one that opened the book
        """
        self._check_process()
        return SqlTurn(self)

    def newest(self, line: Line, query: Any) -> Known:
        """Where the ledger is now, if it can have come there from where it was.

        :raises LedgerDamagedError: if it cannot
        """
        known, row = self.known, line.run(query, {"of": self.dataset}).fetchone()
        if row is None:
            raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
        sequence, head, record = row
        if sequence == known.sequence and head == known.head:
            return known
        if sequence <= known.sequence:
            raise LedgerDamagedError(
                f"charge {known.sequence} was written, but the ledger has {sequence} charges or "
                "another one in its place"
            )
        terms = self._terms
        total = terms.accounting.from_record(terms.zero, json.loads(record))
        return Known(sequence, head, total)

    def text(self, d_mid: Any) -> str:
        """Encode a d_mid; many launches in a row have the same."""
        last, text = self._text
        if last is not d_mid:
            text = encode("d_mid", d_mid)
            self._text = d_mid, text
        return text

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ForkedError


class SqlTurn:
    """A turn at a book. Inside, nobody else has one; at the end, what was written is durable."""

    __slots__ = ("_after", "_book", "_line", "_now")

    def __init__(self, book: SqlBook) -> None:
        self._book = book

    def __enter__(self) -> Self:
        book = self._book
        book.lock.acquire()
        try:
            self._line = line = book.store.begin()
            try:
                self._now = self._after = book.newest(line, tables.LOCK_HEAD)
            except BaseException as error:
                book.store.undo(line, error)
                raise
        except BaseException:
            book.lock.release()
            raise
        return self

    @property
    def accumulator(self) -> Accumulator:
        """All charges so far."""
        return self._now.accumulator

    def write(self, charge: Charge, after: Accumulator) -> None:
        """Add a charge, and move the head to it."""
        dataset, (before, head, _) = self._book.dataset, self._now
        sequence, time, d_mid = before + 1, time_ns() // 1000, self._book.text(charge.d_mid)
        label, mechanism = charge.label, charge.mechanism
        head = next_hash(head, (dataset, sequence, time, label, mechanism, d_mid))
        self._line.run(
            tables.ADD_CHARGE,
            {
                "dataset": dataset,
                "sequence": sequence,
                "time": time,
                "label": label,
                "mechanism": mechanism,
                "d_mid": d_mid,
                "hash": head,
            },
        )
        record = canonical(after.to_record())
        self._line.run(
            tables.MOVE_HEAD, {"of": dataset, "sequence": sequence, "head": head, "record": record}
        )
        self._after = Known(sequence, head, after)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        book = self._book
        try:
            if error is None:
                book.store.commit(self._line)
                book.known = self._after
            else:
                book.store.undo(self._line, error)
        finally:
            book.lock.release()
