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

from ..errors import InvalidValueError
from ..errors.ledger import LedgerDamagedError, LedgerError
from ..files import MODE
from ..interrupts import let_in
from .audit import Milestone, Summary, audit
from .storage import tables
from .storage.anchors import Anchor, Anchors
from .storage.connection import DriverConnection
from .storage.store import Store


class Standing(NamedTuple):
    """What the anchors file says about a budget.

    :ivar live: whether the budget is in the ledger, and not in a copy
    :ivar noted: whether the anchors file already names the newest charge
    :ivar milestones: charges that the ledger must have
    """

    live: bool
    noted: bool
    milestones: list[Milestone]


def standing(store: Store, dataset: str, connection: Connection | None = None) -> Standing:
    """Return whether a database is the ledger of ``dataset``, and which charge it must have.

    Call this before you read the database: charges that are added in between are no error then.

    :raises LedgerError: if the anchors file cannot be read
    """
    anchors = store.anchors
    if anchors is None:
        return Standing(True, True, [])
    own, anchor = anchors.find(dataset)
    found = (
        [] if anchor is None else [Milestone(*anchor, f"the newest charge noted in {anchors.path}")]
    )
    if own and anchor is not None:
        return Standing(True, True, found)
    if connection is not None:
        marked = _marked(connection, dataset)
    else:
        with store.reading() as another:
            marked = _marked(another, dataset)
    return Standing(not marked and anchor is None, False, found)


def require_live(store: Store, dataset: str, live: bool) -> None:
    """Check that a budget is not in a copy.

    :raises LedgerError: if it is in a copy
    """
    if not live:
        raise LedgerError(
            f"ledger {store.name}: the budget of {dataset!r} is in a copy, or in a backup, or the "
            f"file {_anchors(store).path} was removed. A launch here would spend from a second "
            "budget. To read it, open it with read_only=True. To launch on it, make sure that "
            "nobody launches on another copy, and call opendp_concurrent.ledger.restore_ledger"
        )


def claim(store: Store, driver: DriverConnection, dataset: str, anchor: Anchor) -> None:
    """Add a budget to the anchors file, if it is not there yet. Call this in a write transaction.

    :raises LedgerError: if the budget is in a copy
    """
    if store.anchors is None:
        return
    found = standing(store, dataset, driver.connection)
    require_live(store, dataset, found.live)
    if not found.noted:
        _mark(store.anchors, driver.connection, dataset, anchor)


def claim_new(store: Store, driver: DriverConnection, dataset: str, anchor: Anchor) -> None:
    """Add a new budget to the anchors file. Call this in a write transaction.

    :raises LedgerError: if the anchors file names a charge of a budget with this name
    """
    anchors = store.anchors
    if anchors is None:
        return
    _, before = anchors.find(dataset)
    if before is not None and before.sequence:
        raise LedgerError(
            f"ledger {store.name} has no budget of {dataset!r}, but {anchors.path} names charge "
            f"{before.sequence} of that budget: its database, or the file -wal beside it, was "
            "removed. What was spent stays spent: restore the newest copy. Remove "
            f"{anchors.path} only if no query was ever answered under that name"
        )
    _mark(anchors, driver.connection, dataset, anchor)


def restore(store: Store, dataset: str, known: Milestone | None) -> Summary:
    """Make a copy the ledger of ``dataset``.

    :raises LedgerDamagedError: if it is inconsistent, or lacks a charge that it must have
    :raises LedgerError: if it already is the ledger
    """
    found = standing(store, dataset)
    if found.live:
        raise LedgerError(
            f"ledger {store.name} already is the ledger of {dataset!r}: there is nothing to restore"
        )
    milestones = [*found.milestones, *([] if known is None else [known])]
    with store.writing({}) as (driver, _):
        summary = audit(driver.connection, dataset, milestones).summary()
        anchor = Anchor(summary.launches, summary.anchor.partition(":")[2])
        _mark(_anchors(store), driver.connection, dataset, anchor)
    return summary


def backup(store: Store, dataset: str, target: str | os.PathLike[str]) -> Summary:
    """Copy the database to a new file, on which nobody can launch.

    :raises LedgerError: if the file exists or cannot be written, or the ledger is on a server
    """
    if not store.embedded:
        raise LedgerError(
            f"ledger {store.name} is on a PostgreSQL server: copy it with pg_dump or with the "
            "server's own backups; launches on a copy would spend from a second budget"
        )
    text = os.fspath(target)
    if "://" in text:
        raise InvalidValueError(f"target ({text!r}) must be the path of a new file")
    path = Path(text).absolute()
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE))
    except OSError as error:
        raise LedgerError(
            f"the backup {path} cannot be made ({error.strerror}): name a file that does not "
            "exist, in a folder that this process may write"
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
            let_in(source.backup, copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # all pages in one file
        engine = create_engine("sqlite+pysqlite://", creator=lambda: copy, poolclass=StaticPool)
        with engine.connect() as connection:
            tables.embedded.create_all(connection)
            for name in connection.execute(tables.READ_DATASETS).scalars().all():
                _mark_row(connection, name)
            connection.commit()
            return audit(connection, dataset, found.milestones).summary()


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
        raise LedgerDamagedError(f"ledger {store.name} is not in a file")
    return store.anchors
