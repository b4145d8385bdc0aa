"""Make the tables of a ledger, and check that a database is a ledger of this version."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection, inspect, select

from ...arguments.checks import shown
from ...errors import LedgerError, LedgerMismatchError
from ..records.chain import SCHEMA_VERSION
from ..records.readable import require_text
from . import tables
from .store import Store


def make_tables(store: Store) -> None:
    """Make the tables, unless they exist.

    :raises LedgerError: if the file is an SQLite database of another program, or another version
    """
    if store.embedded:
        _require_own(store)
    store.prepare()
    with store.writing({}) as (driver, _):
        store.lock_all(driver)
        connection = driver.connection
        names = inspect(connection).get_table_names()
        if tables.schema.name in names:
            _require_version(store, connection)
            return
        tables.metadata.create_all(connection)
        connection.execute(tables.schema.insert(), {"version": SCHEMA_VERSION})


def _require_own(store: Store) -> None:
    """Check that an SQLite file is empty or a ledger, before anything in it changes."""
    with store.reading() as connection:
        names = inspect(connection).get_table_names()
    if names and tables.schema.name not in names:
        raise _foreign(store)


def index_labels(store: Store) -> None:
    """Make the index of labels, unless it is there, or this process may not make it."""
    known, made = tables.FIND_INDEX, tables.INDEX_LABELS
    if store.embedded:
        known, made = tables.FIND_INDEX_EMBEDDED, tables.INDEX_LABELS_EMBEDDED
    with suppress(LedgerError):
        with store.reading() as connection:
            if connection.execute(known).scalar_one():
                return
        with store.writing({}) as (driver, _):
            driver.connection.execute(made)


def require_dataset(store: Store, dataset: str) -> None:
    """Check that the database is a ledger of this version, and has a budget of ``dataset``.

    :raises LedgerError: if it is not a ledger of this version
    :raises LedgerMismatchError: if it has no such budget
    """
    found = names_of_datasets(store)
    if dataset not in found:
        raise LedgerMismatchError("dataset", " and ".join(map(shown, found)), shown(dataset))


def names_of_datasets(store: Store) -> list[str]:
    """Return the names of the datasets in a ledger.

    :raises LedgerError: if the database is not a ledger of this version
    """
    with store.reading() as connection:
        if tables.schema.name not in inspect(connection).get_table_names():
            raise _foreign(store)
        _require_version(store, connection)
        found = list(connection.execute(tables.READ_DATASETS).scalars())
    for number, name in enumerate(found):
        require_text(f"ledger {store.name}: budget {number + 1}", dataset=name)
    return found


def _foreign(store: Store) -> LedgerError:
    return LedgerError(
        f"{store.name} is not a ledger: it has no table {tables.schema.name}; check its name, or "
        "make a new ledger with create_ledger"
    )


def _require_version(store: Store, connection: Connection) -> None:
    versions = list(connection.execute(select(tables.schema.c.version)).scalars())
    if versions == [SCHEMA_VERSION]:
        return
    found = versions[0] if len(versions) == 1 else versions
    how = "a newer" if isinstance(found, int) and found > SCHEMA_VERSION else "an older"
    raise LedgerError(
        f"{store.name} has schema {found}; this version of opendp_concurrent reads schema "
        f"{SCHEMA_VERSION}: use {how} version, or create another ledger for the remaining budget"
    )
