"""What is asked of a table, as it is written: expressions on one row, and statistics.

An expression is checked against a schema when it is used, by ``typed.py``. It is spelled as in
Polars, and each operation has a defined value on every row: NULL where there is none, never an
error. NaN is read as NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError
from .schema import Type, column_name

MOST_VALUES = 1000  # of is_in, and of the bins of cut
Constant: TypeAlias = float | str | date | Decimal | np.number[Any]
Operand: TypeAlias = "Expression | Constant"
Method: TypeAlias = "Callable[[Expression, Operand], Expression]"


def _operator(operation: str, reflected: bool = False) -> Method:
    def method(self: Expression, other: Operand) -> Expression:
        pair = (self, expression(other))
        return Expression(operation, pair[::-1] if reflected else pair)

    return method


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """A value, or a condition, of one row. Made of :func:`.col`; immutable.

    It has the operators of Python: ``+ - * /``, which is NULL where the divisor is 0, ``//`` and
    ``%`` of integers, NULL where the divisor is below 1, comparisons, and ``& | ~`` for conditions.
    A constant stands for itself.

    :ivar operation: what it is: ``"column"``, ``"literal"``, or what is done with the operands
    :ivar operands: expressions
    :ivar given: public values that the operation needs
    """

    operation: str
    operands: tuple[Expression, ...] = ()
    given: Hashable = None

    def __repr__(self) -> str:
        if self.operation in ("column", "literal"):
            return f"{'col' if self.operation == 'column' else 'lit'}({self.given!r})"
        parts = [*map(repr, self.operands), *([] if self.given is None else [repr(self.given)])]
        return f"{self.operation}({', '.join(parts)})"

    def __bool__(self) -> NoReturn:
        raise InvalidTypeError(
            "an expression has no truth value before it meets a row: combine conditions with &, | "
            "and ~ instead of and, or and not, and put comparisons in parentheses"
        )

    # --- comparisons and conditions ------------------------------------------------------------

    __eq__ = _operator("==")  # type: ignore[assignment]
    __ne__ = _operator("!=")  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("<", "<=", ">", ">="))
    __hash__ = object.__hash__

    def __and__(self, other: Expression) -> Expression:
        return Expression("and", (self, _condition(other)))

    def __or__(self, other: Expression) -> Expression:
        return Expression("or", (self, _condition(other)))

    def __invert__(self) -> Expression:
        return Expression("not", (self,))

    def is_null(self) -> Expression:
        """Whether the value is missing: NULL or NaN."""
        return Expression("is_null", (self,))

    def between(self, lower: Operand, upper: Operand) -> Expression:
        """Whether the value is at least ``lower`` and at most ``upper``."""
        low, high = expression(lower, "lower"), expression(upper, "upper")
        return (self >= low) & (self <= high)

    def is_in(self, values: Iterable[Constant]) -> Expression:
        """Whether the value is one of at most 1,000 constants; for more, join with public rows."""
        found = checks.sequence("constants", values=values)
        return Expression("is_in", (self,), tuple(_constant(one, "values") for one in found))

    # --- numbers -------------------------------------------------------------------------------

    __add__, __sub__, __mul__, __truediv__, __floordiv__ = map(
        _operator, ("+", "-", "*", "/", "//")
    )
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(_operator, ("+", "-", "*", "/"), [True] * 4)

    def __neg__(self) -> Expression:
        return 0 - self

    def __mod__(self, other: Operand) -> Expression:
        quotient: Expression = self // other
        return self - quotient * expression(other)

    def abs(self) -> Expression:
        """Return the absolute value."""
        return when(self < 0).then(-self).otherwise(self)

    def clip(self, lower: Constant, upper: Constant) -> Expression:
        """Return the value, or the bound that is next to it. Bounds are public constants."""
        return Expression("clip", (self,), (_constant(lower, "lower"), _constant(upper, "upper")))

    def cut(
        self,
        breaks: Iterable[Any],
        labels: Iterable[str] | None = None,
        *,
        left_closed: bool = False,
    ) -> Expression:
        """Return the bin of the value between public breaks: its label, or its number from 0 on.

        :param breaks: increasing; at most 1,000
        :param labels: texts, one more than breaks; numbers if left out
        :param left_closed: whether a break belongs to the bin above it, and not below
        """
        found = checks.sequence("breaks", breaks=breaks)
        edges = tuple(_constant(one, "breaks") for one in found)
        names = None if labels is None else tuple(checks.sequence("texts", labels=labels))
        closed = checks.flag(left_closed=left_closed)
        return Expression("cut", (self,), (edges, names, closed))

    # --- texts ---------------------------------------------------------------------------------

    def starts_with(self, prefix: str) -> Expression:
        """Whether a text begins with a public one."""
        begin = checks.text(prefix=prefix)
        # texts are in the order of their code points; the last one of a prefix may have no next
        head = begin.rstrip("\U0010ffff")
        if not head:
            return self >= begin
        after = ord(head[-1]) + 1
        return (self >= begin) & (self < head[:-1] + chr(0xE000 if after == 0xD800 else after))

    def lower(self) -> Expression:
        """Return a text with small letters in place of A to Z, and of no others."""
        return Expression("lower", (self,))

    def length(self) -> Expression:
        """Return the number of characters of a text."""
        return Expression("length", (self,))

    # --- any type ------------------------------------------------------------------------------

    def fill_null(self, value: Operand) -> Expression:
        """Return the value, or another one where it is missing."""
        return Expression("fill_null", (self, expression(value, "value")))

    def cast(self, kind: Type) -> Expression:
        """Return the value in another type: int, float, str, bool, date or datetime, or a decimal.

        NULL where it has none, such as of a text that is no number. A float or a decimal loses its
        fraction as an integer. An integer or a decimal becomes a decimal with more digits.
        """
        return Expression("cast", (self,), kind)

    @property
    def dt(self) -> DateParts:
        """Parts of a date or a timestamp."""
        return DateParts(self)


def _part(name: str, text: str) -> Callable[[DateParts], Expression]:
    def method(self: DateParts) -> Expression:
        return Expression("part", (self._of,), name)

    method.__name__, method.__doc__ = name, text
    return method


@dataclass(frozen=True, slots=True, repr=False)
class DateParts:
    """Parts of a date or a timestamp, as integers. NULL outside of the years 1 to 9999."""

    _of: Expression

    year = _part("year", "Return the year.")
    month = _part("month", "Return the month, from 1 on.")
    day = _part("day", "Return the day of the month.")
    week = _part("week", "Return the week of ISO 8601, from 1 to 53.")
    weekday = _part("weekday", "Return the day of the week, from Monday, which is 1, to Sunday.")
    hour = _part("hour", "Return the hour of a timestamp, from 0 to 23.")
    minute = _part("minute", "Return the minute of a timestamp, from 0 to 59.")

    def date(self) -> Expression:
        """Return the day of a timestamp."""
        return self._of.cast(date)


@dataclass(frozen=True, slots=True, repr=False)
class When:
    """Conditions and values so far, and a condition that has no value yet."""

    _operands: tuple[Expression, ...]

    def then(self, value: Operand) -> Then:
        """Return the value where the condition holds, and none of those before."""
        return Then("case", (*self._operands, expression(value, "value")))


class Then(Expression):
    """The value of the first condition that holds; NULL if none does."""

    __slots__ = ()

    def when(self, condition: Expression) -> When:
        """Add a condition."""
        return When((*self.operands, _condition(condition, "condition")))

    def otherwise(self, value: Operand | None) -> Expression:
        """Return another value where no condition holds."""
        more = () if value is None else (expression(value, "value"),)
        return Expression("case", (*self.operands, *more))


def col(name: str) -> Expression:
    """Return a column of a table, to make conditions and new columns with.

    Every operation has a value on every row. A comparison with NULL does not hold, and its negation
    holds; other operations give NULL on NULL. NaN is read as NULL. An integer beyond 64 bits is
    NULL; so is an operand of float arithmetic beyond 1e150, and one below 1e-150 is 0 in products
    and quotients. A column of Booleans is a condition. Constants must be of the column's type.

    :param name: name of the column
    :return: an expression, with the operators of Python and the methods of :class:`.Expression`
    :raises InvalidTypeError, InvalidValueError: if it is no name

    :example:

    >>> col = oc.tables.col
    >>> adults = (col("age") >= 18) & ~col("region").is_null()
    >>> speed = col("distance") / col("minutes").clip(1, 1000) * 60
    """
    return Expression("column", (), column_name(name=name))


def lit(value: Constant) -> Expression:
    """Return a public constant as an expression: a number, a text, a Boolean, a date or timestamp.

    :raises InvalidTypeError: if it is none of these

    :example:

    >>> vat = oc.tables.lit(19) * oc.tables.col("cents") // 100
    """
    return Expression("literal", (), _constant(value, "value"))


def when(condition: Expression) -> When:
    """Begin a choice between values: ``when(...).then(...).when(...).then(...).otherwise(...)``.

    :param condition: an expression that holds or does not
    :raises InvalidTypeError: if it is no expression

    :example:

    >>> col, when = oc.tables.col, oc.tables.when
    >>> fare = when(col("age") < 6).then(0).when(col("age") < 16).then(120).otherwise(240)
    """
    return When((_condition(condition, "condition"),))


def expression(value: Operand, name: str = "the constant") -> Expression:
    """Return an expression itself, or that of a constant; or raise."""
    return (
        value
        if isinstance(value, Expression)
        else Expression("literal", (), _constant(value, name))
    )


def _constant(value: Any, name: str = "the constant") -> Hashable:
    """Return a value that a column can be compared with, as one of Python's own; or raise."""
    value = checks.own_number(value)
    if value is None:
        raise InvalidTypeError(f"{name} cannot be None: use is_null()")
    if not isinstance(value, (int, float, str, date, Decimal)):
        raise InvalidTypeError(
            f"{name} must be an int, a float, a Decimal, a text, a Boolean, a date or a timestamp, "
            f"found {type(value).__name__}"
        )
    found: Hashable = checks.plain(value)
    return found


def _condition(value: Expression, name: str = "the predicate") -> Expression:
    if not isinstance(value, Expression):
        raise InvalidTypeError(
            f"{name} must be made of oc.tables.col(...), found {type(value).__name__}; "
            "put parentheses around each comparison, because & and | bind more tightly"
        )
    return value


# Statistics of a column, by name: of all rows, or of those of a unit.

Statistic: TypeAlias = Literal[
    "count", "sum", "mean", "variance", "stdev", "count_distinct", "min", "max"
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A statistic that is asked together with others.

    :ivar statistic: ``"count"`` of rows or ``"sum"``; for :func:`.make_table_answers` also
        ``"mean"``, ``"variance"`` or ``"stdev"``; for :func:`.make_per_unit` also
        ``"count_distinct"``, ``"min"`` or ``"max"``
    :ivar column: of integers or floats; None for a count
    :ivar bounds: lower and upper bound, as for :func:`.make_table_sum`
    :ivar quantum: for floats only: values are rounded to multiples of it; for a mean, a variance or
        a deviation about a millionth of the larger bound if left out
    """

    statistic: Statistic
    column: str | None = None
    bounds: tuple[float, float] | None = None
    quantum: float | None = None


checks.sent(Answer, "table_answer")(Answer)  # what it is made of is checked where it is asked


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
