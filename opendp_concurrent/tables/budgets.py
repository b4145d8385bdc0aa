"""Individual budgets in an engine: what each unit has spent, beside the table itself.

Two tables hold them. ``name`` has a row for each unit that was charged: the unit, what it has spent
as a whole number, and what it added to the last sum. ``name_terms`` has one row: for what the
numbers stand, and how many launches there were. A launch is one transaction: it first changes the
row of terms, which makes two launches exclude each other; then it writes the budgets after the
charge into a new table, which takes the place of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendp.mod import assert_features

from ..arguments import checks
from ..arguments.checked import checked
from ..errors import InvalidTypeError, InvalidValueError
from ..errors.data import TableError
from .engines.engine import Run, integers
from .plan import Charge, Quantised, Relation, moving
from .schema import KINDS, column_name
from .table import Table

VERSION = 1
LONGEST = 50  # bytes of a name: PostgreSQL cuts names at 63, and suffixes are added
PARTS = 3  # of a name: database, schema and table
_UNITS = {int: "BIGINT", str: "TEXT"}
_WHOLE = {"duckdb": "HUGEINT", "postgres": "NUMERIC(38, 0)"}


def budgets_name(**argument: Any) -> tuple[str, ...]:
    """Return the parts of the name of a table of budgets, or raise."""
    ((place, given),) = argument.items()
    parts = (given,) if checks.is_a(given, str) else checks.sequence("names", **argument)
    if not 1 <= len(parts) <= PARTS:
        raise InvalidValueError(
            f"{place} ({checks.shown(given)}) must be a name, or a schema and a name"
        )
    found = tuple(column_name(**{place: one}) for one in parts)
    if any(one.lower().startswith("pg_") for one in found):
        raise InvalidValueError(
            f"{place} ({checks.shown(given)}) must not begin with pg_, as PostgreSQL's own schemas "
            "do: a temporary table would forget what was spent"
        )
    if len(found[-1].encode()) > LONGEST:
        raise InvalidValueError(f"{place} ({found[-1]}) must be a name of at most {LONGEST} bytes")
    return found


@checked(budgets=budgets_name)
def create_budgets(table: Table, budgets: str | Sequence[str]) -> None:
    """Create a table of individual budgets, in which each unit has spent nothing.

    :func:`.make_individual_table_filter` charges it. The first filter that is invoked on it says
    for which measure and ``d_out`` it is; filters with other ones are then refused. Budgets last as
    long as the database: all filters that were ever invoked on one table of budgets lose a unit at
    most ``d_out`` together. Nobody else may change it, and a copy of the database must not bring
    back an older state of it.

    A table of budgets is as sensitive as the data: it tells who is in them, and how large their
    values are. Let nobody read it who may not read the data. Each launch replaces it by a new
    table, on which PostgreSQL grants nothing to anybody but its owner.

    All tables that are charged to it must have the same units, such as persons: the type of the
    unit is checked, what it stands for is not. The same numbers of persons and of households would
    charge one for the rows of the other.

    Required features: `honest-but-curious`

    :param table: of :func:`.scan`, on a connection that may create tables, to DuckDB or PostgreSQL.
        Its units have the budgets
    :param budgets: name of the table to create, or its schema and its name. Without a schema it is
        in ``main`` (DuckDB) or ``public`` (PostgreSQL)
    :raises InvalidTypeError, InvalidValueError: naming the argument; if there is such a table
        already, or the connection cannot create it

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE stays AS SELECT range AS person FROM range(9)")
    >>> stays = oc.tables.scan(connection, "stays", {"person": int}, "person")
    >>> oc.tables.create_budgets(stays, "spent")
    """
    assert_features("honest-but-curious")
    if type(table) is not Table:
        raise InvalidTypeError(
            f"table must be of oc.tables.scan(...), found {type(table).__name__}"
        )
    Budgets(table, tuple(budgets)).create()  # checked() has parted the name


class Budgets:
    """The tables of budgets of one name, in the engine of a table. For mechanisms only.

    :param table: whose units have the budgets
    :param name: its parts
    :raises InvalidTypeError, InvalidValueError: if the engine cannot keep budgets
    """

    __slots__ = ("_engine", "_kind", "_name", "_next", "_now", "_table", "_terms")

    def __init__(self, table: Table, name: tuple[str, ...]) -> None:
        self._table, self._engine, self._name = table, table.engine(), name
        self._engine.check_writable()
        schema = table.tables.schema
        if len(schema.unit) > 1:
            raise InvalidTypeError(
                "table must have one column as its unit, to have budgets of its units, found "
                f"{len(schema.unit)}: {', '.join(schema.unit)}"
            )
        self._kind = schema.kind(schema.unit[0])
        self._now = self._engine.place_of(name)
        self._terms, self._next = (
            (*self._now[:-1], f"{self._now[-1]}_{suffix}") for suffix in ("terms", "next")
        )

    def create(self) -> None:
        """Create the tables, or raise."""
        whole, unit = _WHOLE[self._engine.dialect], _UNITS[self._kind]

        def work(run: Run) -> None:
            run(
                f"CREATE TABLE {quoted(self._terms)} "
                "(version INTEGER, unit TEXT, terms TEXT, launches BIGINT)",
                (),
            )
            run(
                f"INSERT INTO {quoted(self._terms)} "
                f"VALUES ({VERSION}, '{KINDS[self._kind]}', NULL, 0)",
                (),
            )
            run(
                f'CREATE TABLE {quoted(self._now)} ("unit" {unit}, "spent" {whole}, '
                '"taken" BIGINT)',
                (),
            )
            for one in (self._terms, self._now):
                self._engine.close_off(run, one)

        try:
            self._engine.transact(work, self._table.timeout)
        except TableError:
            raise InvalidValueError(
                f"budgets ({self._shown()}) must be the name of a new table in a schema where the "
                "connection may create tables; why it could not is in the log "
                "(opendp_concurrent.tables)"
            ) from None

    def check(self, terms: str) -> None:
        """Raise unless the budgets are there, and stand for these terms or for none yet."""
        text = f"SELECT version, unit, terms FROM {quoted(self._terms)}"
        try:
            rows = self._engine.transact(lambda run: run(text, ()), self._table.timeout)
        except TableError:
            rows = []
        if len(rows) != 1 or rows[0][0] != VERSION:
            raise InvalidValueError(
                f"budgets ({self._shown()}) must be a table of oc.tables.create_budgets, in the "
                "database of the table"
            )
        ((_, unit, found),) = rows
        if unit != KINDS[self._kind]:
            raise InvalidValueError(
                f"budgets ({self._shown()}) must be of units of type {KINDS[self._kind]}, "
                f"found {unit}"
            )
        if found not in (None, terms):
            raise InvalidValueError(
                f"budgets ({self._shown()}) must have been charged for the same measure and d_out: "
                f"they stand for {found!r}, not for {terms!r}; create other ones"
            )

    def charge(
        self, relation: Relation, value: Quantised | None, price: Any, budget: int, terms: str
    ) -> int:
        """Charge each unit that can pay; return the sum of their numbers once this is durable.

        :param price: with the fields ``reach``, ``power``, ``rate`` and ``most`` of a charge
        :raises TableError: always the same, if the engine fails. Nothing is charged then, unless it
            failed after it had committed
        """
        charge = Charge(value, price.reach, price.power, price.rate, price.most, budget, self._now)
        text, parameters = self._engine.charging(relation, charge)
        now, after = quoted(self._now), quoted(self._next)

        def work(run: Run) -> int:
            launches = run(  # a lock: another launch waits here, or fails
                f"UPDATE {quoted(self._terms)} SET launches = launches + 1, terms = $1 "
                f"WHERE version = {VERSION} AND unit = $2 AND (terms IS NULL OR terms = $1) "
                "RETURNING launches",
                (terms, KINDS[self._kind]),
            )
            if len(launches) != 1:
                raise ValueError("the table of budgets has changed")
            run(f"CREATE TABLE {after} AS {text}", parameters)
            self._engine.check(run, moving(relation))
            self._engine.close_off(run, self._next)
            totals = f'SELECT COALESCE(SUM("taken"), 0), COALESCE(MIN("spent"), 0) FROM {after}'
            ((total, least),) = integers(run(totals, ()))
            if least < 0:
                raise ValueError("somebody else has changed the table of budgets")
            run(f"DROP TABLE {now}", ())
            run(f"ALTER TABLE {after} RENAME TO {quoted(('', self._now[-1]))}", ())
            return total

        total: int = self._engine.transact(work, self._table.timeout)
        return total

    def _shown(self) -> str:
        return ".".join(self._name)


def quoted(reference: tuple[str, ...]) -> str:
    """Return the name of a stored table in SQL."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in reference[1:])
