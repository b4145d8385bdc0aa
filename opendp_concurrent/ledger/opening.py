"""Create, open and restore ledgers."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime, timezone

from ..arguments import checks
from ..arguments.checked import Finite, Text, checked
from ..errors import InvalidTypeError, InvalidValueError
from ..errors.ledger import LedgerError
from ..interrupts import whole
from ..types import Argument
from .audit import Summary, audit, audit_later, milestone
from .copies import claim_new, require_live, restore, standing
from .ledger import SqlLedger
from .paths import path_or_url as checked_path
from .records.chain import first_hash
from .storage import tables
from .storage.anchors import Anchor
from .storage.schema import make_tables, names_of_datasets, require_dataset
from .storage.store import Store

_LONGEST = 1e6  # seconds to wait: databases count milliseconds in 32 bits


@checked(path_or_url=checked_path)
@whole
def create_ledger(
    path_or_url: str | os.PathLike[str], dataset: str, *, wait: Finite = 60.0
) -> SqlLedger:
    """Make a ledger for the privacy budget of a dataset.

    Call this once per dataset; later, call :func:`open_ledger`. One file or database may have the
    budgets of several datasets.

    :param path_or_url: path of an SQLite file on a local disk; for several machines, the URL of a
        PostgreSQL database, such as ``"postgresql+psycopg://user@host/database"``
    :param dataset: name of the dataset; :func:`open_ledger` needs the same name
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerError: if the dataset has a ledger there, or the ledger cannot be written
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> with create_ledger(Path(folder.name) / "budget.db", dataset="survey 2026") as ledger:
    ...     ledger.summary().launches
    0
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    store = Store(path_or_url, create=True, wait=wait)
    try:
        make_tables(store)
        with store.writing({}) as (driver, _):
            store.lock_all(driver)
            connection = driver.connection
            if connection.execute(tables.READ_BUDGET, {"of": dataset}).first() is not None:
                raise LedgerError(
                    f"ledger {store.name} has a budget of {dataset!r} already; call open_ledger"
                )
            head = first_hash(dataset, None)
            claim_new(store, driver, dataset, Anchor(0, head))
            row = {
                "dataset": dataset,
                "created": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
                "terms": None,
                "sequence": 0,
                "head": head,
                "record": None,
            }
            connection.execute(tables.budgets.insert(), row)
    except BaseException:
        store.discard()
        raise
    return SqlLedger(store, dataset)


@checked(path_or_url=checked_path)
@whole
def open_ledger(
    path_or_url: str | os.PathLike[str],
    dataset: str,
    *,
    anchor: Text | None = None,
    read_only: bool = False,
    wait: Finite = 60.0,
) -> SqlLedger:
    """Open a ledger that :func:`create_ledger` made, and check that it is consistent.

    :param path_or_url: path or URL that was given to :func:`create_ledger`
    :param dataset: name that was given to :func:`create_ledger`
    :param anchor: anchor of an earlier ``ledger.summary()``, kept elsewhere; the ledger must
        contain its charge. Only an anchor detects that somebody removed the newest charges with
        all their traces, or wrote a new ledger
    :param read_only: whether to refuse launches; a copy, and a file on a read-only disk, can only
        be opened in this way
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerMismatchError: if there is no budget of that dataset
    :raises LedgerDamagedError: if the ledger is inconsistent
    :raises LedgerError: if there is no ledger, it has another schema, or it is a copy
    :raises UnregisteredError: if the ledger has a value whose class is not registered
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "budget.db"
    >>> create_ledger(path, dataset="survey 2026").close()
    >>> open_ledger(path, dataset="survey 2025")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.LedgerMismatchError: dataset does not match: the ledger has ...
    >>> open_ledger(path, dataset="survey 2026").close()
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    milestones = [] if anchor is None else [milestone(anchor)]
    store = Store(path_or_url, create=False, wait=wait, only_read=read_only)
    try:
        require_dataset(store, dataset)
        found = standing(store, dataset)
        if not read_only:
            require_live(store, dataset, found.live)
        store.prepare(read_only=read_only)
        with store.snapshot() as connection:
            # an anchor is a reason to check that all charges lead to it
            read = audit_later if anchor is None else audit
            audited = read(connection, dataset, [*milestones, *found.milestones])
    except BaseException:
        store.close()
        raise
    return SqlLedger(store, dataset, audited, read_only)


@checked(path=checked_path)
@whole
def restore_ledger(
    path: str | os.PathLike[str], dataset: str, *, anchor: Text | None, wait: Finite = 60.0
) -> Summary:
    """Make a copy of an SQLite ledger the ledger of a dataset, so that it accepts launches.

    Use this for a backup after the disk of the ledger was lost, for a ledger that was moved to
    another disk, and for a ledger whose file ``-anchors`` was removed. The copy is audited first.

    Charges that were made after the copy are not in the copy, but they stay spent. Restore the
    newest copy, and give the newest anchor that anybody has kept. Make sure that nobody launches on
    another copy: each copy would be a separate budget.

    :param path: path of the copy
    :param dataset: name of the dataset
    :param anchor: anchor of the newest summary that was kept; the copy must contain its charge.
        Pass None only if no anchor was kept, and you know that the copy has all charges
    :param wait: seconds to wait for other processes
    :return: the state of the budget
    :raises LedgerDamagedError: if the copy is inconsistent, or lacks a charge that it must have
    :raises LedgerError: if there is no ledger there, or it already is the ledger
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, open_ledger, restore_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> copy = Path(folder.name) / "copy.db"
    >>> with create_ledger(Path(folder.name) / "budget.db", dataset="survey 2026") as ledger:
    ...     anchor = ledger.backup(copy).anchor
    >>> open_ledger(copy, dataset="survey 2026")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.LedgerError: ledger ...copy.db: the budget of 'survey 2026' is in a ...
    >>> restore_ledger(copy, dataset="survey 2026", anchor=anchor).launches
    0
    >>> open_ledger(copy, dataset="survey 2026").close()
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    known = None if anchor is None else milestone(anchor)
    with closing(Store(path, create=False, wait=wait)) as store:
        require_dataset(store, dataset)
        if not store.embedded:
            raise LedgerError(
                f"ledger {store.name} is on a PostgreSQL server; only SQLite files are restored"
            )
        store.prepare()
        return restore(store, dataset, known)


@checked(path_or_url=checked_path)
@whole
def datasets(path_or_url: str | os.PathLike[str], *, wait: Finite = 60.0) -> list[str]:
    """Return the names of the datasets in a ledger.

    :param path_or_url: path or URL that was given to :func:`create_ledger`
    :param wait: seconds to wait for other processes
    :return: sorted names
    :raises LedgerError: if there is no ledger, or it has another schema
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, datasets
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "budget.db"
    >>> create_ledger(path, dataset="survey 2026").close()
    >>> datasets(path)
    ['survey 2026']
    >>> folder.cleanup()
    """
    _check_wait(wait)
    with closing(Store(path_or_url, create=False, wait=wait, only_read=True)) as store:
        return names_of_datasets(store)


def _check(dataset: Argument, wait: Argument) -> None:
    if type(dataset) is not str:
        raise InvalidTypeError(f"dataset must be a str, found {type(dataset).__name__}")
    if not dataset:
        raise InvalidValueError("dataset must not be empty; pass the name of the dataset")
    if not dataset.isprintable():
        raise InvalidValueError(
            f"dataset ({checks.shown(dataset)}) must be printable, because errors contain it"
        )
    _check_wait(wait)


def _check_wait(wait: Argument) -> None:
    if not checks.non_negative(wait=wait) <= _LONGEST:
        raise InvalidValueError(f"wait ({wait}) must be at most {_LONGEST:g} s")
