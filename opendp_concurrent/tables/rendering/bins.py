"""Bins between public edges: which one a value is in, in a number of steps far below that of edges.

Few edges are compared by bisection in the statement. More are sent as an array, and searched as the
engine does it best: DuckDB by an ASOF join, PostgreSQL by its function, and Spark by a join within
the part that bisection finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import expressions as sql
from .dialects import Dialect
from .dialects import exp as exp

FEW = 64
Array = Callable[[list[Any], type], Any]  # sends values as a parameter, and returns it as an array


@dataclass(frozen=True)
class Search:
    """What is searched; each method is a way.

    :ivar query: has a row for each value, none of which is NULL
    :ivar kept: the columns to return
    :ivar own: the column of values
    """

    dialect: Dialect
    array: Array
    query: Any
    kept: Sequence[str]
    own: str
    kind: type
    edges: Sequence[Any]

    def located(self) -> Any:
        """Return a query of the columns, and of the number ``b`` of edges at or below a value."""
        few = len(self.edges) <= FEW
        return (Search.by_bisection if few else _SEARCHES[self.dialect.search])(self)

    def by_bisection(self) -> Any:
        """Compare with edges in the statement."""
        return self._with(self._bisected(self.edges))

    def by_function(self) -> Any:
        """Call the engine's function on an array."""
        public = self.array(list(self.edges), self.kind)
        return self._with(exp.WidthBucket(this=sql.column(self.own), threshold=public))

    def by_asof(self) -> Any:
        """Join the last edge at or below the value."""
        arrays = [self.array(list(self.edges), self.kind), self._numbers()]
        public = self.dialect.rows(arrays, ["e", "b"], [self.kind, int])
        on = exp.GTE(this=exp.column(self.own, "t"), expression=exp.column("e", "k"))
        return self._joined(self.query, public, on, method="ASOF")

    def by_parts(self) -> Any:
        """Find the part by bisection, and the edge in it by a join. A part begins at its edge."""
        edges, kind, array = self.edges, self.kind, self.array
        size = -(-len(edges) // FEW)
        part = exp.alias_(self._bisected(edges[::size]), "p")
        columns = [*map(sql.column, dict.fromkeys([*self.kept, self.own])), part]
        parts = [1 + place // size for place in range(len(edges))]
        last = edges[-1]
        nexts = [*edges[1:], last]  # the last bin has no end, and its row is joined by another rule
        arrays = [array(parts, int), array(list(edges), kind), array(nexts, kind), self._numbers()]
        public = self.dialect.rows(arrays, ["p", "e", "n", "b"], [int, kind, kind, int])
        value, begin, end = exp.column(self.own, "t"), exp.column("e", "k"), exp.column("n", "k")
        within = sql.disjunction(
            exp.LT(this=value, expression=end),
            exp.GTE(this=begin.copy(), expression=self.dialect.constant(last, kind)),
        )
        on = sql.conjunction(
            exp.EQ(this=exp.column("p", "t"), expression=exp.column("p", "k")),
            sql.conjunction(exp.GTE(this=value.copy(), expression=begin), within),
        )
        return self._joined(sql.select(columns, self.query), public, on)

    def _numbers(self) -> Any:
        return self.array(list(range(1, len(self.edges) + 1)), int)

    def _bisected(self, edges: Sequence[Any]) -> Any:
        """Return the number of edges at or below a value."""

        def between(low: int, high: int) -> Any:  # the value is in one of the bins low..high
            if low == high:
                return exp.Literal.number(low)
            middle = (low + high) // 2
            edge = self.dialect.constant(edges[middle], self.kind)
            below = exp.LT(this=sql.column(self.own), expression=edge)
            case = sql.case([(below, between(low, middle))], between(middle + 1, high))
            return exp.Paren(this=case)

        return between(0, len(edges))

    def _with(self, place: Any) -> Any:
        return sql.select([*map(sql.column, self.kept), exp.alias_(place, "b")], self.query)

    def _joined(self, query: Any, public: Any, on: Any, **how: Any) -> Any:
        place = exp.Coalesce(this=exp.column("b", "k"), expressions=[exp.Literal.number(0)])
        columns = [*(exp.column(name, "t") for name in self.kept), exp.alias_(place, "b")]
        made = exp.select(*columns, copy=False).from_(sql.subquery(query, "t"), copy=False)
        join = exp.Join(this=sql.subquery(public, "k"), on=on, side="LEFT", **how)
        return made.join(join, copy=False)


_SEARCHES = {"asof": Search.by_asof, "function": Search.by_function, "parts": Search.by_parts}
