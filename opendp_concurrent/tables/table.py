"""A table that stays in its engine: the value that transformations pass on. It holds no rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar
from weakref import finalize

from .. import _checks as checks
from .._opendp import dp
from ..errors import Distance, ForkedError, InvalidTypeError, InvalidValueError
from .domain import Tables, table_domain, units, units_in
from .domain import units as metric_of_units
from .engine import Engine, Rows, Stored
from .plan import Aggregate, Relation, Scan, moving
from .schema import column_name


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
        return table_domain(self.tables), units()

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
        for name, one in others.items():
            if type(one) is not Table:
                raise InvalidTypeError(
                    f"{name} must be of oc.tables.scan(...), found {type(one).__name__}"
                )
            one._check_process()
            if not schema.unit or one.tables.schema.unit_kinds != schema.unit_kinds:
                raise InvalidTypeError(
                    f"{name} must have the unit of the table ({', '.join(schema.unit) or 'a row'}):"
                    " as many columns, at least one, in the same types; its unit is "
                    f"{', '.join(one.tables.schema.unit) or 'a row'}"
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

    def frozen(self) -> Table:
        """Return the same table, which no longer changes: as it is, if it is stored already."""
        return self.materialized() if moving(self.relation) else self

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ForkedError

    def __repr__(self) -> str:
        return f"Table({self.tables})"

    def __reduce__(self) -> Any:
        raise InvalidTypeError("a table holds a connection to sensitive data: scan it again")


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

_OF_IDENTIFIERS = ("SymmetricIdDistance", "ChangeOneIdDistance")  # which OpenDP makes with Polars


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


def unit_on(table: Table, metric: dp.Metric, distance: Distance) -> tuple[dp.Metric, int]:
    """Return a privacy unit in terms of the metric of tables, or raise.

    If each row is a unit, the metric counts rows. Otherwise the identifier of OpenDP's metrics must
    be the table's column of the unit: then both count the same. Changing the rows of a unit is
    removing it and adding it.
    """
    if metric == metric_of_units():
        return metric, units_in(privacy_unit=distance)
    unit = table.tables.schema.unit
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
