"""Bins between public edges: which one a value is in, in a number of steps far below that of edges.

Few edges are compared by bisection in the statement. More are sent as an array, and searched as the
engine does it best: DuckDB by its histogram, or by an ASOF join if there are groups, PostgreSQL by
its function, and Spark by a join within the part that bisection finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

from . import expressions as sql
from .dialects import Dialect
from .dialects import exp as exp

FEW = 64


@dataclass(frozen=True, slots=True)
class Search:
    """A search of values among edges.

    :ivar array: sends values as a parameter, and returns it as an array
    :ivar query: has a row for each value, none of which is NULL
    :ivar kept: columns to keep
    :ivar own: the column of values
    :ivar kind: its type
    :ivar edges: increasing
    """

    dialect: Dialect
    array: Callable[[list[Any], type], Any]
    query: Any
    kept: Sequence[str]
    own: str
    kind: type
    edges: Sequence[Any]

    def located(self) -> Any:
        """Return a query of the columns, and of the number ``b`` of edges at or below a value."""
        if len(self.edges) <= FEW:
            return self._with(self.query, self._bisected(self.edges))
        if self.dialect.search == "function":
            public = self.array(list(self.edges), self.kind)
            place = exp.WidthBucket(this=sql.column(self.own), threshold=public)
            return self._with(self.query, place)
        return self._by_parts() if self.dialect.search == "parts" else self._by_asof()

    def counted(self) -> Any:
        """Return a query of numbers ``b`` of edges, and of how many values have each."""
        if self.dialect.search == "asof" and len(self.edges) > FEW:
            return self._by_histogram()
        columns = [sql.column("b"), exp.Count(this=exp.Star())]
        return sql.select(columns, self.located()).group_by(sql.column("b"), copy=False)

    def _by_histogram(self) -> Any:
        """Count by DuckDB's histogram, whose bins end with a boundary and have it.

        So the boundaries are the numbers before the edges. No number is before -inf, which is the
        first edge of all values then.
        """
        first = int(self.edges[0] == -inf)
        ends = [one - 1 if self.kind is int else nextafter(one, -inf) for one in self.edges[first:]]
        places = list(range(first, len(self.edges) + 1))
        arguments = [sql.column(self.own), self.array(ends, self.kind)]
        counts = exp.Anonymous(this="HISTOGRAM", expressions=arguments)
        found = sql.select([exp.alias_(counts, "h")], self.query)
        values = exp.Anonymous(this="MAP_VALUES", expressions=[sql.column("h")])
        pairs = {"b": self.array(places, int), "n": values}
        columns = [exp.alias_(exp.Unnest(expressions=[one]), name) for name, one in pairs.items()]
        some = sql.compare(sql.column("n"), ">", sql.number(0))  # not NULL, either
        return sql.select([sql.column("b"), sql.column("n")], sql.select(columns, found), some)

    def _bisected(self, edges: Sequence[Any]) -> Any:
        """Return the number of edges at or below a value."""

        def between(low: int, high: int) -> Any:  # the value is in one of the bins low..high
            if low == high:
                return sql.number(low)
            middle = (low + high) // 2
            edge = self.dialect.constant(edges[middle], self.kind)
            below = sql.compare(sql.column(self.own), "<", edge)
            return sql.case([(below, between(low, middle))], between(middle + 1, high))

        return between(0, len(edges))

    def _with(self, query: Any, place: Any) -> Any:
        return sql.select([*map(sql.column, self.kept), exp.alias_(place, "b")], query)

    def _public(self, columns: dict[str, tuple[list[Any], type]]) -> Any:
        """Return a query of the edges, with their numbers ``b`` from 1."""
        numbers = list(range(1, len(self.edges) + 1)), int
        every = {**columns, "e": (list(self.edges), self.kind), "b": numbers}
        arrays = [self.array(values, kind) for values, kind in every.values()]
        return self.dialect.rows(arrays, list(every), [kind for _, kind in every.values()])

    def _joined(self, query: Any, public: Any, on: Any, **how: Any) -> Any:
        place = sql.or_else(exp.column("b", "k"), sql.number(0))
        columns = [*(exp.column(name, "t") for name in self.kept), exp.alias_(place, "b")]
        made = exp.select(*columns, copy=False).from_(sql.subquery(query, "t"), copy=False)
        join = exp.Join(this=sql.subquery(public, "k"), on=on, side="LEFT", **how)
        return made.join(join, copy=False)

    def _by_asof(self) -> Any:
        on = sql.compare(exp.column(self.own, "t"), ">=", exp.column("e", "k"))
        return self._joined(self.query, self._public({}), on, method="ASOF")

    def _by_parts(self) -> Any:
        """Find the part by bisection, and the edge in it by a join.

        A part begins at its first edge.
        """
        size = -(-len(self.edges) // FEW)
        part = exp.alias_(self._bisected(self.edges[::size]), "p")
        columns = [*map(sql.column, dict.fromkeys([*self.kept, self.own])), part]
        parts = [1 + place // size for place in range(len(self.edges))]
        last = self.edges[-1]
        nexts = [*self.edges[1:], last]  # the last bin has no end, and its row has another rule
        public = self._public({"p": (parts, int), "n": (nexts, self.kind)})
        value, begin, end = exp.column(self.own, "t"), exp.column("e", "k"), exp.column("n", "k")
        is_last = sql.compare(begin, ">=", self.dialect.constant(last, self.kind))
        within = sql.disjunction(sql.compare(value, "<", end), is_last)
        within = sql.conjunction(sql.compare(value, ">=", begin), within)
        on = sql.conjunction(sql.equal(["p"], ["p"]), within)
        return self._joined(sql.select(columns, self.query), public, on)
