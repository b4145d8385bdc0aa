"""Charges of individual budgets: one query of all units, in integers that engines add exactly.

Each stage is a query of the one before. Columns: the unit ``u``, its number ``n``, clipped ``w``,
its size ``m``, the price ``p``, what was spent before ``s``, and what would be spent after ``a``.
"""

from __future__ import annotations

from typing import Any

from .. import plan as nodes
from . import expressions as sql
from .dialects import Dialect, cast
from .dialects import exp as exp


def charged(dialect: Dialect, charge: nodes.Charge, per_unit: Any, kind: type) -> Any:
    """Return a query of the columns ``unit``, ``spent`` and ``taken``.

    :param per_unit: query of each unit ``u`` and its integer ``n``
    :param kind: type of units
    """
    prices = _prices(dialect, charge, per_unit)
    together = _together(dialect, prices, _before(dialect, charge.budgets, kind))
    pays = sql.compare(sql.column("a"), "<=", _exact(dialect, charge.budget))
    spent = sql.case([(pays, sql.column("a"))], sql.column("s"))
    taken = sql.case([(pays, sql.column("w"))], _integer(0))
    found = {"unit": sql.column("u"), "spent": spent, "taken": taken}
    columns = [exp.alias_(one, name, quoted=True) for name, one in found.items()]
    return sql.select(columns, together)


def _prices(dialect: Dialect, charge: nodes.Charge, per_unit: Any) -> Any:
    """Return a query of ``u``, ``w`` and ``p``."""
    reach, number = charge.reach, sql.column("n")
    clipped = sql.clamped(number, _integer(-reach), _integer(reach))
    columns = [sql.column("u"), exp.alias_(cast(clipped, int), "w")]
    numbers = sql.select(columns, per_unit)

    own = sql.column("w")
    size = sql.case([(sql.compare(own, "<", _integer(0)), exp.Neg(this=own.copy()))], own)
    columns = [sql.column("u"), sql.column("w"), exp.alias_(size, "m")]
    sizes = sql.select(columns, numbers)

    product = _exact(dialect, charge.rate)
    for _ in range(charge.power):
        product = sql.binary(exp.Mul, product, dialect.exact(sql.column("m")))
    at_bound = sql.compare(sql.column("m"), ">=", _integer(reach))
    price = sql.case([(at_bound, _exact(dialect, charge.most))], product)
    columns = [sql.column("u"), sql.column("w"), exp.alias_(price, "p")]
    return sql.select(columns, sizes)


def _before(dialect: Dialect, budgets: tuple[str, ...], kind: type) -> Any:
    """Return a query of ``u`` and ``s``, which are the rows of the table of budgets."""
    unit = dialect.read(exp.column("unit", "t", quoted=True), kind)
    spent = dialect.exact(exp.column("spent", "t", quoted=True))
    columns = [exp.alias_(unit, "u"), exp.alias_(spent, "s")]
    return exp.select(*columns, copy=False).from_(dialect.source(budgets), copy=False)


def _together(dialect: Dialect, prices: Any, before: Any) -> Any:
    """Return a query of ``u``, ``w``, ``s`` and ``a``, of all units that have rows or budgets."""
    spent = sql.or_else(exp.column("s", "k"), _exact(dialect, 0))
    price = sql.or_else(exp.column("p", "t"), _exact(dialect, 0))
    columns = {
        "u": sql.or_else(exp.column("u", "t"), exp.column("u", "k")),
        "w": sql.or_else(exp.column("w", "t"), _integer(0)),
        "s": spent,
        "a": sql.binary(exp.Add, spent.copy(), price),
    }
    named = [exp.alias_(one, name) for name, one in columns.items()]
    made = exp.select(*named, copy=False).from_(sql.subquery(prices, "t"), copy=False)
    same = sql.equal(["u"], ["u"])
    return made.join(sql.subquery(before, "k"), on=same, join_type="full", copy=False)


def _integer(value: int) -> Any:
    return cast(exp.Literal.string(str(value)), int)


def _exact(dialect: Dialect, value: int) -> Any:
    return dialect.exact(exp.Literal.string(str(value)))
