"""Whether a database is one of ours, and of which version."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select

from ...checks import shown
from ...errors import LedgerError, LedgerMismatchError
from ..records.chain import SCHEMA_VERSION
from ..records.readable import require_text
from . import tables
from .store import Store


def make_tables(store: Store) -> None:
    """Make the tables, unless they are there.

    :raises LedgerError: if the database is an SQLite file of somebody else, or of another version
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
    """Raise if an SQLite file is somebody else's, before anything in it changes."""
    with store.reading() as connection:
        names = inspect(connection).get_table_names()
    if names and tables.schema.name not in names:
        raise _foreign(store)


def require_dataset(store: Store, dataset: str) -> None:
    """Raise unless the database is a ledger of this version, and has a budget of ``dataset``.

    :raises LedgerError: saying what it is instead
    """
    found = names_of_datasets(store)
    if dataset not in found:
        raise LedgerMismatchError("dataset", " and ".join(map(shown, found)), shown(dataset))


def names_of_datasets(store: Store) -> list[str]:
    """Return what the budgets of a ledger are for.

    :raises LedgerError: if it is no ledger of this version
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
        f"{store.name} is not a ledger: it has no table {tables.schema.name}; look at its name, "
        "create_ledger makes a new one"
    )


def _require_version(store: Store, connection: Connection) -> None:
    versions = list(connection.execute(select(tables.schema.c.version)).scalars())
    if versions == [SCHEMA_VERSION]:
        return
    found = versions[0] if len(versions) == 1 else versions
    how = "a newer" if isinstance(found, int) and found > SCHEMA_VERSION else "an older"
    raise LedgerError(
        f"{store.name} has schema {found}, this version of opendp_concurrent reads "
        f"{SCHEMA_VERSION}: use {how} one, or create another ledger for what is left"
    )
