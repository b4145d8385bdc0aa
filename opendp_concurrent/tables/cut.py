"""Parts of a table by public values of columns: one predicate for each part. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from opendp.mod import Domain, Metric

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from .domain import Tables, tables_of, units
from .plan import Where
from .predicate import MOST_VALUES, Both, Compare, IsIn, IsNull, Predicate
from .schema import KEYS, names_of, value_of
from .steps import table_given
from .table import Table


def is_of_tables(input_domain: Domain) -> bool:
    """Whether a domain is of tables in an engine."""
    return type(getattr(input_domain, "descriptor", None)) is Tables


def parts_of_a_unit(columns: tuple[str, ...], input_domain: Domain, input_metric: Metric) -> int:
    """Return in how many parts by the values of columns a unit has rows at most, or raise."""
    tables = tables_of(input_domain, input_metric)
    names = names_of("partition", tables.schema, columns, KEYS)
    return tables.groups_at_most(frozenset(names))


def bounds_over_time(columns: tuple[str, ...], input_domain: Domain) -> bool:
    """Return whether the bound on the parts of a unit holds for a table that changes."""
    return tables_of(input_domain, units()).bounds_over_time(frozenset(columns))


def frozen(columns: tuple[str, ...], input_domain: Domain, table: Any) -> Any:
    """Return a table in which the parts of a unit do not change: as it is now, or the same.

    A unit that has the columns among its own is in the same part in each state of the table.
    """
    tables = tables_of(input_domain, units())
    if set(columns) <= set(tables.schema.unit):
        return table
    return table_given(tables, table).frozen()


def table_cutter(
    columns: tuple[str, ...],
    input_domain: Domain,
    owners: Mapping[Any, Any],
    keys: tuple[Any, ...],
) -> Callable[[Any], dict[Any, Table]]:
    """Return the function that cuts a table into the parts of public keys.

    :param owners: maps a value of the column, or a tuple of values, to the key of its part
    """
    tables = tables_of(input_domain, units())
    names = names_of("partition", tables.schema, columns, KEYS)
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
    predicates = {key: _any_of(names, rows) for key, rows in values.items()}

    def cut(table: Any) -> dict[Any, Table]:
        known = table_given(tables, table)
        return {
            key: known.derived(Where(known.relation, predicate), tables)
            for key, predicate in predicates.items()
        }

    return cut


def rows_of(
    columns: tuple[str, ...], input_domain: Domain, keys: Iterable[Any]
) -> list[tuple[Any, ...]]:
    """Return the values of the columns that public keys stand for, or raise."""
    tables = tables_of(input_domain, units())
    names = names_of("partition", tables.schema, columns, KEYS)
    return [_row(tables, names, key) for key in keys]


def _row(tables: Tables, names: tuple[str, ...], value: Any) -> tuple[Any, ...]:
    """Return public values of the columns; None stands for a missing value."""
    parts = (value,) if len(names) == 1 else value
    if not checks.is_a(parts, tuple) or len(parts) != len(names):
        raise InvalidTypeError(
            f"measurements has the key {checks.shown(value)}, which must be a tuple of "
            f"{len(names)} values, one for each of {', '.join(names)}"
        )
    return tuple(
        None if one is None else value_of(tables.schema.kind(name), measurements=one)
        for one, name in zip(parts, names, strict=True)
    )


def _any_of(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Predicate:
    """Return the predicate of rows that have one of some values."""
    if len(rows) > MOST_VALUES:
        raise InvalidValueError(
            f"partition must have at most {MOST_VALUES} values in a part, found {len(rows)}; join "
            "the table with public rows, by then_public_join, and cut by the column that it adds"
        )
    if len(names) == 1:
        (name,) = names
        known = tuple(one for (one,) in rows if one is not None)
        found: list[Predicate] = [IsNull(name)] if len(known) < len(rows) else []
        return _joined("or", [*found, *([IsIn(name, known)] if known else [])])
    return _joined("or", [_joined("and", list(map(_has, names, row))) for row in rows])


def _has(name: str, value: Any) -> Predicate:
    return IsNull(name) if value is None else Compare(name, "==", value)


def _joined(connective: str, parts: list[Predicate]) -> Predicate:
    """Join predicates as a balanced tree, since engines parse by recursion."""
    while len(parts) > 1:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [reduce(lambda left, right: Both(connective, left, right), pair) for pair in pairs]
    return parts[0]
