"""Expressions that all statements are made of, with the parentheses that they need."""

from __future__ import annotations

from collections.abc import Iterable
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


def is_null(one: exp.Expression) -> Any:
    """Return whether an expression is NULL."""
    return exp.Is(this=one, expression=exp.Null())


def not_null(name: str) -> Any:
    """Return whether a column is not NULL."""
    return exp.Not(this=exp.Paren(this=is_null(column(name))))


def known(comparison: Any) -> Any:
    """Return a comparison that is false where SQL does not know it."""
    return exp.Coalesce(this=exp.Paren(this=comparison), expressions=[exp.false()])


def conjunction(left: Any, right: Any) -> Any:
    """Return a conjunction."""
    made = exp.And(this=exp.Paren(this=left), expression=exp.Paren(this=right))
    return exp.Paren(this=made)


def disjunction(left: Any, right: Any) -> Any:
    """Return a disjunction."""
    return exp.Paren(this=exp.Or(this=exp.Paren(this=left), expression=exp.Paren(this=right)))


def equal(names: list[str], keys: list[str]) -> Any:
    """Return whether columns of ``t`` are equal to columns of ``k``."""
    pairs = [
        exp.EQ(this=exp.column(name, "t"), expression=exp.column(key, "k"))
        for name, key in zip(names, keys, strict=True)
    ]
    made = pairs[0]
    for one in pairs[1:]:
        made = conjunction(made, one)
    return made


def at_most(name: str, most: int) -> Any:
    """Return whether a column is at most a public number."""
    return exp.LTE(this=column(name), expression=exp.Literal.number(most))


def case(cases: list[tuple[Any, Any]], otherwise: Any) -> Any:
    """Return the value of the first condition that holds."""
    ifs = [exp.If(this=condition, true=value) for condition, value in cases]
    return exp.Case(ifs=ifs, default=otherwise)


def window(function: Any, by: list[str], order: list[str]) -> Any:
    """Return a function over the rows that are equal in ``by``; the order is never empty."""
    ordered = [exp.Ordered(this=column(name), desc=False, nulls_first=True) for name in order or by]
    return exp.Window(
        this=function,
        partition_by=[column(name) for name in by],
        order=exp.Order(expressions=ordered),
    )
