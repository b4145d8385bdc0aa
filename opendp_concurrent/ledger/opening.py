"""Create and open ledgers."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime, timezone
from typing import Annotated, cast

from .. import _checks as checks
from .._opendp import uninterruptible
from ..errors import Argument, InvalidTypeError, InvalidValueError, LedgerError
from . import schema as tables
from .audit import audit, audit_later, milestone
from .encoding import first_hash
from .ledger import SqlLedger
from .schema import make_tables, names_of_datasets, require_dataset
from .store import Store


@checks.guard("path", None, 3, b"a.db", "", "a\0b", "\ud800")
def path_or_url(name: str, value: Argument) -> str | os.PathLike[str]:
    """Return a path or a URL, or raise."""
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidTypeError(
            f"{name} must be a path or a URL, found {type(value).__name__}; "
            "pass for example pathlib.Path('budget.db')"
        )
    try:
        plain = os.fspath(value)
        plain.encode()
        usable = type(plain) is not bytes and 0 < len(plain) <= 4096 and "\0" not in plain
    except Exception:
        usable = False
    if not usable:
        raise InvalidValueError(
            f"{name} ({checks.shown(value)}) must be a valid path or URL: 1 to 4,096 characters of "
            "Unicode, without NUL"
        )
    return str.__str__(plain) if isinstance(value, str) else cast("os.PathLike[str]", value)


_LONGEST = 1e6  # seconds to wait: databases count milliseconds in 32 bits

Place = Annotated[str | os.PathLike[str], path_or_url]
Dataset = Annotated[
    str,
    checks.text.narrowed(
        lambda name: bool(name) and name.isprintable(),
        "be a name that is printable, because errors contain it",
        "",
        "a\nb",
        kind="name of a dataset",
    ),
]
Wait = Annotated[
    float,
    checks.non_negative.narrowed(lambda wait: wait <= _LONGEST, f"be at most {_LONGEST:g} s"),
]


@checks.checked
@uninterruptible
def create_ledger(path_or_url: Place, dataset: Dataset, *, wait: Wait = 60.0) -> SqlLedger:
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


@checks.checked
@uninterruptible
def open_ledger(
    path_or_url: Place,
    dataset: Dataset,
    *,
    anchor: checks.Text | None = None,
    read_only: bool = False,
    wait: Wait = 60.0,
) -> SqlLedger:
    """Open a ledger that :func:`create_ledger` made, and check that it is consistent.

    :param path_or_url: path or URL that was given to :func:`create_ledger`
    :param dataset: name that was given to :func:`create_ledger`
    :param anchor: anchor of an earlier ``ledger.summary()``, kept elsewhere; the ledger must
        contain its charge. Only an anchor detects that this is an older copy, that somebody removed
        the newest charges, or wrote a new ledger
    :param read_only: whether to refuse launches
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerMismatchError: if there is no budget of that dataset
    :raises LedgerDamagedError: if the ledger is inconsistent
    :raises LedgerError: if there is no ledger, or it has another schema
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
    milestones = [] if anchor is None else [milestone(anchor)]
    store = Store(path_or_url, create=False, wait=wait)
    try:
        require_dataset(store, dataset)
        store.prepare(read_only=read_only)
        with store.snapshot() as connection:
            # an anchor is a reason to check that all charges lead to it
            read = audit_later if anchor is None else audit
            audited = read(connection, dataset, milestones)
    except BaseException:
        store.close()
        raise
    return SqlLedger(store, dataset, audited, read_only)


@checks.checked
@uninterruptible
def datasets(path_or_url: Place, *, wait: Wait = 60.0) -> list[str]:
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
    with closing(Store(path_or_url, create=False, wait=wait)) as store:
        return names_of_datasets(store)
