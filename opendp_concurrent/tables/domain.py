"""The domain of tables and their metric.

A table is a finite multiset of rows, each of which belongs to a unit, such as a person. Adding or
removing a unit with all of its rows is distance 1; changing the rows of a unit is removing and
adding it, which is distance 2. What one unit can contribute is known to the domain, once a
truncation has bounded it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter, sqrt
from typing import Any, cast

from opendp.mod import Domain, Metric

from .. import _checks as checks
from .. import _opendp as _native
from ..errors import Data, InvalidTypeError, InvalidValueError
from .schema import KEYS, KINDS, Decimal, Schema, column_name, names_of, schema_of


@dataclass(frozen=True)
class GroupBound:
    """What one unit contributes at most to the groups of some columns.

    :ivar by: the columns
    :ivar groups: number of groups in which the unit has rows
    :ivar rows: number of its rows in each group
    """

    by: frozenset[str]
    groups: int
    rows: int


@dataclass(frozen=True)
class Norms:
    """Norms of what one unit, or one row, adds to integers: exact, and L2 squared."""

    l1: int
    l2_squared: int
    linf: int


@dataclass(frozen=True)  # no slots: OpenDP sets an attribute on descriptors
class Tables:
    """Descriptor of a domain of tables. Equal by value.

    :ivar schema: public columns and types
    :ivar rows: number of rows of each unit at most; None if it is not bounded
    :ivar groups: bounds on the groups of each unit
    :ivar others: names and descriptors of other tables of the same units, which may be joined
    """

    schema: Schema
    rows: int | None = None
    groups: frozenset[GroupBound] = frozenset()
    others: tuple[tuple[str, Tables], ...] = ()

    def on(self, schema: Schema) -> Tables:
        """Return the descriptor of tables whose rows are of ``schema``; bounds stay."""
        names = set(schema.names)
        kept = frozenset(one for one in self.groups if one.by <= names)
        return replace(self, schema=schema, groups=kept)

    def times(self, schema: Schema, each: int | None) -> Tables:
        """Return the descriptor of tables with at most so many rows in place of each; None: any."""
        if each is None:
            return replace(self, schema=schema, rows=None, groups=frozenset())
        rows = None if self.rows is None else each * self.rows
        groups = frozenset(replace(one, rows=each * one.rows) for one in self.groups)
        return replace(self, schema=schema, rows=rows, groups=groups)

    def at_most(self, rows: int, bound: GroupBound | None = None) -> Tables:
        """Return the descriptor of tables that are truncated further."""
        total = rows if self.rows is None else min(self.rows, rows)
        groups = self.groups if bound is None else self.groups | {bound}
        return replace(self, rows=total, groups=groups)

    def bounded_rows(self) -> int:
        """Return the number of rows of each unit at most, or raise."""
        if self.rows is None:
            raise InvalidValueError(
                "input_domain does not bound the rows of a unit, so the answer could change by any "
                "number; truncate first: query.truncate(rows) of a context, then_truncate or "
                "then_group_truncate"
            )
        return self.rows

    def groups_at_most(self, by: frozenset[str]) -> int:
        """Return in how many groups by these columns a unit has rows at most."""
        others = by - set(self.schema.unit)  # the values of the unit are the same in all its rows
        if not others:
            return 1
        # a group by more columns lies in one group by fewer
        return min([self.bounded_rows(), *(one.groups for one in self.groups if others <= one.by)])

    def contribution(self, by: frozenset[str], groups: int | None = None) -> Norms:
        """Return the norms of what a unit contributes to the counts of groups by these columns.

        :param groups: number of all groups, if it is known
        """
        total = self.bounded_rows()
        # a group by more columns lies in a group by fewer, whose rows are bounded
        each = min([total, *(one.rows for one in self.groups if one.by <= by)])
        count = min(total, self.groups_at_most(by))
        if groups is not None:
            count = min(count, groups)
        # the largest sums under 0 <= v_j <= each, at most `count` nonzero, sum at most `total`:
        # as many full groups as possible, since squares are convex
        full = min(count, total // each) if each else 0
        rest = min(each, total - full * each) if full < count else 0
        return Norms(full * each + rest, full * each**2 + rest**2, each if count else 0)

    def __str__(self) -> str:
        parts = [str(self.schema)]
        if self.rows is not None:
            parts.append(f"at most {self.rows} rows a unit")
        for one in sorted(self.groups, key=lambda one: (sorted(one.by), one.groups, one.rows)):
            names = ", ".join(map(json.dumps, sorted(one.by)))
            parts.append(f"at most {one.groups} groups a unit by {names}, {one.rows} rows in each")
        parts += (f"beside {json.dumps(name)} ({one})" for name, one in self.others)
        return "; ".join(parts)


def root_above(squared: int) -> float:
    """Return the square root of an integer, rounded up to a double."""
    if not squared < 2**1000:  # far beyond any budget, and near the largest double
        return inf
    root = sqrt(squared)
    while Fraction(root) ** 2 < squared:
        root = nextafter(root, inf)
    return root


@lru_cache(maxsize=256)
def table_domain(tables: Tables) -> Domain:
    """Return OpenDP's domain. Its identifier tells the whole descriptor: it is equal by value."""

    def member(data: Data) -> bool:
        return getattr(type(data), "is_table", False) and data.tables == tables

    made: Any = _native.user_domain(f"Table({tables})", member, tables)
    made.__opendp_dict__ = checks.Record("table_domain", record_of(tables))
    return cast(Domain, made)


def record_of(tables: Tables) -> dict[str, Any]:
    """Return a descriptor as plain values, for ``dp.serialize``."""
    return {
        "columns": [
            (name, kind.scale if isinstance(kind, Decimal) else KINDS[kind])
            for name, kind in tables.schema.columns
        ],
        "unit": tables.schema.unit[0] if len(tables.schema.unit) == 1 else tables.schema.unit,
        "rows": tables.rows,
        "groups": sorted((sorted(one.by), one.groups, one.rows) for one in tables.groups),
        "others": [(name, table_domain(one)) for name, one in tables.others],
    }


def domain_of_record(columns: Any, unit: Any, rows: Any, groups: Any, others: Any = ()) -> Domain:
    """Inverse of :func:`record_of`, for messages of anybody, or raise."""
    types, given = {name: kind for kind, name in KINDS.items()}, dict[str, type | Decimal]()
    for pair in checks.elements("columns", columns=columns):
        name, kind = checks.pair(columns=pair)
        if not isinstance(kind, int) and checks.text(columns=kind) not in types:
            raise InvalidTypeError(
                f"columns must have the types {', '.join(types)}, or the scale of a decimal"
            )
        one = Decimal(kind) if isinstance(kind, int) else types[kind]
        given[checks.text(columns=name)] = one
    schema, bounds = schema_of(given, unit), set()
    for one in checks.elements("groups", groups=groups):
        names, most, each = checks.elements("groups", groups=one)
        by = frozenset(names_of("groups", schema, names, KEYS))
        bounds.add(GroupBound(by, checks.whole(groups=most), checks.whole(groups=each)))
    total = None if rows is None else checks.whole(rows=rows)
    beside = dict[str, Tables]()
    for one in checks.elements("tables", others=others):
        name, domain = checks.pair(others=one)
        beside[column_name(others=name)] = tables_of(domain, units())
    others = tuple(sorted(beside.items()))
    return table_domain(Tables(schema, total, frozenset(bounds), others))


@lru_cache(maxsize=1)
def units() -> Metric:
    """Return the metric: the number of units added or removed, with all of their rows."""
    made: Any = _native.user_distance("units added or removed")
    made.__opendp_dict__ = checks.Record("table_metric", {})
    return cast(Metric, made)


def tables_of(input_domain: Domain, input_metric: Metric) -> Tables:
    """Return the descriptor of a domain of tables, or raise naming the argument."""
    found = _native.descriptor(input_domain)
    if type(found) is not Tables or input_domain != table_domain(found):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be of tables: use the space of "
            "oc.tables.scan(...), or the output_space of a transformation of tables"
        )
    if input_metric != units():
        raise InvalidTypeError(
            f"input_metric ({input_metric}) must count units added or removed, as the space of "
            "oc.tables.scan(...) does"
        )
    return found


def units_in(**argument: Any) -> int:
    """Return a distance of tables, a whole number of units, or raise."""
    ((_, value),) = argument.items()
    return value if type(value) is int and value >= 0 else checks.whole(**argument)
