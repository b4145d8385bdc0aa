"""Copies of an SQLite ledger: which of them is the ledger, how one is made, and made the ledger.

A copy that is launched on is a second budget. So only one file is the ledger: the one that the
notes beside it name (``noted.py``). A budget that was once noted, and now is in a file without such
notes, is in a copy. A budget of version 0.1.0 was never noted: it is at its first use.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.pool import StaticPool

from ..errors import InvalidValueError, LedgerDamagedError, LedgerError
from . import tables
from .audit import Milestone, Summary, audit
from .line import Line
from .noted import Notes, Place
from .store import Store


class Standing(NamedTuple):
    """What is noted about a budget, if anything.

    :ivar live: whether it is the ledger's, and not a copy's
    """

    live: bool
    noted: bool
    milestones: list[Milestone]


def standing(store: Store, dataset: str, connection: Connection | None = None) -> Standing:
    """Whether a database is the ledger of ``dataset``, and which charge it must have.

    Ask it before the database is read: later charges do no harm then.

    :raises LedgerError: if it cannot be read
    """
    notes = store.notes
    if notes is None:
        return Standing(True, True, [])
    own, place = notes.find(dataset)
    found = [] if place is None else [Milestone(*place, f"the newest that {notes.path} notes")]
    if own and place is not None:
        return Standing(True, True, found)
    if connection is not None:
        marked = _marked(connection, dataset)
    else:
        with store.reading() as another:
            marked = _marked(another, dataset)
    return Standing(not marked and place is None, False, found)


def require_live(store: Store, dataset: str, live: bool) -> None:
    """Raise if a budget is in a copy.

    :raises LedgerError: saying what to do
    """
    if not live:
        raise LedgerError(
            f"ledger {store.name}: the budget of {dataset!r} is in a copy, or in a backup, or the "
            f"file {_notes(store).path} was removed: a launch here would spend from a second "
            "budget. Open it with read_only=True to read it. If it is to be the ledger, and "
            "nobody launches on another copy any more, make it the ledger with "
            "opendp_concurrent.ledger.restore_ledger"
        )


def claim(store: Store, line: Line, dataset: str, place: Place) -> None:
    """Note a budget from now on, if it is not noted yet; in a transaction that writes.

    :raises LedgerError: if it is in a copy
    """
    if store.notes is None:
        return
    found = standing(store, dataset, line.connection)
    require_live(store, dataset, found.live)
    if not found.noted:
        _mark(store.notes, line.connection, dataset, place)


def claim_new(store: Store, line: Line, dataset: str, place: Place) -> None:
    """Note a budget that is about to be made; in a transaction that writes.

    :raises LedgerError: if there was one of that name, with charges
    """
    notes = store.notes
    if notes is None:
        return
    _, before = notes.find(dataset)
    if before is not None and before.sequence:
        raise LedgerError(
            f"ledger {store.name} has no budget of {dataset!r}, but {notes.path} notes charge "
            f"{before.sequence} of one: its database, or the file -wal beside it, was removed. "
            "What was spent stays spent: put back the newest copy. Only if no data were ever "
            f"asked under that name, remove {notes.path}"
        )
    _mark(notes, line.connection, dataset, place)


def restore(store: Store, dataset: str, anchor: Milestone | None) -> Summary:
    """Make a copy the ledger of ``dataset``.

    :raises LedgerDamagedError: if it does not fit together, or lacks a charge that is known
    :raises LedgerError: if it is the ledger
    """
    found = standing(store, dataset)
    if found.live:
        raise LedgerError(
            f"ledger {store.name} is the ledger of {dataset!r}: there is nothing to restore"
        )
    milestones = [*found.milestones, *([] if anchor is None else [anchor])]
    with store.writing({}) as (line, _):
        summary = audit(line.connection, dataset, milestones)[0]
        place = Place(summary.launches, summary.anchor.partition(":")[2])
        _mark(_notes(store), line.connection, dataset, place)
    return summary


def backup(store: Store, dataset: str, target: str | os.PathLike[str]) -> Summary:
    """Copy the database as it is now to a new file, from which nobody can launch.

    :raises LedgerError: if there is a file already, it cannot be written, or it is no SQLite file
    """
    if not store.embedded:
        raise LedgerError(
            f"ledger {store.name} is on a PostgreSQL server: copy it by pg_dump, or by the "
            "server's own backups; a copy that is launched on is a second budget"
        )
    text = os.fspath(target)
    if "://" in text:
        raise InvalidValueError(f"target ({text!r}) must be the path of a file that is not there")
    path = Path(text).absolute()
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerError(
            f"the backup {path} cannot be made ({error.strerror}): name a file that is not there, "
            "in a folder that this process may write"
        ) from error
    try:
        return _copy(store, dataset, path)
    except BaseException as error:
        for end in ("", "-journal", "-wal", "-shm"):
            with suppress(OSError):
                os.remove(f"{path}{end}")
        if isinstance(error, sqlite3.Error):
            raise LedgerError(f"the backup {path} cannot be written: {error}") from error
        raise


def _copy(store: Store, dataset: str, path: Path) -> Summary:
    found = standing(store, dataset)
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as copy:
        copy.execute("PRAGMA synchronous=FULL")
        with store.reading() as connection:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, which has all
        engine = create_engine("sqlite+pysqlite://", creator=lambda: copy, poolclass=StaticPool)
        with engine.connect() as connection:
            tables.embedded.create_all(connection)
            for name in connection.execute(tables.READ_DATASETS).scalars().all():
                _mark_row(connection, name)
            connection.commit()
            return audit(connection, dataset, found.milestones)[0]


def _mark(notes: Notes, connection: Connection, dataset: str, place: Place) -> None:
    notes.enter(dataset, place)
    tables.embedded.create_all(connection)
    _mark_row(connection, dataset)


def _mark_row(connection: Connection, dataset: str) -> None:
    if dataset not in connection.execute(tables.READ_ANCHORED).scalars().all():
        connection.execute(tables.anchored.insert(), {"dataset": dataset})


def _marked(connection: Connection, dataset: str) -> bool:
    if tables.anchored.name not in inspect(connection).get_table_names():
        return False
    return dataset in connection.execute(tables.READ_ANCHORED).scalars().all()


def _notes(store: Store) -> Notes:
    if store.notes is None:
        raise LedgerDamagedError(f"ledger {store.name} is in no file")
    return store.notes
