"""The tables: one row for each budget, one row for each charge. Charges are only appended."""

from contextlib import suppress
from typing import Any

import sqlalchemy as sql

from ..errors import LedgerError, LedgerMismatchError, shown
from .encoding import SCHEMA_VERSION, require_text
from .store import Store

metadata = sql.MetaData()
side = sql.MetaData()  # tables that are made when they are needed, if this process may

schema = sql.Table(
    "opendp_concurrent_schema", metadata, sql.Column("version", sql.Integer, nullable=False)
)

budgets = sql.Table(
    "opendp_concurrent_budgets",
    metadata,
    sql.Column("dataset", sql.String, primary_key=True),
    sql.Column("created", sql.String, nullable=False),
    sql.Column("terms", sql.String),  # written at the first use, and never changed
    sql.Column("sequence", sql.BigInteger, nullable=False),
    sql.Column("head", sql.String, nullable=False),  # hash of the newest charge
    sql.Column("record", sql.String),  # the running total, exactly
)

charges = sql.Table(
    "opendp_concurrent_charges",
    metadata,
    sql.Column("dataset", sql.String, primary_key=True),
    sql.Column("sequence", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("time", sql.BigInteger, nullable=False),  # microseconds since 1970, by the clock
    sql.Column("label", sql.String, nullable=False),
    sql.Column("mechanism", sql.String, nullable=False),
    sql.Column("d_mid", sql.String, nullable=False),
    sql.Column("hash", sql.String, nullable=False),
    sqlite_with_rowid=False,
)

kept = sql.Table(  # the state after a charge, from which opening goes on
    "opendp_concurrent_kept",
    side,
    sql.Column("dataset", sql.String, primary_key=True),
    sql.Column("state", sql.String, nullable=False),
    sql.Column("digest", sql.String, nullable=False),
)


def _after_create(dialect: str, statement: str) -> None:
    # SQLAlchemy does not annotate it
    ddl: Any = sql.DDL(statement)  # type: ignore[no-untyped-call]
    sql.event.listen(charges, "after_create", ddl.execute_if(dialect=dialect))


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

_OF_DATASET = budgets.c.dataset == sql.bindparam("of")

READ_HEAD = sql.select(budgets.c.sequence, budgets.c.head, budgets.c.record).where(_OF_DATASET)
LOCK_HEAD = READ_HEAD.with_for_update()  # SQLite has locked the database already
READ_BUDGET = sql.select(budgets).where(_OF_DATASET)
LOCK_BUDGET = READ_BUDGET.with_for_update()
READ_DATASETS = sql.select(budgets.c.dataset).order_by(budgets.c.dataset)
READ_CHARGES = sql.select(charges).where(charges.c.dataset == sql.bindparam("of"))
READ_CHARGES = READ_CHARGES.order_by(charges.c.sequence)
READ_LATER = READ_CHARGES.where(charges.c.sequence > sql.bindparam("after"))
READ_PAGE = READ_LATER.limit(1000)
READ_STATE = sql.select(kept.c.state, kept.c.digest).where(kept.c.dataset == sql.bindparam("of"))
FORGET_STATE = sql.delete(kept).where(kept.c.dataset == sql.bindparam("of"))
READ_TRIGGERS = sql.text(
    "SELECT oid, xmin, tgenabled FROM pg_trigger WHERE tgname = 'opendp_concurrent_append_only' "
    "AND tgrelid = to_regclass('opendp_concurrent_charges') ORDER BY oid"
)
ADD_CHARGE = sql.insert(charges).values(
    {column.name: sql.bindparam(column.name) for column in charges.c}
)
MOVE_HEAD = sql.update(budgets).where(_OF_DATASET)
MOVE_HEAD = MOVE_HEAD.values({c: sql.bindparam(c) for c in ("sequence", "head", "record")})
SETTLE_TERMS = sql.update(budgets).where(_OF_DATASET)
SETTLE_TERMS = SETTLE_TERMS.values({c: sql.bindparam(c) for c in ("terms", "head", "record")})

# Made when a label is first looked up, also in ledgers of older versions, which ignore it. Labels
# and names have any length, and PostgreSQL indexes at most 2,704 bytes: there it has their starts.
START = 128  # characters
_STARTS = [f"substr({name}, 1, {START})" for name in ("label", "dataset")]
_INDEX = "CREATE INDEX IF NOT EXISTS opendp_concurrent_labels ON opendp_concurrent_charges"
INDEX_LABELS = sql.text(f"{_INDEX} ({', '.join(_STARTS)})")
INDEX_LABELS_EMBEDDED = sql.text(f"{_INDEX} (label, dataset)")
HAS_LABEL = sql.select(  # of columns in the index: SQLite then prefers it to the primary key
    sql.select(charges.c.sequence)
    .where(
        charges.c.dataset == sql.bindparam("of"),
        charges.c.label == sql.bindparam("label"),
        sql.literal_column(_STARTS[0]) == sql.bindparam("label_start", type_=sql.String),
        sql.literal_column(_STARTS[1]) == sql.bindparam("of_start", type_=sql.String),
    )
    .exists()
)


# Make the tables of a ledger, and check that a database is a ledger of this version.


def make_tables(store: Store) -> None:
    """Make the tables, unless they exist.

    :raises LedgerError: if the file is an SQLite database of another program, or another version
    """
    if store.embedded:  # it is empty or a ledger, before anything in it changes
        with store.reading() as connection:
            names = sql.inspect(connection).get_table_names()
        if names and schema.name not in names:
            raise _foreign(store)
    store.prepare()
    with store.writing({}) as (driver, _):
        store.lock_all(driver)
        connection = driver.connection
        names = sql.inspect(connection).get_table_names()
        if schema.name in names:
            _require_version(store, connection)
            return
        metadata.create_all(connection)
        connection.execute(schema.insert(), {"version": SCHEMA_VERSION})


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
        if schema.name not in sql.inspect(connection).get_table_names():
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


def _require_version(store: Store, connection: sql.Connection) -> None:
    versions = list(connection.execute(sql.select(schema.c.version)).scalars())
    if versions == [SCHEMA_VERSION]:
        return
    found = versions[0] if len(versions) == 1 else versions
    how = "a newer" if isinstance(found, int) and found > SCHEMA_VERSION else "an older"
    raise LedgerError(
        f"{store.name} has schema {found}; this version of opendp_concurrent reads schema "
        f"{SCHEMA_VERSION}: use {how} version, or create another ledger for the remaining budget"
    )
