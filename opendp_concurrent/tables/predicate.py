"""Predicates on rows: each one holds or does not hold, also where values are missing.

A comparison with NULL does not hold, and so its negation holds. This differs from SQL, where both
are unknown. NaN is read as NULL.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

from ..arguments import checks
from ..arguments.plain import plain
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Argument
from .schema import Schema, column_name, value_of

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MOST_VALUES = 1000  # of is_in
MOST_NODES = 1000
MOST_DEPTH = 100  # engines parse by recursion


class Predicate:
    """A condition on one row. Combine conditions with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def __and__(self, other: Any) -> Predicate:
        return Both("and", self, _predicate(other))

    def __or__(self, other: Any) -> Predicate:
        return Both("or", self, _predicate(other))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError(
            "a predicate has no truth value before it meets a row: combine predicates with &, | "
            "and ~ instead of and, or and not, and put comparisons in parentheses"
        )


@dataclass(frozen=True, slots=True)
class Other:
    """The name of a column that another one is compared with."""

    name: str


@dataclass(frozen=True, slots=True)
class Compare(Predicate):
    """A column compared with a constant or with another column; false on NULL."""

    column: str
    comparison: str
    value: Argument


@dataclass(frozen=True, slots=True)
class IsIn(Predicate):
    """A column that has one of some constants; false on NULL."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IsNull(Predicate):
    """A column that has no value: NULL or NaN."""

    column: str


@dataclass(frozen=True, slots=True)
class Both(Predicate):
    """Two predicates, combined by ``"and"`` or ``"or"``."""

    connective: str
    left: Predicate
    right: Predicate


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """The negation of a predicate."""

    of: Predicate


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of a table, by its name. Comparisons with it make predicates."""

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "==", _constant(other))

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]
        return Compare(self.name, "!=", _constant(other))

    def __lt__(self, other: Any) -> Predicate:
        return Compare(self.name, "<", _constant(other))

    def __le__(self, other: Any) -> Predicate:
        return Compare(self.name, "<=", _constant(other))

    def __gt__(self, other: Any) -> Predicate:
        return Compare(self.name, ">", _constant(other))

    def __ge__(self, other: Any) -> Predicate:
        return Compare(self.name, ">=", _constant(other))

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError(
            "a column has no truth value before it meets a row: compare it, with parentheses "
            "around each comparison, and combine predicates with &, | and ~"
        )

    def is_null(self) -> Predicate:
        """Whether the value is missing: NULL or NaN."""
        return IsNull(self.name)

    def between(self, lower: Any, upper: Any) -> Predicate:
        """Whether the value is at least ``lower`` and at most ``upper``."""
        low, high = _constant(lower, "lower"), _constant(upper, "upper")
        return Both("and", Compare(self.name, ">=", low), Compare(self.name, "<=", high))

    def is_in(self, values: Argument) -> Predicate:
        """Whether the value is one of at most 1,000 constants; for more, join with public rows."""
        found = tuple(
            _constant(one, "values") for one in checks.sequence("constants", values=values)
        )
        if len(found) > MOST_VALUES:
            raise InvalidValueError(
                f"values must be at most {MOST_VALUES}, found {len(found)}; use then_public_join"
            )
        return IsIn(self.name, found)


def column(name: str) -> Column:
    """Return a column of a table, to make a predicate with.

    A predicate holds for a row or does not, also if values are missing: a comparison with NULL does
    not hold, and its negation holds. NaN is read as NULL. Constants must be of the column's type.

    :param name: name of the column
    :return: a column, which has the comparisons of Python, ``is_null()``, ``between(lower, upper)``
        and ``is_in(values)``
    :raises InvalidTypeError, InvalidValueError: if it is no name

    :example:

    >>> column = oc.tables.column
    >>> adults = (column("age") >= 18) & ~column("region").is_null()
    """
    return Column(column_name(name=name))


def _constant(value: Argument, name: str = "the constant") -> Any:
    """Return a value that a column can be compared with, or raise."""
    if type(value) is Column:
        return Other(value.name)
    if value is None:
        raise InvalidTypeError(f"{name} cannot be None: use is_null()")
    if not checks.is_a(value, int, float, str, date):
        raise InvalidTypeError(
            f"{name} must be an int, a float, a text, a Boolean or a date, found "
            f"{type(value).__name__}"
        )
    return plain(value)


def _predicate(value: Argument) -> Predicate:
    if not checks.is_a(value, Predicate):
        raise InvalidTypeError(
            f"the predicate must be made of oc.tables.column(...), found {type(value).__name__}; "
            "put parentheses around each comparison, because & and | bind more tightly"
        )
    found: Predicate = value
    return found


def checked(schema: Schema, predicate: Any) -> Predicate:
    """Return a predicate whose constants are of Python's own classes, or raise."""
    if not checks.is_a(predicate, Predicate):
        raise InvalidTypeError(
            "predicate must be made of oc.tables.column(...), found "
            f"{type(predicate).__name__}; a function or a text of SQL cannot be shown to be "
            "deterministic and total"
        )
    budget = iter(range(MOST_NODES))
    found: Predicate = predicate
    return _checked(schema, found, budget, 0)


def _checked(schema: Schema, one: Predicate, budget: Iterator[int], depth: int) -> Predicate:
    if next(budget, None) is None or depth > MOST_DEPTH:
        raise InvalidValueError(
            f"predicate must have at most {MOST_NODES} parts, nested at most {MOST_DEPTH} deep; "
            "use is_in, or several where"
        )
    if type(one) is Both:
        left = _checked(schema, one.left, budget, depth + 1)
        return Both(one.connective, left, _checked(schema, one.right, budget, depth + 1))
    if type(one) is Not:
        return Not(_checked(schema, one.of, budget, depth + 1))
    if type(one) is IsNull:
        schema.kind(one.column, "predicate")
        return one
    if type(one) is IsIn:
        kind = schema.kind(one.column, "predicate")
        return IsIn(one.column, tuple(value_of(kind, predicate=each) for each in one.values))
    if type(one) is Compare and one.comparison in COMPARISONS:
        return Compare(one.column, one.comparison, _other_side(schema, one))
    raise InvalidTypeError(
        f"predicate must be made of oc.tables.column(...), found {type(one).__name__}"
    )


def _other_side(schema: Schema, one: Compare) -> Any:
    kind = schema.kind(one.column, "predicate")
    if type(one.value) is not Other:
        return value_of(kind, predicate=one.value)
    if schema.kind(one.value.name, "predicate") is not kind:
        raise InvalidTypeError(
            f"predicate compares the columns {one.column!r} and {one.value.name!r}, which must be "
            "of one type"
        )
    return one.value
