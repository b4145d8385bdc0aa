"""Expressions that all statements are made of, with the parentheses that they need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from .dialects import exp as exp

COMPARISONS = {
    "==": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def column(name: str) -> Any:
    """Return a column."""
    return exp.column(name)


def subquery(query: exp.Expression, name: str) -> Any:
    """Return a query in parentheses, with a name."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))


def select(columns: Iterable[Any], query: exp.Expression, condition: Any = None) -> Any:
    """Return a query of some columns of another one."""
    made = exp.select(*(one.copy() for one in columns), copy=False)
    made = made.from_(subquery(query, "t"), copy=False)
    return made if condition is None else made.where(condition, copy=False)


def fresh(one: Any) -> Any:
    """Return an expression that is part of no other one: itself, or a copy."""
    return one if one.parent is None else one.copy()


def number(value: int) -> Any:
    """Return an integer as it is written."""
    return exp.Literal.number(value)


def paren(one: Any) -> Any:
    """Return an expression in parentheses."""
    return exp.Paren(this=fresh(one))


def binary(make: Any, left: Any, right: Any, **options: Any) -> Any:
    """Return an operation on two expressions, in parentheses."""
    return paren(make(this=fresh(left), expression=fresh(right), **options))


def compare(left: Any, sign: str, right: Any) -> Any:
    """Return a comparison."""
    return COMPARISONS[sign](this=fresh(left), expression=fresh(right))


def is_null(one: Any) -> Any:
    """Return whether an expression is NULL."""
    return exp.Is(this=fresh(one), expression=exp.Null())


def inverted(condition: Any) -> Any:
    """Return the negation of a condition."""
    return exp.Not(this=paren(condition))


def not_null(name: str) -> Any:
    """Return whether a column is not NULL."""
    return inverted(is_null(column(name)))


def known(comparison: Any) -> Any:
    """Return a comparison that is false where SQL does not know it."""
    return or_else(paren(comparison), exp.false())


def or_else(one: Any, other: Any) -> Any:
    """Return an expression, or another one where it is NULL."""
    return exp.Coalesce(this=fresh(one), expressions=[fresh(other)])


def conjunction(left: Any, *others: Any) -> Any:
    """Return a conjunction."""
    for right in others:
        left = binary(exp.And, paren(left), paren(right))
    return left


def disjunction(left: Any, right: Any) -> Any:
    """Return a disjunction."""
    return binary(exp.Or, paren(left), paren(right))


def equal(names: list[str], keys: list[str]) -> Any:
    """Return whether columns of ``t`` are equal to columns of ``k``."""
    pairs = zip(names, keys, strict=True)
    return conjunction(
        *(compare(exp.column(one, "t"), "==", exp.column(key, "k")) for one, key in pairs)
    )


def at_most(name: str, most: int) -> Any:
    """Return whether a column is at most a public number."""
    return compare(column(name), "<=", number(most))


def case(cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
    """Return the value of the first condition that holds, in parentheses."""
    ifs = [exp.If(this=fresh(condition), true=fresh(value)) for condition, value in cases]
    return paren(exp.Case(ifs=ifs, default=fresh(otherwise)))


def clamped(own: Any, low: Any, high: Any) -> Any:
    """Return a value between two bounds; NULL of NULL."""
    return case([(compare(own, "<=", low), low), (compare(own, ">=", high), high)], own)


def window(function: Any, by: list[str], order: list[str], falling: Collection[str] = ()) -> Any:
    """Return a function over the rows that are equal in ``by``; the order is never empty.

    :param falling: the columns of the order that fall, with NULL at the end
    """
    ordered = [
        exp.Ordered(this=column(name), desc=name in falling, nulls_first=name not in falling)
        for name in order or by
    ]
    return exp.Window(
        this=function,
        partition_by=[column(name) for name in by],
        order=exp.Order(expressions=ordered),
    )
