"""Bins between public edges: which one a value is in, in a number of steps far below that of edges.

Few edges are compared by bisection in the statement. More are sent as an array, and searched as the
engine does it best: DuckDB by an ASOF join, PostgreSQL by its function, and Spark by a join within
the part that bisection finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import expressions as sql
from .dialects import Dialect
from .dialects import exp as exp

FEW = 64
Array = Callable[[list[Any], type], Any]  # sends values as a parameter, and returns it as an array


def located(
    dialect: Dialect,
    array: Array,
    query: Any,
    kept: Sequence[str],
    own: str,
    kind: type,
    edges: Sequence[Any],
) -> Any:
    """Return a query of some columns, and of the number ``b`` of edges at or below a value.

    :param query: has a row for each value, none of which is NULL
    :param own: the column of values
    """
    search = _by_bisection if len(edges) <= FEW else _SEARCHES[dialect.search]
    return search(dialect, array, query, kept, own, kind, edges)


def _bisected(dialect: Dialect, own: str, kind: type, edges: Sequence[Any]) -> Any:
    """Return the number of edges at or below a value."""

    def between(low: int, high: int) -> Any:  # the value is in one of the bins low..high
        if low == high:
            return exp.Literal.number(low)
        middle = (low + high) // 2
        edge = dialect.constant(edges[middle], kind)
        below = exp.LT(this=sql.column(own), expression=edge)
        return exp.Paren(this=sql.case([(below, between(low, middle))], between(middle + 1, high)))

    return between(0, len(edges))


def _with(query: Any, kept: Sequence[str], place: Any) -> Any:
    return sql.select([*map(sql.column, kept), exp.alias_(place, "b")], query)


def _by_bisection(
    dialect: Dialect,
    array: Array,
    query: Any,
    kept: Sequence[str],
    own: str,
    kind: type,
    edges: Sequence[Any],
) -> Any:
    del array
    return _with(query, kept, _bisected(dialect, own, kind, edges))


def _by_function(
    dialect: Dialect,
    array: Array,
    query: Any,
    kept: Sequence[str],
    own: str,
    kind: type,
    edges: Sequence[Any],
) -> Any:
    del dialect
    public = array(list(edges), kind)
    return _with(query, kept, exp.WidthBucket(this=sql.column(own), threshold=public))


def _joined(query: Any, kept: Sequence[str], public: Any, on: Any, **how: Any) -> Any:
    place = exp.Coalesce(this=exp.column("b", "k"), expressions=[exp.Literal.number(0)])
    columns = [*(exp.column(name, "t") for name in kept), exp.alias_(place, "b")]
    made = exp.select(*columns, copy=False).from_(sql.subquery(query, "t"), copy=False)
    join = exp.Join(this=sql.subquery(public, "k"), on=on, side="LEFT", **how)
    return made.join(join, copy=False)


def _by_asof(
    dialect: Dialect,
    array: Array,
    query: Any,
    kept: Sequence[str],
    own: str,
    kind: type,
    edges: Sequence[Any],
) -> Any:
    arrays = [array(list(edges), kind), array(list(range(1, len(edges) + 1)), int)]
    public = dialect.rows(arrays, ["e", "b"], [kind, int])
    on = exp.GTE(this=exp.column(own, "t"), expression=exp.column("e", "k"))
    return _joined(query, kept, public, on, method="ASOF")


def _by_parts(
    dialect: Dialect,
    array: Array,
    query: Any,
    kept: Sequence[str],
    own: str,
    kind: type,
    edges: Sequence[Any],
) -> Any:
    """Find the part by bisection, and the edge in it by a join. A part begins at its first edge."""
    size = -(-len(edges) // FEW)
    part = exp.alias_(_bisected(dialect, own, kind, edges[::size]), "p")
    columns = [*map(sql.column, dict.fromkeys([*kept, own])), part]
    parts = [1 + place // size for place in range(len(edges))]
    last = edges[-1]
    nexts = [*edges[1:], last]  # the last bin has no end, and its row is joined by another rule
    arrays = [
        array(parts, int),
        array(list(edges), kind),
        array(nexts, kind),
        array(list(range(1, len(edges) + 1)), int),
    ]
    public = dialect.rows(arrays, ["p", "e", "n", "b"], [int, kind, kind, int])
    value, begin, end = exp.column(own, "t"), exp.column("e", "k"), exp.column("n", "k")
    within = sql.disjunction(
        exp.LT(this=value, expression=end),
        exp.GTE(this=begin.copy(), expression=dialect.constant(last, kind)),
    )
    on = sql.conjunction(
        exp.EQ(this=exp.column("p", "t"), expression=exp.column("p", "k")),
        sql.conjunction(exp.GTE(this=value.copy(), expression=begin), within),
    )
    return _joined(sql.select(columns, query), kept, public, on)


_SEARCHES = {"asof": _by_asof, "function": _by_function, "parts": _by_parts}
