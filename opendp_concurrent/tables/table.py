"""A table that stays in its engine: the value that transformations pass on. It holds no rows.

As a kind of data, it is cut into parts by public values of columns, one predicate each. Nothing
runs for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from types import MappingProxyType
from typing import Any, ClassVar
from weakref import finalize

from .. import _checks as checks
from .._opendp import descriptor, dp
from ..data import Cut, Kind, Of, Owners, columns_in, register
from ..errors import Data, Distance, ForkedError, InvalidTypeError, InvalidValueError
from .domain import Tables, table_domain, tables_of, units_in
from .domain import units as metric_of_units
from .engine import Engine, Rows, Stored
from .expressions import MOST_VALUES, Expression, col
from .plan import Aggregate, Relation, Scan, Where, moving
from .schema import KEYS, column_name, in_unit, names_of, row_of
from .typed import checked


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table in an engine, with what is known of it. Made by :func:`.scan`.

    It is immutable and shows no rows: not in ``repr``, by pickling, or in an error. Its connection
    is kept until the table and every queryable on it are freed.

    :ivar space: the domain and the metric of OpenDP, for constructors
    :ivar relation: the plan of this table, which has no data
    """

    is_table: ClassVar = True  # which the domain asks of the class
    _engine: Engine
    relation: Relation
    tables: Tables
    _held: tuple[Any, ...] = ()
    _others: Mapping[str, Table] = field(default_factory=dict)
    _process: int = field(default_factory=os.getpid)  # a fork may not use the connection

    @property
    def space(self) -> tuple[dp.Domain, dp.Metric]:
        """The domain of tables with this schema and these bounds, and the metric of units."""
        return table_domain(self.tables), metric_of_units()

    def derived(self, relation: Relation, tables: Tables) -> Table:
        """Return a table whose plan goes on from this one's. Nothing runs."""
        return replace(self, relation=relation, tables=tables)

    def with_tables(self, **others: Table) -> Table:
        """Return this table with others of the same units, which queries may join to it.

        They are one dataset: neighbours differ by all rows of a unit, in all of these tables. So
        one budget protects a unit in all of them. :func:`.make_private_join` joins them.

        :param others: by name; of the same connection, with as many columns of the unit, in the
            same types. They may be truncated, or have fewer rows and columns than what was scanned
        :raises InvalidTypeError, InvalidValueError: naming the argument

        :example: see :func:`.make_private_join`
        """
        schema, known = self.tables.schema, dict(self.tables.others)
        kinds = list(map(schema.kind, schema.unit))
        for name, one in others.items():
            if type(one) is not Table:
                raise InvalidTypeError(
                    f"{name} must be of oc.tables.scan(...), found {type(one).__name__}"
                )
            one._check_process()
            theirs = one.tables.schema
            if not schema.unit or kinds != list(map(theirs.kind, theirs.unit)):
                raise InvalidTypeError(
                    f"{name} must have the unit of the table ({', '.join(schema.unit) or 'a row'}):"
                    " as many columns, at least one, in the same types; its unit is "
                    f"{', '.join(theirs.unit) or 'a row'}"
                )
            if self._engine.beside(one._engine) is None:
                raise InvalidValueError(
                    f"{name} must be of the same connection, and neither snapshot=True nor "
                    "materialize=True on PostgreSQL: one statement reads both"
                )
            known[column_name(others=name)] = replace(one.tables, others=())
        after = replace(self.tables, others=tuple(sorted(known.items())))
        return replace(self, tables=after, _others={**self._others, **others})

    def joined(
        self, name: str, node: Callable[[Relation, Relation], Relation], tables: Tables
    ) -> Table:
        """Return a table whose plan goes on from this one's, and that of another. Nothing runs."""
        other = self._others[name]
        engine, held = self._engine.beside(other._engine), self._held + other._held
        assert engine is not None
        relation = node(self.relation, other.relation)
        return replace(self, _engine=engine, relation=relation, tables=tables, _held=held)

    def ask(self, aggregate: Aggregate) -> Rows:
        """Run one statement in the engine, and return its rows. For mechanisms only."""
        return self.engine().ask(self.relation, aggregate)

    def engine(self) -> Engine:
        """Return the engine. For mechanisms only."""
        self._check_process()
        return self._engine

    def materialized(self) -> Table:
        """Return the same table, stored by the engine until it is freed."""
        return table_of(self.engine().store(self.relation), self.tables, self._others)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ForkedError

    def __repr__(self) -> str:
        return f"Table({self.tables})"

    def __reduce__(self) -> Any:
        raise InvalidTypeError("a table holds a connection to sensitive data: scan it again")


def table_given(tables: Tables, table: Table) -> Table:
    """Return the argument of a transformation if it is a table of its domain, or raise."""
    if type(table) is not Table or table.tables != tables:
        found = repr(table) if type(table) is Table else type(table).__name__
        raise InvalidTypeError(f"arg must be Table({tables}), found {found}")
    return table


def table_of(
    stored: Stored,
    tables: Tables,
    others: Mapping[str, Table] = MappingProxyType({}),
) -> Table:
    """Return a table of what is stored, which is dropped when nobody needs it."""
    scan = Scan(stored.reference, tables.schema, stored.fixed)
    finalize(stored, _drop, stored.drop)
    return Table(stored.engine, scan, tables, (stored,), others)


def _drop(stored: Callable[[], object]) -> None:
    """Drop a stored table; the connection may be closed already."""
    with suppress(Exception):
        stored()


# Privacy units of tables: how many units are protected together.


def unit_of(*, units: int = 1) -> tuple[dp.Metric, int]:
    """Return the privacy unit of a context on a table: all rows of some units, such as persons.

    Neighbouring tables differ by adding or removing at most so many units, each with any number of
    rows. The column of the unit is that of :func:`.scan`. A bound on the rows of a unit is no part
    of the privacy unit: ``truncate`` in a query enforces it.

    ``dp.unit_of(contributions=1, identifier="person")`` is the same for a table whose unit is the
    column ``person``. It needs Polars. ``dp.unit_of(contributions=1)`` is the same for a table in
    which each row is a unit (``oc.tables.ROW``).

    :param units: number of units that are protected together; 1 protects each of them
    :return: a metric and a distance, for ``privacy_unit`` of :func:`.concurrent_context`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.tables.unit_of(units=2)[1]
    2
    """
    return metric_of_units(), units_in(units=units)


# Tables as a kind of data.

_OF_IDENTIFIERS = ("SymmetricIdDistance", "ChangeOneIdDistance")  # which OpenDP makes with Polars


class TableKind(Kind):
    """A record is a row, and its value is what it has in some columns. The rows stay in an engine.

    A unit has rows in so many parts at most as a truncation or its own columns bound.
    """

    by_columns = in_engine = True

    def has(self, domain: dp.Domain) -> bool:
        """Return whether a domain is of tables."""
        return type(descriptor(domain)) is Tables

    def takes(self, data: Data) -> bool:
        """Return whether data are a table."""
        return isinstance(data, Table)

    def inferred(self, data: Table) -> tuple[Table, dp.Domain]:
        """Return a table and its domain."""
        return data, data.space[0]

    def unit(self, data: Table, metric: dp.Metric, distance: Distance) -> tuple[dp.Metric, Any]:
        """Return a privacy unit in terms of the metric of tables, or raise.

        If each row is a unit, the metric counts rows. Otherwise the identifier of OpenDP's metrics
        must be the table's column of the unit: then both count the same. Changing the rows of a
        unit is removing it and adding it.
        """
        if metric == metric_of_units():
            return metric, units_in(privacy_unit=distance)
        unit = data.tables.schema.unit
        known = [(dp.symmetric_distance(), 1), (dp.change_one_distance(), 2)] if not unit else []
        if metric.type in _OF_IDENTIFIERS and len(unit) == 1:
            known = [(dp.symmetric_id_distance(*unit), 1), (dp.change_one_id_distance(*unit), 2)]
        for one, factor in known:
            if metric == one:
                return metric_of_units(), factor * units_in(privacy_unit=distance)
        own = "own column " + ", ".join(map(repr, unit)) if unit else "rows"
        raise InvalidTypeError(
            f"privacy_unit ({checks.shown(metric)}) must count units by the table's {own}; pass "
            "oc.tables.unit_of(units=1), and bound the rows of a unit by truncate in the queries"
        )

    def domain_of_parts(self, domain: dp.Domain) -> dp.Domain:
        """Return the domain itself."""
        return domain

    def metric_of_parts(
        self, domain: dp.Domain, of: Of, metric: dp.Metric
    ) -> tuple[dp.Metric, int]:
        """Return the metric, and in how many parts a unit has rows at most; or raise."""
        if not isinstance(of, tuple):
            return super().metric_of_parts(domain, of, metric)
        tables, names = _named(domain, of, metric)
        return metric, tables.groups_at_most(frozenset(names))

    def cutter(self, domain: dp.Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
        """Return the function that keeps the rows of each part, by a predicate."""
        tables, names = _named(domain, of)
        values: dict[Any, list[Any]] = {key: [] for key in keys}
        seen: set[tuple[Any, ...]] = set()
        for value, key in owners.items():
            row = _row(tables, names, value)
            if row in seen:  # keys of classes of their own may be equal only once they are read
                raise InvalidValueError(
                    f"measurements has keys that are equal as values of {', '.join(names)}: "
                    f"{checks.shown(value)} and another; a row would be in both parts, so leave one"
                )
            seen.add(row)
            values[key].append(row)
        parts = 2 * MOST_VALUES * len(names)
        predicates = {
            key: checked(tables.schema, _any_of(names, rows), "partition", most=parts)
            for key, rows in values.items()
        }

        def cut(table: Table) -> dict[Any, Table]:
            known = table_given(tables, table)
            return {
                key: known.derived(Where(known.relation, predicate), tables)
                for key, predicate in predicates.items()
            }

        return cut

    def fixed(self, domain: dp.Domain, of: Of | None, data: Table) -> Table:
        """Return a table in which the parts of a unit do not change: as it is now, or the same.

        A unit that has the columns among its own is in the same part in each state of the table.
        """
        if self.bounds_over_time(domain, of):
            return data
        table = table_given(tables_of(domain, metric_of_units()), data)
        return table.materialized() if moving(table.relation) else table

    def bounds_over_time(self, domain: dp.Domain, of: Of | None) -> bool:
        """Return whether the bound on the parts of a unit holds for a table that changes.

        A truncation bounds them in each state of the table. A unit that has the columns among its
        own is in one part for ever.
        """
        return of is None or set(columns_in(of)) <= set(
            tables_of(domain, metric_of_units()).schema.unit
        )

    def values(self, domain: dp.Domain, of: Of | None, keys: Collection[Any]) -> list[Any]:
        """Return the values of the columns that public keys stand for, or raise."""
        tables, names = _named(domain, of)
        return [_row(tables, names, key, "keys") for key in keys]


def _named(
    domain: dp.Domain, of: Of | None, metric: dp.Metric | None = None
) -> tuple[Tables, tuple[str, ...]]:
    """Return the descriptor of a domain of tables, and the names of known columns; or raise."""
    tables = tables_of(domain, metric_of_units() if metric is None else metric)
    return tables, names_of("partition", tables.schema, columns_in(of), KEYS)


def _row(
    tables: Tables, names: tuple[str, ...], value: Any, argument: str = "measurements"
) -> tuple[Any, ...]:
    """Return public values of the columns; None stands for a missing value."""
    kinds = list(map(tables.schema.type_of, names))
    row = row_of(kinds, null=True, **{argument: value})
    return tuple(map(in_unit, kinds, row))


def _any_of(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Expression:
    """Return the condition of rows that have one of some values."""
    if len(rows) > MOST_VALUES:
        raise InvalidValueError(
            f"partition must have at most {MOST_VALUES} values in a part, found {len(rows)}; join "
            "the table with public rows, by then_public_join, and cut by the column that it adds"
        )
    if len(names) == 1:
        (name,) = names
        known = tuple(one for (one,) in rows if one is not None)
        found = [col(name).is_null()] if len(known) < len(rows) else []
        return _joined(or_, [*found, *([col(name).is_in(known)] if known else [])])
    return _joined(or_, [_joined(and_, list(map(_has, names, row))) for row in rows])


def _has(name: str, value: Any) -> Expression:
    return col(name).is_null() if value is None else col(name) == value


def _joined(
    connective: Callable[[Expression, Expression], Expression], parts: list[Expression]
) -> Expression:
    """Join conditions as a balanced tree, since engines parse by recursion."""
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(connective, pair) for pair in pairs]
    return parts[0]


TABLES = TableKind()
register(TABLES)
