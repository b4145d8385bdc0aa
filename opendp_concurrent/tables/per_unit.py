"""A table with one row for each unit, such as persons from their visits, and what fills it.

The row of a unit is a function of the unit's own rows, so the distance in units does not grow, and
nothing has to be truncated before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime

from opendp.mod import Domain, Metric, Transformation

from .. import _checks as checks
from .. import _opendp as _native
from ..composition import constructor
from ..errors import InvalidTypeError, InvalidValueError
from . import plan as nodes
from . import schema as schemas
from .domain import tables_of
from .numbers import Answer, quantised
from .steps import step

OF_UNIT = ("count", "count_distinct", "sum", "min", "max")
ORDERED = (int, float, str, date, datetime)  # whose smallest and largest values engines agree on


def count() -> Answer:
    """Return the number of rows: of each unit, for :func:`.make_per_unit`."""
    return Answer("count")


def count_distinct(column: str) -> Answer:
    """Return the number of different values of a column, for :func:`.make_per_unit`."""
    return Answer("count_distinct", column)


def sum(  # noqa: A001 - the name in SQL and Polars, as of min and max
    column: str, bounds: tuple[float, float], quantum: float | None = None
) -> Answer:
    """Return the sum of a column, for :func:`.make_per_unit`; the sum is clamped to the bounds.

    :param column: of integers, decimals or floats; a missing value adds 0
    :param bounds: lower and upper bound of the sum
    :param quantum: for floats only: each value is rounded to a multiple of it, and clamped to 2^51
        of them
    """
    return Answer("sum", column, bounds, quantum)


def min(column: str) -> Answer:  # noqa: A001
    """Return the smallest value of a column, for :func:`.make_per_unit`; NULL if there is none."""
    return Answer("min", column)


def max(column: str) -> Answer:  # noqa: A001
    """Return the largest value of a column, for :func:`.make_per_unit`; NULL if there is none."""
    return Answer("max", column)


@constructor
def make_per_unit(
    input_domain: Domain, input_metric: Metric, columns: Mapping[str, Answer]
) -> Transformation:
    """Return a table with one row for each unit: a table of persons from a table of visits.

    A unit without a row has none here either. Means, histograms and quantiles over persons then
    need no truncation, since each person has one row; and all of its rows count.

    Guarantee: the distance in units does not grow, and each unit has at most one row.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables whose units may have several rows
    :param input_metric: units added or removed
    :param columns: mapping from names to what the rows of a unit are made into:
        ``oc.tables.count()``, ``count_distinct(column)``, ``sum(column, bounds)``, ``min(column)``
        or ``max(column)``. The unit's columns are kept
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE stays AS SELECT range % 3 AS person, range * 10 AS cost FROM range(8)"
    ... )
    >>> stays = oc.tables.scan(connection, "stays", {"person": int, "cost": int}, "person")
    >>> columns = {"stays": oc.tables.count(), "cost": oc.tables.sum("cost", (0, 100))}
    >>> persons = oc.t.make_per_unit(*stays.space, columns)
    >>> total = persons >> oc.t.then_table_sum("cost", (0, 100))
    >>> total(stays), total.map(1)
    (260, 100)

    The sums are 90, 120 and 70; the second one is clamped to 100.
    """
    tables = tables_of(input_domain, input_metric)
    before, found = tables.schema, list[tuple[str, nodes.OfUnit]]()
    if not before.unit:
        raise InvalidValueError(
            "input_domain must have units of several rows: here each is one row; use with_columns"
        )
    for name, one in checks.mapping("names to counts, sums, min or max", columns=columns).items():
        found.append((schemas.column_name(columns=name), _of_unit(before, one)))
    if not found:
        raise InvalidValueError("columns must have at least one column")
    schema = before.keep(()).with_columns({name: one.kind for name, one in found})
    schemas.check_distinct("columns", (*before.unit, *(name for name, _ in found)))
    after = replace(tables, schema=schema, rows=1, groups=frozenset())
    return step(tables, after, lambda of: nodes.PerUnit(of, tuple(found), schema))


def _of_unit(schema: schemas.Schema, one: object) -> nodes.OfUnit:
    """Return what the rows of a unit are made into, or raise."""
    if type(one) is not Answer or one.statistic not in OF_UNIT:
        raise InvalidTypeError(
            "columns must be made by oc.tables.count(), count_distinct(...), sum(...), min(...) or "
            f"max(...), found {checks.shown(one)}"
        )
    if one.statistic == "count":
        return nodes.OfUnit("count", int)
    if one.statistic == "count_distinct":
        (name,) = schemas.names_of("columns", schema, [one.column], schemas.KEYS)
        return nodes.OfUnit("count_distinct", int, name)
    if one.statistic in ("min", "max"):
        (name,) = schemas.names_of("columns", schema, [one.column], ORDERED)
        return nodes.OfUnit(one.statistic, schema.type_of(name), name)
    value = quantised(schema, one.column, one.bounds, one.quantum)
    kind = schema.type_of(value.column)
    return nodes.OfUnit("sum", kind, value.column, value.ends, one.quantum)


then_per_unit = _native.to_then(make_per_unit)
