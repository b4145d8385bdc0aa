"""The tables: one row for each budget, one row for each charge. Charges are only appended."""

from contextlib import suppress
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    delete,
    event,
    insert,
    inspect,
    literal_column,
    select,
    text,
    update,
)

from ..errors import LedgerError, LedgerMismatchError, shown
from .encoding import SCHEMA_VERSION, require_text
from .store import Store

metadata = MetaData()
side = MetaData()  # tables that are made when they are needed, if this process may

schema = Table("opendp_concurrent_schema", metadata, Column("version", Integer, nullable=False))

budgets = Table(
    "opendp_concurrent_budgets",
    metadata,
    Column("dataset", String, primary_key=True),
    Column("created", String, nullable=False),
    Column("terms", String),  # written at the first use, and never changed
    Column("sequence", BigInteger, nullable=False),
    Column("head", String, nullable=False),  # hash of the newest charge
    Column("record", String),  # the running total, exactly
)

charges = Table(
    "opendp_concurrent_charges",
    metadata,
    Column("dataset", String, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("time", BigInteger, nullable=False),  # microseconds since 1970, by the computer's clock
    Column("label", String, nullable=False),
    Column("mechanism", String, nullable=False),
    Column("d_mid", String, nullable=False),
    Column("hash", String, nullable=False),
    sqlite_with_rowid=False,
)

kept = Table(  # the state after a charge, from which opening goes on
    "opendp_concurrent_kept",
    side,
    Column("dataset", String, primary_key=True),
    Column("state", String, nullable=False),
    Column("digest", String, nullable=False),
)


def _after_create(dialect: str, statement: str) -> None:
    ddl: Any = DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy does not annotate it
    event.listen(charges, "after_create", ddl.execute_if(dialect=dialect))


for _change in ("UPDATE", "DELETE"):
    _after_create(
        "sqlite",
        f"CREATE TRIGGER opendp_concurrent_no_{_change.lower()} BEFORE {_change} ON "
        "opendp_concurrent_charges BEGIN SELECT RAISE(ABORT, 'charges are append-only'); END",
    )
_after_create(
    "postgresql",
    "CREATE OR REPLACE FUNCTION opendp_concurrent_append_only() RETURNS trigger AS "
    "$$ BEGIN RAISE EXCEPTION 'charges are append-only'; END $$ LANGUAGE plpgsql",
)
_after_create(
    "postgresql",
    "CREATE TRIGGER opendp_concurrent_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "
    "opendp_concurrent_charges EXECUTE FUNCTION opendp_concurrent_append_only()",
)

_OF_DATASET = budgets.c.dataset == bindparam("of")

READ_HEAD = select(budgets.c.sequence, budgets.c.head, budgets.c.record).where(_OF_DATASET)
LOCK_HEAD = READ_HEAD.with_for_update()  # SQLite has locked the database already
READ_BUDGET = select(budgets).where(_OF_DATASET)
LOCK_BUDGET = READ_BUDGET.with_for_update()
READ_DATASETS = select(budgets.c.dataset).order_by(budgets.c.dataset)
READ_CHARGES = select(charges).where(charges.c.dataset == bindparam("of"))
READ_CHARGES = READ_CHARGES.order_by(charges.c.sequence)
READ_LATER = READ_CHARGES.where(charges.c.sequence > bindparam("after"))
READ_PAGE = READ_LATER.limit(1000)
READ_STATE = select(kept.c.state, kept.c.digest).where(kept.c.dataset == bindparam("of"))
FORGET_STATE = delete(kept).where(kept.c.dataset == bindparam("of"))
READ_TRIGGERS = text(
    "SELECT oid, xmin, tgenabled FROM pg_trigger WHERE tgname = 'opendp_concurrent_append_only' "
    "AND tgrelid = to_regclass('opendp_concurrent_charges') ORDER BY oid"
)
ADD_CHARGE = insert(charges).values({column.name: bindparam(column.name) for column in charges.c})
MOVE_HEAD = update(budgets).where(_OF_DATASET)
MOVE_HEAD = MOVE_HEAD.values({c: bindparam(c) for c in ("sequence", "head", "record")})
SETTLE_TERMS = update(budgets).where(_OF_DATASET)
SETTLE_TERMS = SETTLE_TERMS.values({c: bindparam(c) for c in ("terms", "head", "record")})

# Made when a label is first looked up, also in ledgers of older versions, which ignore it. Labels
# and names have any length, and PostgreSQL indexes at most 2,704 bytes: there it has their starts.
START = 128  # characters
_STARTS = [f"substr({name}, 1, {START})" for name in ("label", "dataset")]
_INDEX = "CREATE INDEX IF NOT EXISTS opendp_concurrent_labels ON opendp_concurrent_charges"
INDEX_LABELS = text(f"{_INDEX} ({', '.join(_STARTS)})")
INDEX_LABELS_EMBEDDED = text(f"{_INDEX} (label, dataset)")
HAS_LABEL = select(  # of columns in the index: SQLite then prefers it to the primary key
    select(charges.c.sequence)
    .where(
        charges.c.dataset == bindparam("of"),
        charges.c.label == bindparam("label"),
        literal_column(_STARTS[0]) == bindparam("label_start", type_=String),
        literal_column(_STARTS[1]) == bindparam("of_start", type_=String),
    )
    .exists()
)


# Make the tables of a ledger, and check that a database is a ledger of this version.


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
        if schema.name in names:
            _require_version(store, connection)
            return
        metadata.create_all(connection)
        connection.execute(schema.insert(), {"version": SCHEMA_VERSION})


def _require_own(store: Store) -> None:
    """Check that an SQLite file is empty or a ledger, before anything in it changes."""
    with store.reading() as connection:
        names = inspect(connection).get_table_names()
    if names and schema.name not in names:
        raise _foreign(store)


def index_labels(store: Store) -> None:
    """Make the index of labels, unless it is there, or this process may not make it."""
    with suppress(LedgerError), store.writing({}) as (driver, _):
        driver.connection.execute(INDEX_LABELS_EMBEDDED if store.embedded else INDEX_LABELS)


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
        if schema.name not in inspect(connection).get_table_names():
            raise _foreign(store)
        _require_version(store, connection)
        found = list(connection.execute(READ_DATASETS).scalars())
    for number, name in enumerate(found):
        require_text(f"ledger {store.name}: budget {number + 1}", dataset=name)
    return found


def _foreign(store: Store) -> LedgerError:
    return LedgerError(
        f"{store.name} is not a ledger: it has no table {schema.name}; check its name, or "
        "make a new ledger with create_ledger"
    )


def _require_version(store: Store, connection: Connection) -> None:
    versions = list(connection.execute(select(schema.c.version)).scalars())
    if versions == [SCHEMA_VERSION]:
        return
    found = versions[0] if len(versions) == 1 else versions
    how = "a newer" if isinstance(found, int) and found > SCHEMA_VERSION else "an older"
    raise LedgerError(
        f"{store.name} has schema {found}; this version of opendp_concurrent reads schema "
        f"{SCHEMA_VERSION}: use {how} version, or create another ledger for the remaining budget"
    )
