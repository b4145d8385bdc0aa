"""Copies of an SQLite ledger: tell a copy from the ledger, make a backup, restore it.

Launches on a copy would spend from a second budget. Only one file is the ledger: the one that the
anchors file beside it names (``storage/anchors.py``). A budget that was noted once, in a file
without such an anchors file, is a copy. Version 0.1.0 noted no budget: its ledgers are noted at
their first use.
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
from .audit import Milestone, Summary, audit
from .storage import tables
from .storage.anchors import Anchor, Anchors
from .storage.connection import DriverConnection
from .storage.store import Store


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
    anchors = store.anchors
    if anchors is None:
        return Standing(True, True, [])
    own, anchor = anchors.find(dataset)
    found = [] if anchor is None else [Milestone(*anchor, f"the newest that {anchors.path} notes")]
    if own and anchor is not None:
        return Standing(True, True, found)
    if connection is not None:
        marked = _marked(connection, dataset)
    else:
        with store.reading() as another:
            marked = _marked(another, dataset)
    return Standing(not marked and anchor is None, False, found)


def require_live(store: Store, dataset: str, live: bool) -> None:
    """Raise if a budget is in a copy.

    :raises LedgerError: saying what to do
    """
    if not live:
        raise LedgerError(
            f"ledger {store.name}: the budget of {dataset!r} is in a copy, or in a backup, or the "
            f"file {_anchors(store).path} was removed: a launch here would spend from a second "
            "budget. Open it with read_only=True to read it. If it is to be the ledger, and "
            "nobody launches on another copy any more, make it the ledger with "
            "opendp_concurrent.ledger.restore_ledger"
        )


def claim(store: Store, driver: DriverConnection, dataset: str, anchor: Anchor) -> None:
    """Note a budget from now on, if it is not noted yet; in a transaction that writes.

    :raises LedgerError: if it is in a copy
    """
    if store.anchors is None:
        return
    found = standing(store, dataset, driver.connection)
    require_live(store, dataset, found.live)
    if not found.noted:
        _mark(store.anchors, driver.connection, dataset, anchor)


def claim_new(store: Store, driver: DriverConnection, dataset: str, anchor: Anchor) -> None:
    """Note a budget that is about to be made; in a transaction that writes.

    :raises LedgerError: if there was one of that name, with charges
    """
    anchors = store.anchors
    if anchors is None:
        return
    _, before = anchors.find(dataset)
    if before is not None and before.sequence:
        raise LedgerError(
            f"ledger {store.name} has no budget of {dataset!r}, but {anchors.path} notes charge "
            f"{before.sequence} of one: its database, or the file -wal beside it, was removed. "
            "What was spent stays spent: put back the newest copy. Only if no data were ever "
            f"asked under that name, remove {anchors.path}"
        )
    _mark(anchors, driver.connection, dataset, anchor)


def restore(store: Store, dataset: str, known: Milestone | None) -> Summary:
    """Make a copy the ledger of ``dataset``.

    :raises LedgerDamagedError: if it does not fit together, or lacks a charge that is known
    :raises LedgerError: if it is the ledger
    """
    found = standing(store, dataset)
    if found.live:
        raise LedgerError(
            f"ledger {store.name} is the ledger of {dataset!r}: there is nothing to restore"
        )
    milestones = [*found.milestones, *([] if known is None else [known])]
    with store.writing({}) as (driver, _):
        summary = audit(driver.connection, dataset, milestones)[0]
        anchor = Anchor(summary.launches, summary.anchor.partition(":")[2])
        _mark(_anchors(store), driver.connection, dataset, anchor)
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


def _mark(anchors: Anchors, connection: Connection, dataset: str, anchor: Anchor) -> None:
    anchors.enter(dataset, anchor)
    tables.embedded.create_all(connection)
    _mark_row(connection, dataset)


def _mark_row(connection: Connection, dataset: str) -> None:
    if dataset not in connection.execute(tables.READ_ANCHORED).scalars().all():
        connection.execute(tables.anchored.insert(), {"dataset": dataset})


def _marked(connection: Connection, dataset: str) -> bool:
    if tables.anchored.name not in inspect(connection).get_table_names():
        return False
    return dataset in connection.execute(tables.READ_ANCHORED).scalars().all()


def _anchors(store: Store) -> Anchors:
    if store.anchors is None:
        raise LedgerDamagedError(f"ledger {store.name} is in no file")
    return store.anchors
