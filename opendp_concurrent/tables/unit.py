"""Privacy units of tables: how many units are protected together."""

from __future__ import annotations

from opendp.metrics import (
    change_one_distance,
    change_one_id_distance,
    symmetric_distance,
    symmetric_id_distance,
)
from opendp.mod import Metric

from ..arguments import checks
from ..errors import InvalidTypeError
from ..types import Distance
from .domain import units as metric_of_units
from .domain import units_in
from .table import Table

_OF_IDENTIFIERS = ("SymmetricIdDistance", "ChangeOneIdDistance")  # which OpenDP makes with Polars


def unit_of(*, units: int = 1) -> tuple[Metric, int]:
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


def unit_on(table: Table, metric: Metric, distance: Distance) -> tuple[Metric, int]:
    """Return a privacy unit in terms of the metric of tables, or raise.

    If each row is a unit, the metric counts rows. Otherwise the identifier of OpenDP's metrics must
    be the table's column of the unit: then both count the same. Changing the rows of a unit is
    removing it and adding it.
    """
    if metric == metric_of_units():
        return metric, units_in(privacy_unit=distance)
    unit = table.tables.schema.unit
    known = [(symmetric_distance(), 1), (change_one_distance(), 2)] if not unit else []
    if metric.type in _OF_IDENTIFIERS and len(unit) == 1:
        known = [(symmetric_id_distance(*unit), 1), (change_one_id_distance(*unit), 2)]
    for one, factor in known:
        if metric == one:
            return metric_of_units(), factor * units_in(privacy_unit=distance)
    own = "own column " + ", ".join(map(repr, unit)) if unit else "rows"
    raise InvalidTypeError(
        f"privacy_unit ({checks.shown(metric)}) must count units by the table's {own}; pass "
        "oc.tables.unit_of(units=1), and bound the rows of a unit by truncate in the queries"
    )
