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

from ..arguments.checked import checked
from ..errors import InvalidTypeError, InvalidValueError
from .engines.engine import Run, integers, quoted
from .own_tables import VERSION, OwnTables, budgets_name, scanned
from .plan import Charge, Quantised, Relation, moving
from .schema import KINDS
from .table import Table

_UNITS = {int: "BIGINT", str: "TEXT"}
_WHOLE = {"duckdb": "HUGEINT", "postgres": "NUMERIC(38, 0)"}


@checked(table=scanned, budgets=budgets_name)
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
    Budgets(table, tuple(budgets)).create()  # checked() has parted the name


class Budgets:
    """The tables of budgets of one name, in the engine of a table. For mechanisms only.

    :param table: whose units have the budgets
    :param name: its parts
    :raises InvalidTypeError, InvalidValueError: if the engine cannot keep budgets
    """

    __slots__ = ("_kind", "_own")

    def __init__(self, table: Table, name: tuple[str, ...]) -> None:
        self._own = OwnTables(table, name, "budgets")
        schema = table.tables.schema
        if len(schema.unit) > 1:
            raise InvalidTypeError(
                "table must have one column as its unit, to have budgets of its units, found "
                f"{len(schema.unit)}: {', '.join(schema.unit)}"
            )
        self._kind = schema.kind(schema.unit[0])

    def create(self) -> None:
        """Create the tables, or raise."""
        own, kind = self._own, self._kind
        terms, spent = own.place("_terms"), f'"spent" {_WHOLE[own.engine.dialect]}'
        statements = (
            f"CREATE TABLE {terms} (version INTEGER, unit TEXT, terms TEXT, launches BIGINT)",
            f"INSERT INTO {terms} VALUES ({VERSION}, '{KINDS[kind]}', NULL, 0)",
            f'CREATE TABLE {own.place()} ("unit" {_UNITS[kind]}, {spent}, "taken" BIGINT)',
        )
        own.create([(text, ()) for text in statements], "_terms", "")

    def check(self, terms: str) -> None:
        """Raise unless the budgets are there, and stand for these terms or for none yet."""
        own, (unit, found) = self._own, self._own.terms("unit, terms")
        if unit != KINDS[self._kind]:
            raise InvalidValueError(
                f"budgets ({own.shown}) must be of units of type {KINDS[self._kind]}, found {unit}"
            )
        if found not in (None, terms):
            raise InvalidValueError(
                f"budgets ({own.shown}) must have been charged for the same measure and d_out: "
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
        own, prices = self._own, (price.reach, price.power, price.rate, price.most)
        charge = Charge(value, *prices, budget, own.reference())
        text, parameters = own.engine.query(relation, charge)
        now, after = own.place(), own.place("_next")

        def work(run: Run, _: int) -> int:
            run(f"CREATE TABLE {after} AS {text}", parameters)
            own.engine.check(run, moving(relation))
            own.engine.close_off(run, own.reference("_next"))
            totals = f'SELECT COALESCE(SUM("taken"), 0), COALESCE(MIN("spent"), 0) FROM {after}'
            ((total, least),) = integers(run(totals, ()))
            if least < 0:
                raise ValueError("somebody else has changed the table of budgets")
            run(f"DROP TABLE {now}", ())
            run(f"ALTER TABLE {after} RENAME TO {quoted(own.reference()[-1])}", ())
            return total

        update = (
            "launches = launches + 1, terms = $1 "
            f"WHERE version = {VERSION} AND unit = $2 AND (terms IS NULL OR terms = $1) "
            "RETURNING launches"
        )
        total: int = own.transact(work, update, (terms, KINDS[self._kind]))
        return total
