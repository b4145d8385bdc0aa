"""Sealed blocks: which blocks of a unit are kept is decided once for each block, and stored.

A truncation keeps other blocks of a unit when the table has grown. A seal does not: when a block
is sealed, a unit is kept in it if it was kept in fewer than so many blocks before. Three tables
hold that. ``name`` has the rows that are kept, and the number of their seal; ``name_blocks`` has
the values of each sealed block, and its number; ``name_terms`` has one row: what is sealed, and how
many seals there were. A seal is one transaction. It first changes the row of terms, so that two
seals exclude each other: the second counts what the first has kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from opendp.mod import assert_features

from ..arguments import checks
from ..arguments.checked import checked
from ..errors import InvalidValueError
from .domain import GroupBound, Tables, record_of
from .engines.engine import Run, quoted
from .kind import TABLES
from .own_tables import VERSION, OwnTables, budgets_name, scanned
from .plan import Scan, Truncate, moving
from .schema import KEYS, Schema, names_of
from .steps import MOST_ROWS
from .table import Table

NUMBER = "oc_seal"  # the column of the number of a seal
_TYPES = {
    int: "BIGINT",
    float: "FLOAT8",
    str: 'TEXT COLLATE "C"',
    bool: "BOOLEAN",
    date: "DATE",
    datetime: "TIMESTAMP",
}


@checked(table=scanned, seals=budgets_name, groups=MOST_ROWS, rows=MOST_ROWS)
def create_seals(
    table: Table,
    seals: str | Sequence[str],
    by: str | Sequence[str],
    groups: int,
    rows: int = 1,
) -> None:
    """Create tables for the blocks of a table that are sealed, of which there are none yet.

    :func:`.seal` seals blocks, :func:`.sealed` is the table of the rows that are kept. Seals last
    as long as the database. Nobody else may change these tables, and a copy of the database must
    not bring back an older state of them. They are as sensitive as the data.

    Required features: `honest-but-curious`

    :param table: on a connection that may create tables, to DuckDB or PostgreSQL
    :param seals: name of the tables to create, or a schema and a name; as for
        :func:`.create_budgets`
    :param by: names of the columns whose values tell blocks apart, of integers, texts, Booleans or
        dates
    :param groups: number of blocks in which a unit is kept at most, for ever
    :param rows: number of rows of a unit in a block
    :raises InvalidTypeError, InvalidValueError: naming the argument; if there are such tables
        already, or the connection cannot create them

    :example: see :func:`.seal`
    """
    assert_features("honest-but-curious")
    schema = table.tables.schema
    names = names_of("by", schema, by, KEYS)
    if any(name.casefold().startswith(NUMBER) for name in schema.names):
        raise InvalidValueError(f"table must have no column whose name begins with {NUMBER}")
    _Seals(table, seals).create(_Terms(schema, names, groups, rows))


@checked(table=scanned, seals=budgets_name)
def seal(table: Table, seals: str | Sequence[str], keys: Sequence[Any]) -> None:
    """Seal blocks: decide once which rows of each unit are kept in them.

    Blocks are sealed in the order of ``keys``. A unit is kept in a block if it was kept in fewer
    than ``groups`` blocks before; then its first ``rows`` rows are, in ascending order of all
    columns but the unit's, NULL first. Rows that arrive after their block is sealed are dropped. So
    seal a block when it is complete, at a time that does not depend on the rows.

    Guarantee: a unit has rows in at most ``groups`` blocks, at most ``rows`` in each, in all states
    of the table together. That a unit is kept depends on its own rows, and on when blocks were
    sealed, only.

    Required features: `honest-but-curious`

    :param table: with the columns of the table that the seals were created for; it may be another
        one, such as a file for each week
    :param seals: made by :func:`.create_seals`
    :param keys: values of the columns of the seals, or tuples of these; they must be public
    :raises InvalidTypeError, InvalidValueError: naming the argument; for a block that is sealed;
        nothing is sealed then
    :raises TableError: the engine failed, or another process was sealing; nothing is sealed, unless
        the engine failed after it had committed

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute("CREATE TABLE stays (person INT, week INT)")
    >>> stays = oc.tables.scan(connection, "stays", {"person": int, "week": int}, "person")
    >>> oc.tables.create_seals(stays, "kept_stays", by="week", groups=2)
    >>> kept = oc.tables.sealed(stays, "kept_stays")
    >>> odometer = oc.make_concurrent_odometer(*kept.space, dp.max_divergence())
    >>> weeks = oc.c.by_column("week")
    >>> root = oc.c.make_block_filter(odometer, d_in=1, d_out=1.0, blocks=weeks)(kept)
    >>> count = kept.space >> oc.t.then_table_count() >> dp.m.then_laplace(scale=8.0)
    >>> for week in [3, 1, 2]:
    ...     _ = connection.execute("INSERT INTO stays VALUES (7, ?), (?, ?)", [week, week, week])
    ...     oc.tables.seal(stays, "kept_stays", [week])
    ...     root.add_blocks([week])
    >>> answer = root([1, 2, 3], count)  # about 5: person 7 is kept in weeks 3 and 1
    >>> root.privacy_loss(2), root.remaining(2)
    (0.25, 0.25)
    """
    assert_features("honest-but-curious")
    _Seals(table, seals).seal(keys)


@checked(table=scanned, seals=budgets_name)
def sealed(table: Table, seals: str | Sequence[str]) -> Table:
    """Return the table of the rows that are kept in sealed blocks.

    It grows when a block is sealed, and its rows never change. So a block filter on it may add
    blocks, and keep its budgets in a ledger. A unit costs the group privacy of ``groups`` blocks.
    A block that is not sealed has no rows.

    Required features: `honest-but-curious`

    :param table: as for :func:`.seal`
    :param seals: made by :func:`.create_seals`
    :return: a table, whose ``space`` begins pipelines
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example: see :func:`.seal`
    """
    assert_features("honest-but-curious")
    return _Seals(table, seals).kept()


class _Terms:
    """What is sealed.

    :param schema: of the rows
    :param by: names of the columns that tell blocks apart
    :param groups: number of blocks of a unit
    :param rows: number of its rows in each
    """

    __slots__ = ("by", "groups", "rows", "schema")

    def __init__(self, schema: Schema, by: tuple[str, ...], groups: int, rows: int) -> None:
        self.schema, self.by, self.groups, self.rows = schema, by, groups, rows

    def text(self) -> str:
        """Return them as one line, by which they are compared."""
        plain = replace(self.schema, scales=())  # as it was always written
        facts = {**record_of(Tables(plain)), "by": self.by, "most": [self.groups, self.rows]}
        return json.dumps(facts, sort_keys=True)


class _Seals:
    """The tables of seals of one name, in the engine of a table."""

    __slots__ = ("_own", "_table")

    def __init__(self, table: Table, name: Any) -> None:
        self._table, self._own = table, OwnTables(table, name, "seals")

    def create(self, terms: _Terms) -> None:
        """Create the tables, or raise."""
        schema, own, number = terms.schema, self._own, f"{quoted(NUMBER)} BIGINT"
        place = own.place("_terms")
        statements: list[tuple[str, tuple[Any, ...]]] = [
            (f"CREATE TABLE {place} (version INTEGER, terms TEXT, sealed BIGINT)", ()),
            (f"INSERT INTO {place} VALUES ({VERSION}, $1, 0)", (terms.text(),)),
        ]
        for suffix, names in (("", schema.names), ("_blocks", terms.by)):
            columns = [f"{quoted(name)} {_TYPES[schema.kind(name)]}" for name in names]
            columns.append(number)
            statements.append((f"CREATE TABLE {own.place(suffix)} ({', '.join(columns)})", ()))
        own.create(statements, "_terms", "", "_blocks")

    def terms(self) -> _Terms:
        """Return what is sealed, or raise unless it has the columns of the table."""
        (found,) = self._own.terms("terms")
        schema, known = self._table.tables.schema, json.loads(found)
        made = _Terms(schema, tuple(known["by"]), *known["most"])
        if made.text() != found:
            raise InvalidValueError(
                f"seals ({self._own.shown}) must be of a table with these columns and this unit: "
                f"they are of {found}, found {schema}"
            )
        return made

    def kept(self) -> Table:
        """Return the table of the rows that are kept."""
        terms = self.terms()
        bound = GroupBound(frozenset(terms.by), terms.groups, terms.rows)
        tables = Tables(terms.schema).at_most(terms.groups * terms.rows, bound).which_are_sealed()
        scan, engine = Scan(self._own.reference(), terms.schema), self._own.engine
        return Table(engine, scan, tables, self._table.timeout)

    def seal(self, keys: Any) -> None:
        """Seal blocks in one transaction, or raise."""
        terms = self.terms()
        table, domain = self._table, self._table.space[0]
        given = checks.sequence("keys", keys=keys)
        values = TABLES.values(domain, terms.by, given)
        if len(set(values)) != len(values):
            raise InvalidValueError("keys must be different, found a key twice")
        inserts = []
        for key, value in zip(given, values, strict=True):
            block = TABLES.cutter(domain, terms.by, {key: True}, (True,))(table)[True]
            first = Truncate(block.relation, terms.rows)
            inserts.append((value, *table.engine().query(first)))
        known = [self._is_known(terms, value) for value in values]

        def work(run: Run, after: int) -> list[int]:
            old = [at for at, (text, key) in enumerate(known) if run(text, key) != [(0,)]]
            start = after - len(values)
            for number, (value, text, parameters) in enumerate(inserts if not old else (), start):
                run(*self._new_block(terms, value, number))
                run(self._rows(terms, text, number), parameters)
                table.engine().check(run, moving(table.relation))
            return old

        update = (
            f"sealed = sealed + {len(values)} "
            f"WHERE version = {VERSION} AND terms = $1 RETURNING sealed"
        )
        if sealed_before := self._own.transact(work, update, (terms.text(),)):
            raise InvalidValueError(
                f"keys has {checks.shown(given[sealed_before[0]])}, which is sealed already: its "
                "rows are fixed, and those that arrived later are dropped"
            )

    def _is_known(self, terms: _Terms, value: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """Return a statement that counts the seals of a block."""
        same = " AND ".join(
            f"{quoted(name)} IS NOT DISTINCT FROM {_parameter(terms, name, place)}"
            for place, name in enumerate(terms.by, 1)
        )
        return f"SELECT COUNT(*) FROM {self._own.place('_blocks')} WHERE {same}", value

    def _new_block(
        self, terms: _Terms, value: tuple[Any, ...], number: int
    ) -> tuple[str, tuple[Any, ...]]:
        cells = [_parameter(terms, name, place) for place, name in enumerate(terms.by, 1)]
        return (
            f"INSERT INTO {self._own.place('_blocks')} VALUES ({', '.join(cells)}, {number})",
            value,
        )

    def _rows(self, terms: _Terms, text: str, number: int) -> str:
        """Return the statement that keeps rows of a block.

        :param text: a query of the first rows of each unit in the block
        """
        kept, seals = self._own.place(), quoted(NUMBER)
        columns = ", ".join(map(quoted, terms.schema.names))
        own = [f"t.{quoted(name)}" for name in terms.schema.names]
        units = [quoted(name) for name in terms.schema.unit]
        unit = ", ".join(units)
        same = " AND ".join(f"t.{name} = k.{name}" for name in units)
        counts = (
            f"SELECT {unit}, COUNT(*) AS {quoted(NUMBER + 's')} "
            f"FROM (SELECT DISTINCT {unit}, {seals} FROM {kept}) AS d GROUP BY {unit}"
        )
        return (
            f"INSERT INTO {kept} ({columns}, {seals}) SELECT {', '.join(own)}, {number} "
            f"FROM ({text}) AS t LEFT JOIN ({counts}) AS k ON {same} "
            f"WHERE COALESCE(k.{quoted(NUMBER + 's')}, 0) < {terms.groups}"
        )


def _parameter(terms: _Terms, name: str, place: int) -> str:
    return f"CAST(${place} AS {_TYPES[terms.schema.kind(name)].partition(' ')[0]})"
