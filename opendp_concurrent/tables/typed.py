"""Expressions checked against a schema: each node has a type, and is total.

For each integer and float, an interval is known that has all of its values. It decides at build
time whether an overflow is possible, and whether a divisor can be 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from math import inf
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from .expression import MOST_VALUES, PARTS, Expression, Then
from .schema import KINDS, LARGEST, Schema, names_of, value_of

Reach = tuple[int | float, int | float]
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
MOST_NODES = 1000
MOST_DEPTH = 100  # engines parse by recursion
MOST_FLOAT, LEAST_FLOAT = 1e150, 1e-150  # whose products and quotients are normal doubles
WHOLE: Reach = (-LARGEST - 1, LARGEST)
NEVER_NULL = (*COMPARISONS, "is_null", "is_in", "and", "or", "not", "holds")
CASTS = {  # besides those from a type to itself
    (int, float),
    (int, str),
    (bool, int),
    (float, int),
    (str, int),
    (str, date),
    (date, str),
    (date, datetime),
    (datetime, date),
}
_REACH_OF_PART = {
    "year": (1, 9999),
    "month": (1, 12),
    "day": (1, 31),
    "week": (1, 53),
    "weekday": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
}


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with a type. Equal by value.

    The meaning of each operation is that of :class:`.Expression`, and of ``holds``: false on NULL.

    :ivar operation: as in an expression
    :ivar kind: type of the value
    :ivar of: operands
    :ivar given: public values, of the types of the operands
    :ivar reach: of a number, the ends of an interval that has all values
    """

    operation: str
    kind: type
    of: tuple[Node, ...] = ()
    given: Any = None
    reach: Reach | None = None


def checked(
    schema: Schema, condition: object, name: str = "predicate", *, most: int = MOST_NODES
) -> Node:
    """Return a condition that holds or does not, never NULL, or raise naming the argument."""
    return _holding(checked_value(schema, condition, name, most=most), name)


def checked_value(schema: Schema, value: object, name: str, *, most: int = MOST_NODES) -> Node:
    """Return an expression with types, whose constants are of Python's own classes, or raise."""
    if not isinstance(value, Expression):
        raise InvalidTypeError(
            f"{name} must be made of oc.tables.col(...), found {type(value).__name__}; a function "
            "or a text of SQL cannot be shown to be deterministic and total"
        )
    return _Checker(schema, name, most).node(value, 0)


class _Checker:
    """Checks one expression."""

    def __init__(self, schema: Schema, name: str, most: int) -> None:
        self._schema, self._name, self._most = schema, name, most
        self._budget: Iterator[int] = iter(range(most))

    def node(self, one: Expression, depth: int) -> Node:
        """Return an expression with types, or raise."""
        if type(one) not in (Expression, Then):
            raise self._no_expression(type(one).__name__)
        if one.operation == "column":
            (name,) = names_of(self._name, self._schema, [one.given], tuple(KINDS))
            kind = self._schema.kind(name)
            return Node("column", kind, (), name, _reach(kind))
        if one.operation == "literal":
            return self._literal(one, _kind_of_constant(one.given))
        if next(self._budget, None) is None or depth > MOST_DEPTH:
            raise InvalidValueError(
                f"{self._name} must have at most {self._most} parts, nested at most {MOST_DEPTH} "
                "deep; use is_in, or several where or with_columns"
            )
        count, rule = _RULES.get(one.operation, (0, None))
        if rule is None or not (count == len(one.operands) or count == 0 < len(one.operands) - 1):
            raise self._no_expression(checks.shown(one.operation))
        return rule(self, one, depth + 1)

    def _no_expression(self, found: str) -> InvalidTypeError:
        return InvalidTypeError(f"{self._name} must be made of oc.tables.col(...), found {found}")

    def _literal(self, one: Expression, kind: type) -> Node:
        value = value_of(kind, **{self._name: one.given})
        return Node("literal", kind, (), value, (value, value) if kind in (int, float) else None)

    def _condition(self, one: Expression, depth: int) -> Node:
        return _holding(self.node(one, depth), self._name)

    def _alike(
        self, operands: tuple[Expression, ...], depth: int, *, numbers: bool = False
    ) -> list[Node]:
        """Return operands of one type; constants take the type of the others.

        :param numbers: whether they must be numbers; integers then become floats beside floats
        """
        found = [None if one.operation == "literal" else self.node(one, depth) for one in operands]
        kinds = {one.kind for one in found if one is not None}
        constants = {_kind_of_constant(one.given) for one in operands if one.operation == "literal"}
        if not kinds:
            kinds = constants
        if numbers:
            if not kinds <= {int, float}:
                raise InvalidTypeError(f"{self._name} has arithmetic, which needs numbers")
            if kinds | constants == {int, float}:
                kinds = {float}
        if len(kinds) > 1 and not numbers:
            names = ", ".join(sorted(KINDS[one] for one in kinds))
            raise InvalidTypeError(
                f"{self._name} has operands of {names}, which must be of one type; use cast"
            )
        (kind,) = kinds
        return [
            self._literal(given, kind) if one is None else as_kind(one, kind)
            for one, given in zip(found, operands, strict=True)
        ]

    # --- operations ----------------------------------------------------------------------------

    def comparison(self, one: Expression, depth: int) -> Node:
        """Return a comparison, which is false on NULL."""
        return Node(one.operation, bool, tuple(self._alike(one.operands, depth)))

    def connective(self, one: Expression, depth: int) -> Node:
        """Return a conjunction, a disjunction or a negation of conditions."""
        found = tuple(self._condition(each, depth) for each in one.operands)
        return Node(one.operation, bool, found)

    def is_null(self, one: Expression, depth: int) -> Node:
        """Return whether a value is NULL."""
        return Node("is_null", bool, (self.node(one.operands[0], depth),))

    def is_in(self, one: Expression, depth: int) -> Node:
        """Return whether a value is one of some constants."""
        own = self.node(one.operands[0], depth)
        return Node("is_in", bool, (own,), self._constants(own.kind, one.given))

    def arithmetic(self, one: Expression, depth: int) -> Node:
        """Return a sum, a difference or a product."""
        left, right = pair = tuple(self._alike(one.operands, depth, numbers=True))
        if left.kind is float:
            return Node(one.operation, float, pair, None, _reach(float))
        return Node(one.operation, int, pair, None, within(exact_reach(one.operation, left, right)))

    def quotient(self, one: Expression, depth: int) -> Node:
        """Return a quotient of floats, or an integer: the quotient rounded down."""
        pair = tuple(self._alike(one.operands, depth, numbers=True))
        if one.operation == "/":
            pair = tuple(as_kind(each, float) for each in pair)
            low, high = pair[1].reach or (0, 0)
            if not (low >= LEAST_FLOAT or high <= -LEAST_FLOAT):
                raise self._no_divisor("0; clip it, as in col('km') / col('minutes').clip(1, 1000)")
            return Node("/", float, pair, None, _reach(float))
        left, right = pair
        if left.kind is not int:
            raise InvalidTypeError(f"{self._name} has //, which is for integers; use / for floats")
        low, high = right.reach or (0, 0)
        if low < 1:
            raise self._no_divisor(
                "below 1; clip it, as in col('cents') // col('pieces').clip(1, 100)"
            )
        ends = [int(end) // int(by) for end in left.reach or WHOLE for by in (low, high)]
        return Node("//", int, pair, None, (min(ends), max(ends)))

    def _no_divisor(self, reason: str) -> InvalidValueError:
        return InvalidValueError(f"{self._name} has a division by what can be {reason}")

    def case(self, one: Expression, depth: int) -> Node:
        """Return the value of the first condition that holds."""
        count = len(one.operands) // 2
        conditions = [self._condition(each, depth) for each in one.operands[: 2 * count : 2]]
        others = one.operands[2 * count :]
        values = self._alike((*one.operands[1 : 2 * count : 2], *others), depth)
        pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
        return Node("case", values[0].kind, (*pairs, *values[count:]), None, _hull(values))

    def fill_null(self, one: Expression, depth: int) -> Node:
        """Return a value, or another one."""
        own, other = self._alike(one.operands, depth)
        return Node("fill_null", own.kind, (own, other), None, _hull([own, other]))

    def clip(self, one: Expression, depth: int) -> Node:
        """Return a value between bounds."""
        own = self.node(one.operands[0], depth)
        bounds = self._constants(own.kind, one.given)
        if own.kind not in (int, float, date, datetime) or not (
            len(bounds) == 2 and bounds[0] <= bounds[1]
        ):
            raise InvalidValueError(
                f"{self._name} has a clip, which is for numbers, dates and timestamps, to a lower "
                "bound and one that is not below it"
            )
        return Node("clip", own.kind, (own,), bounds, (bounds[0], bounds[1]) if own.reach else None)

    def cut(self, one: Expression, depth: int) -> Node:
        """Return the bin of a value, as a text or an integer."""
        own = self.node(one.operands[0], depth)
        breaks, labels, closed = checks.elements("values", **{self._name: one.given})
        edges = self._constants(own.kind, breaks)
        if not edges or any(not low < high for low, high in pairwise(edges)) or own.kind is bool:
            raise InvalidValueError(
                f"{self._name} has a cut, whose breaks must increase, at least one"
            )
        bins = len(edges) + 1
        if labels is None:
            return Node("cut", int, (own,), (edges, tuple(range(bins)), closed), (0, len(edges)))
        names = self._constants(str, labels)
        if len(names) != bins:
            raise InvalidValueError(
                f"{self._name} has a cut, which needs {bins} labels, one more than breaks"
            )
        return Node("cut", str, (own,), (edges, names, closed))

    def part(self, one: Expression, depth: int) -> Node:
        """Return a part of a date or timestamp."""
        own = self.node(one.operands[0], depth)
        kinds = (datetime,) if one.given in ("hour", "minute") else (date, datetime)
        if one.given not in PARTS or own.kind not in kinds:
            raise InvalidTypeError(
                f"{self._name} has a {one.given} of a column of type {KINDS[own.kind]}: parts are "
                "of dates and timestamps, those of a time of timestamps only"
            )
        return Node("part", int, (own,), one.given, _REACH_OF_PART[str(one.given)])

    def cast(self, one: Expression, depth: int) -> Node:
        """Return a value in another type."""
        given: object = one.given
        own = self.node(one.operands[0], depth)
        kind = next((one for one in KINDS if one is given), None)
        if kind is None or (kind is not own.kind and (own.kind, kind) not in CASTS):
            raise InvalidTypeError(
                f"{self._name} has a cast from {KINDS[own.kind]} to {checks.shown(given)}, which "
                "engines do differently; there are casts from int to float and str, from float, "
                "bool and str to int, between str and date, and between date and datetime"
            )
        return as_kind(own, kind)

    def _constants(self, kind: type, values: object) -> tuple[Any, ...]:
        found = checks.elements("values", **{self._name: values})
        if len(found) > MOST_VALUES + 1:
            raise InvalidValueError(
                f"{self._name} must have at most {MOST_VALUES} values in a place"
            )
        return tuple(value_of(kind, **{self._name: each}) for each in found)


# the number of operands, 0 for at least two; and the rule
_RULES: dict[str, tuple[int, Callable[[_Checker, Expression, int], Node]]] = {
    **dict.fromkeys(COMPARISONS, (2, _Checker.comparison)),
    **dict.fromkeys(("and", "or"), (2, _Checker.connective)),
    **dict.fromkeys(("+", "-", "*"), (2, _Checker.arithmetic)),
    **dict.fromkeys(("/", "//"), (2, _Checker.quotient)),
    "not": (1, _Checker.connective),
    "is_null": (1, _Checker.is_null),
    "is_in": (1, _Checker.is_in),
    "case": (0, _Checker.case),
    "fill_null": (2, _Checker.fill_null),
    "clip": (1, _Checker.clip),
    "cut": (1, _Checker.cut),
    "part": (1, _Checker.part),
    "cast": (1, _Checker.cast),
}


def as_kind(one: Node, kind: type) -> Node:
    """Return a node in another type."""
    if one.kind is kind:
        return one
    known = {(int, float): one.reach, (bool, int): (0, 1)}
    return Node("cast", kind, (one,), None, known.get((one.kind, kind), _reach(kind)))


def exact_reach(operation: str, left: Node, right: Node) -> Reach:
    """Return the interval of a sum, difference or product of integers, before any overflow."""
    (a, b), (c, d) = left.reach or WHOLE, right.reach or WHOLE
    if operation == "+":
        return a + c, b + d
    if operation == "-":
        return a - d, b - c
    ends = [x * y for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def within(reach: Reach) -> Reach:
    """Return the part of an interval that has 64 bits."""
    return min(max(reach[0], WHOLE[0]), LARGEST), max(min(reach[1], LARGEST), WHOLE[0])


def _hull(nodes: list[Node]) -> Reach | None:
    found = [one.reach for one in nodes if one.reach is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if found else None


def _reach(kind: type) -> Reach | None:
    return WHOLE if kind is int else (-inf, inf) if kind is float else None


def _holding(one: Node, name: str) -> Node:
    """Return a condition that is false on NULL."""
    if one.kind is not bool:
        raise InvalidTypeError(
            f"{name} must hold or not, found a value of type {KINDS[one.kind]}; compare it"
        )
    return one if one.operation in NEVER_NULL else Node("holds", bool, (one,))


def _kind_of_constant(value: object) -> type:
    """Return the type of the schema that a constant has."""
    return next(kind for kind in (bool, int, float, str, datetime, date) if isinstance(value, kind))
