"""Tables as a kind of data: parts by public values of columns, one predicate each. Nothing runs."""

from collections.abc import Callable, Collection
from functools import reduce
from operator import and_, or_
from typing import Any

from opendp.mod import Domain, Metric

from .. import _checks as checks
from .. import _opendp as _native
from ..data import Cut, Kind, Of, Owners, columns_in, register
from ..errors import Data, Distance, InvalidValueError
from .domain import Tables, tables_of, units
from .expressions import MOST_VALUES, Expression, col
from .plan import Where
from .schema import KEYS, in_unit, names_of, row_of
from .steps import table_given
from .table import Table, unit_on
from .typed import checked


class TableKind(Kind):
    """A record is a row, and its value is what it has in some columns. The rows stay in an engine.

    A unit has rows in so many parts at most as a truncation or its own columns bound.
    """

    by_columns = in_engine = True

    def has(self, domain: Domain) -> bool:
        """Return whether a domain is of tables."""
        return type(_native.descriptor(domain)) is Tables

    def takes(self, data: Data) -> bool:
        """Return whether data are a table."""
        return isinstance(data, Table)

    def inferred(self, data: Table) -> tuple[Table, Domain]:
        """Return a table and its domain."""
        return data, data.space[0]

    def unit(self, data: Table, metric: Metric, distance: Distance) -> tuple[Metric, Any]:
        """Return a privacy unit in terms of the metric of tables, or raise."""
        return unit_on(data, metric, distance)

    def domain_of_parts(self, domain: Domain) -> Domain:
        """Return the domain itself."""
        return domain

    def metric_of_parts(self, domain: Domain, of: Of, metric: Metric) -> tuple[Metric, int]:
        """Return the metric, and in how many parts a unit has rows at most; or raise."""
        if not isinstance(of, tuple):
            return super().metric_of_parts(domain, of, metric)
        tables, names = _named(domain, of, metric)
        return metric, tables.groups_at_most(frozenset(names))

    def cutter(self, domain: Domain, of: Of, owners: Owners, keys: tuple[Any, ...]) -> Cut:
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

    def fixed(self, domain: Domain, of: Of | None, data: Table) -> Table:
        """Return a table in which the parts of a unit do not change: as it is now, or the same.

        A unit that has the columns among its own is in the same part in each state of the table.
        """
        if self.bounds_over_time(domain, of):
            return data
        return table_given(tables_of(domain, units()), data).frozen()

    def bounds_over_time(self, domain: Domain, of: Of | None) -> bool:
        """Return whether the bound on the parts of a unit holds for a table that changes.

        A truncation bounds them in each state of the table. A unit that has the columns among its
        own is in one part for ever.
        """
        return of is None or set(columns_in(of)) <= set(tables_of(domain, units()).schema.unit)

    def values(self, domain: Domain, of: Of | None, keys: Collection[Any]) -> list[Any]:
        """Return the values of the columns that public keys stand for, or raise."""
        tables, names = _named(domain, of)
        return [_row(tables, names, key, "keys") for key in keys]


def _named(
    domain: Domain, of: Of | None, metric: Metric | None = None
) -> tuple[Tables, tuple[str, ...]]:
    """Return the descriptor of a domain of tables, and the names of known columns; or raise."""
    tables = tables_of(domain, units() if metric is None else metric)
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
