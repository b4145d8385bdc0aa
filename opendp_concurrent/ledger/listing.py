"""The charges of a ledger, a page at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ..errors import LedgerDamagedError
from ..interrupts import whole
from .records.entries import Entry
from .records.replay import Known, replay
from .storage import tables
from .storage.store import Store


class Entries(Sequence[Entry]):
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
        wanted: Callable[[Entry], bool] | None = None,
    ) -> None:
        self._store, self._dataset, self._first, self._newest = store, dataset, first, newest
        self._wanted = wanted

    def __iter__(self) -> Iterator[Entry]:
        known, newest = self._first.copied(), self._newest
        while known.sequence < newest.sequence:
            page: list[Entry] = []
            known = self._read(known, page.append).settled()
            if known.sequence == newest.sequence and known.head != newest.head:
                raise LedgerDamagedError(f"charge {newest.sequence} was replaced")
            yield from page if self._wanted is None else filter(self._wanted, page)

    @whole
    def _read(self, known: Known, tell: Callable[[Entry], object]) -> Known:
        values = {"of": self._dataset, "after": known.sequence}
        with self._store.reading() as connection:
            rows = connection.execute(tables.READ_PAGE, values).all()
        if not rows:
            raise LedgerDamagedError(f"charge {known.sequence + 1} is missing")
        return replay(known, rows[: self._newest.sequence - known.sequence], tell)

    def __len__(self) -> int:
        return self._newest.sequence if self._wanted is None else sum(1 for _ in self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        if index < 0:
            last = deque(self, -index)
            found = last[0] if len(last) == -index else None
        else:
            found = next(islice(self, index, None), None)
        if found is None:
            raise IndexError(f"there is no charge at place {index}")
        return found

    def __eq__(self, other: object) -> Any:
        return list(self) == list(other) if isinstance(other, (list, Entries)) else NotImplemented

    def __repr__(self) -> str:
        return f"<{len(self)} entries of {self._dataset!r}>"
