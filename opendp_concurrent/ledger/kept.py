"""The newest state of a budget that a ledger keeps, so that opening reads what came after.

A process that has read ``EVERY`` charges since, all of which it has checked, writes the state after
them. Whoever opens the ledger then begins there. A state is not believed, and all charges are read,
if its digest is wrong, later charges or the newest one do not follow from it, or the triggers that
keep charges from being changed were made anew since. SQLite has no trigger for INSERT OR REPLACE of
an old charge: only who reads all charges finds it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, inspect

from ..accounts.store import Terms
from ..errors import LedgerError
from .records.chain import first_hash
from .records.kept import can_keep, digest, read_state, write_state
from .records.readable import UNREADABLE
from .records.replay import Known
from .storage import tables
from .storage.store import Store

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
        with suppress(LedgerError, *UNREADABLE):
            if can_keep(known, terms):
                self._write(write_state(known))

    def _write(self, state: str) -> None:
        with self._store.writing({}) as (driver, _):
            connection = driver.connection
            tables.side.create_all(connection)
            budget = connection.execute(tables.READ_BUDGET, {"of": self._dataset}).one()
            first, guard = first_hash(self._dataset, budget.terms), _guard(connection)
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
    return read_state(terms, row.state)


def _guard(connection: Connection) -> str:
    """Return what differs after the triggers of the charges were dropped, or disabled."""
    if connection.dialect.name == "sqlite":
        return str(connection.exec_driver_sql("PRAGMA schema_version").scalar_one())
    found: list[Any] = list(connection.execute(tables.READ_TRIGGERS))
    return str([tuple(map(str, one)) for one in found])
