"""Expressions checked against a schema: each node has a type, and is total."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise, repeat
from typing import Any

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from . import schema as schemas
from .expressions import MOST_VALUES, Expression, Then, when

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
MOST_NODES = 1000
MOST_DEPTH = 100  # engines parse by recursion
DIGITS_OF_DECIMALS = 18  # after the point, of what 64 bits hold
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
PARTS_OF_TIMES = ("hour", "minute")
PARTS = ("year", "month", "day", "week", "weekday", *PARTS_OF_TIMES)


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with a type. Equal by value.

    The meaning of each operation is that of :class:`.Expression`, and of ``holds``: false on NULL.

    :ivar operation: as in an expression
    :ivar kind: type of the value
    :ivar of: operands
    :ivar given: public values, of the types of the operands
    :ivar scale: of an integer, the number of digits after the point of the decimal that it stands
        for: a multiple of 10^-scale
    """

    operation: str
    kind: type
    of: tuple[Node, ...] = ()
    given: Any = None
    scale: int = 0

    @property
    def type(self) -> schemas.Type:
        """The type of a column that has these values."""
        return schemas.Decimal(self.scale) if self.scale else self.kind


def checked(
    schema: schemas.Schema, condition: object, name: str = "predicate", *, most: int = MOST_NODES
) -> Node:
    """Return a condition that holds or does not, never NULL, or raise naming the argument."""
    return _holding(checked_value(schema, condition, name, most=most), name)


def checked_value(
    schema: schemas.Schema, value: object, name: str, *, most: int = MOST_NODES
) -> Node:
    """Return an expression with types, whose constants are of Python's own classes, or raise."""
    if not isinstance(value, Expression):
        raise InvalidTypeError(
            f"{name} must be made of oc.tables.col(...), found {type(value).__name__}; a function "
            "or a text of SQL cannot be shown to be deterministic and total"
        )
    return _Checker(schema, name, most).node(value, 0)


class _Checker:
    """Checks one expression."""

    def __init__(self, schema: schemas.Schema, name: str, most: int) -> None:
        self._schema, self._name, self._most = schema, name, most
        self._budget: Iterator[int] = iter(range(most))

    def node(self, one: Expression, depth: int) -> Node:
        """Return an expression with types, or raise."""
        if type(one) not in (Expression, Then):
            raise self._no_expression(type(one).__name__)
        if one.operation == "column":
            known = self._schema.type_of(one.given, self._name)
            kind = schemas.kind_of(known)
            return Node("column", kind, (), one.given, _scale(known))
        if one.operation == "literal":
            return self._literal(one, self._type_of_constant(one.given))
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

    def _literal(self, one: Expression, kind: schemas.Type) -> Node:
        value, own = schemas.value_of(kind, **{self._name: one.given}), schemas.kind_of(kind)
        return Node("literal", own, (), value, _scale(kind))

    def _type_of_constant(self, value: object, *, exact: bool = False) -> schemas.Type:
        """Return the type that a constant has.

        :param exact: whether a float stands for a decimal
        """
        kinds = (bool, int, float, str, datetime, date)
        kind = next((kind for kind in kinds if isinstance(value, kind)), None)
        if kind is None or (kind is float and exact):
            number = schemas.exact_of(**{self._name: value})
            for scale in range(DIGITS_OF_DECIMALS + 1):
                if (number * 10**scale).denominator == 1:
                    return schemas.Decimal(scale)
            raise self._too_many_digits()
        return kind

    def _too_many_digits(self) -> InvalidValueError:
        return InvalidValueError(
            f"{self._name} must have at most {DIGITS_OF_DECIMALS} digits after the point; cast to "
            "float, as in col('price').cast(float) * 1.19"
        )

    def _condition(self, one: Expression, depth: int) -> Node:
        return _holding(self.node(one, depth), self._name)

    def _alike(
        self, operands: tuple[Expression, ...], depth: int, *, numbers: bool = False
    ) -> list[Node]:
        """Return operands of one type; constants take the type of the others.

        Beside decimals, constants are decimals.

        :param numbers: whether they must be numbers; integers then become floats beside floats
        """
        found = [None if one.operation == "literal" else self.node(one, depth) for one in operands]
        kinds = {one.kind for one in found if one is not None}
        exact = kinds == {int} and any(one.scale for one in found if one is not None)
        types = [
            self._type_of_constant(one.given, exact=exact) if one.operation == "literal" else None
            for one in operands
        ]
        constants = {schemas.kind_of(one) for one in types if one is not None}
        if not kinds:
            kinds = constants
        if numbers:
            if not kinds <= {int, float}:
                raise InvalidTypeError(f"{self._name} has arithmetic, which needs numbers")
            if kinds | constants == {int, float}:
                kinds = {float}
        if len(kinds) > 1 and not numbers:
            names = ", ".join(sorted(schemas.KINDS[one] for one in kinds))
            raise InvalidTypeError(
                f"{self._name} has operands of {names}, which must be of one type; use cast"
            )
        (kind,) = kinds
        return [
            (one if one.kind is kind else as_kind(one, kind))
            if one is not None
            else self._literal(
                given, own if own is not None and kind is schemas.kind_of(own) else kind
            )
            for one, given, own in zip(found, operands, types, strict=True)
        ]

    def _aligned(self, operands: tuple[Expression, ...], depth: int, **options: bool) -> list[Node]:
        """Return operands of one type and, if they are integers, of one scale."""
        found = self._alike(operands, depth, **options)
        return list(map(rescaled, found, repeat(max(one.scale for one in found))))

    # --- operations ----------------------------------------------------------------------------

    def comparison(self, one: Expression, depth: int) -> Node:
        """Return a comparison, which is false on NULL."""
        return Node(one.operation, bool, tuple(self._aligned(one.operands, depth)))

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
        return Node("is_in", bool, (own,), self._constants(own.type, one.given))

    def arithmetic(self, one: Expression, depth: int) -> Node:
        """Return a sum, a difference or a product."""
        operands = self._alike if one.operation == "*" else self._aligned
        left, right = pair = tuple(operands(one.operands, depth, numbers=True))
        if left.kind is float:
            return Node(one.operation, float, pair)
        scale = left.scale + right.scale if one.operation == "*" else left.scale
        if scale > DIGITS_OF_DECIMALS:
            raise self._too_many_digits()
        return Node(one.operation, int, pair, None, scale)

    def quotient(self, one: Expression, depth: int) -> Node:
        """Return a quotient of floats, or an integer: the quotient rounded down."""
        if one.operation == "/":
            alike = self._alike(one.operands, depth, numbers=True)
            return Node("/", float, tuple(as_kind(each, float) for each in alike))
        pair = tuple(self._aligned(one.operands, depth, numbers=True))
        if pair[0].kind is not int:
            raise InvalidTypeError(
                f"{self._name} has // or %, which are for integers; use / for floats"
            )
        return Node("//", int, pair)

    def of_text(self, one: Expression, depth: int) -> Node:
        """Return a text in small letters, or its length."""
        own = self.node(one.operands[0], depth)
        if own.kind is not str:
            raise InvalidTypeError(f"{self._name} has a {one.operation}, which is of texts")
        return Node(one.operation, int if one.operation == "length" else str, (own,))

    def case(self, one: Expression, depth: int) -> Node:
        """Return the value of the first condition that holds."""
        count = len(one.operands) // 2
        conditions = [self._condition(each, depth) for each in one.operands[: 2 * count : 2]]
        others = one.operands[2 * count :]
        values = self._aligned((*one.operands[1 : 2 * count : 2], *others), depth)
        pairs = [part for pair in zip(conditions, values, strict=False) for part in pair]
        parts = (*pairs, *values[count:])
        return Node("case", values[0].kind, parts, None, values[0].scale)

    def fill_null(self, one: Expression, depth: int) -> Node:
        """Return a value, or another one."""
        own, other = self._aligned(one.operands, depth)
        return Node("fill_null", own.kind, (own, other), None, own.scale)

    def clip(self, one: Expression, depth: int) -> Node:
        """Return a value between bounds."""
        own = self.node(one.operands[0], depth)
        bounds = self._constants(own.type, one.given)
        if own.kind not in (int, float, date, datetime) or not (
            len(bounds) == 2 and bounds[0] <= bounds[1]
        ):
            raise InvalidValueError(
                f"{self._name} has a clip, which is for numbers, dates and timestamps, to a lower "
                "bound and one that is not below it"
            )
        return Node("clip", own.kind, (own,), bounds, own.scale)

    def cut(self, one: Expression, depth: int) -> Node:
        """Return the bin of a value, as a text or an integer."""
        own = self.node(one.operands[0], depth)
        breaks, labels, closed = checks.elements("values", **{self._name: one.given})
        edges = self._constants(own.type, breaks)
        if not edges or any(not low < high for low, high in pairwise(edges)) or own.kind is bool:
            raise InvalidValueError(
                f"{self._name} has a cut, whose breaks must increase, at least one"
            )
        bins = len(edges) + 1
        if labels is None:
            return Node("cut", int, (own,), (edges, tuple(range(bins)), closed))
        names = self._constants(str, labels)
        if len(names) != bins:
            raise InvalidValueError(
                f"{self._name} has a cut, which needs {bins} labels, one more than breaks"
            )
        return Node("cut", str, (own,), (edges, names, closed))

    def part(self, one: Expression, depth: int) -> Node:
        """Return a part of a date or timestamp."""
        own = self.node(one.operands[0], depth)
        kinds = (datetime,) if one.given in PARTS_OF_TIMES else (date, datetime)
        if one.given not in PARTS or own.kind not in kinds:
            raise InvalidTypeError(
                f"{self._name} has a {one.given} of a column of type {schemas.KINDS[own.kind]}: "
                "parts are of dates and timestamps, those of a time of timestamps only"
            )
        return Node("part", int, (own,), one.given)

    def cast(self, one: Expression, depth: int) -> Node:
        """Return a value in another type."""
        given: object = one.given
        own = self.node(one.operands[0], depth)
        if isinstance(given, schemas.Decimal) and own.kind is int and own.scale <= given.scale:
            return rescaled(own, given.scale)
        kind = next((one for one in schemas.KINDS if one is given), None)
        known = kind is own.kind or (own.kind, kind) in CASTS
        if kind is None or not known or (kind is str and own.scale):
            raise InvalidTypeError(
                f"{self._name} has a cast from {schemas.spelled(own.type)} to "
                f"{checks.shown(given)}, which "
                "engines do differently; there are casts from int to float and str, from float, "
                "bool and str to int, between str and date, between date and datetime, from "
                "decimals to float and int, and from both to decimals with as many digits or more"
            )
        if own.scale and kind is int:  # the integer that is next to it on the side of 0
            (of,) = one.operands
            return self.node(when(of < 0).then(-(-of // 1)).otherwise(of // 1), depth)
        return as_kind(own, kind)

    def _constants(self, kind: schemas.Type, values: object) -> tuple[Any, ...]:
        found = checks.elements("values", **{self._name: values})
        if len(found) > MOST_VALUES + 1:
            raise InvalidValueError(
                f"{self._name} must have at most {MOST_VALUES} values in a place, found "
                f"{len(found)}; use then_public_join"
            )
        return tuple(schemas.value_of(kind, **{self._name: each}) for each in found)


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
    **dict.fromkeys(("lower", "length"), (1, _Checker.of_text)),
}


def rescaled(one: Node, scale: int) -> Node:
    """Return the same decimal with at least as many digits after the point."""
    if one.scale == scale:
        return one
    factor = 10 ** (scale - one.scale)
    if one.operation == "literal" and abs(one.given) * factor <= schemas.LARGEST:
        return Node("literal", int, (), one.given * factor, scale)
    return Node("*", int, (one, Node("literal", int, (), factor)), None, scale)


def as_kind(one: Node, kind: type) -> Node:
    """Return a node in another type; a decimal becomes a float."""
    if one.scale and kind is float:
        factor = float(10**one.scale)
        if one.operation == "literal":
            return Node("literal", float, (), float(one.given) / factor)
        whole = as_kind(replace(one, scale=0), float)
        return Node("/", float, (whole, Node("literal", float, (), factor)))
    return one if one.kind is kind else Node("cast", kind, (one,))


def _scale(kind: schemas.Type) -> int:
    return kind.scale if isinstance(kind, schemas.Decimal) else 0


def _holding(one: Node, name: str) -> Node:
    """Return a condition that is false on NULL."""
    if one.kind is not bool:
        raise InvalidTypeError(
            f"{name} must hold or not, found a value of type {schemas.KINDS[one.kind]}; compare it"
        )
    return one if one.operation in NEVER_NULL else Node("holds", bool, (one,))
