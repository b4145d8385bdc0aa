"""Plans as statements of SQL, one syntax tree for every engine.

Every value of the caller goes to the engine as a parameter, other than numbers and dates. The
columns of a table are renamed to ``c0``, ``c1`` and so on where it is scanned, so that quoting,
case and duplicates matter there only. The tree is made of few kinds of nodes, which the tests list.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from .._opendp import uninterruptible
from . import dialects as sql
from . import plan as nodes
from .clauses import Search, Values
from .dialects import DIALECTS, Dialect, Tree, cast, exp
from .schema import Decimal, Schema, kind_of

SMALLEST = 0.25  # below it in steps, a value is quantised to 0


@uninterruptible
def prepare(dialect: str) -> None:
    """Let sqlglot import the dialect, which it does when it is used for the first time."""
    DIALECTS[dialect].text(exp.select("1"))


@lru_cache(maxsize=256)
def statement(
    dialect: str, relation: nodes.Relation, of: nodes.Aggregate | None = None
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement of an aggregate of a relation, or of all rows, and its parameters.

    An aggregate returns one row of integers, or rows of a position and integers. Rows have the
    columns' own names.
    """
    return Renderer(DIALECTS[dialect]).statement(relation, of)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A query of a relation.

    :ivar tree: its syntax
    :ivar names: the short name of each column, ``c0``, ``c1`` and so on
    :ivar schema: the columns
    """

    tree: Any
    names: dict[str, str]
    schema: Schema

    @property
    def columns(self) -> list[Any]:
        """All columns."""
        return list(map(exp.column, self.names.values()))

    @property
    def unit(self) -> list[str]:
        """Short names of the unit's columns."""
        return self.short(self.schema.unit)

    def fresh(self, names: Iterable[str]) -> dict[str, str]:
        """Return short names that are free."""
        first = 1 + max(int(of[1:]) for of in self.names.values())
        return {name: f"c{at}" for at, name in enumerate(names, first)}

    def short(self, names: Iterable[str]) -> list[str]:
        """Return short names."""
        return [self.names[name] for name in names]

    def kinds(self, names: Iterable[str]) -> list[type]:
        """Return types."""
        return list(map(self.schema.kind, names))


class Renderer:
    """Renders one statement, and collects its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect, self._parameters = dialect, list[Any]()

    def statement(
        self, relation: nodes.Relation, of: nodes.Aggregate | None
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the statement of an aggregate, or of all rows, and its parameters."""
        rows = self._relation(relation)
        if of is None:
            own = rows.names.items()
            columns = [exp.alias_(exp.column(short), name, quoted=True) for name, short in own]
            tree = sql.select(columns, rows.tree)
        else:
            tree = self._aggregate(of, rows)
        return self._dialect.text(tree), tuple(self._parameters)

    # --- relations ---------------------------------------------------------------------------

    def _relation(self, relation: nodes.Relation) -> Rendered:
        if isinstance(relation, nodes.Scan):
            return self._scan(relation)
        of = self._relation(relation.of)
        if isinstance(relation, nodes.Where):
            values = Values(self._dialect, of.names, self._parameter)
            condition = values.value(relation.predicate)
            return replace(of, tree=sql.select(of.columns, values.query(of.tree), condition))
        if isinstance(relation, nodes.WithColumns):
            return self._with_columns(relation, of)
        if isinstance(relation, nodes.Select):
            names = {name: of.names[name] for name in relation.schema.names}
            tree = sql.select(map(exp.column, names.values()), of.tree)
            return Rendered(tree, names, relation.schema)
        if isinstance(relation, nodes.Truncate):
            return replace(of, tree=self._truncate(relation, of))
        if isinstance(relation, nodes.PrivateJoin):
            return self._private_join(relation, of)
        if isinstance(relation, nodes.PerUnit):
            return self._per_unit(relation, of)
        return self._join(relation, of)

    def _scan(self, scan: nodes.Scan) -> Rendered:
        names = {name: f"c{place}" for place, name in enumerate(scan.schema.names)}
        columns, conditions = [], list[Any]()
        for name, kind in scan.schema.columns:
            stored = exp.column(name, "t", quoted=True)
            if isinstance(kind, Decimal) and not scan.fixed:
                found = self._dialect.decimal(stored, kind.scale)
            else:
                found = self._dialect.stored(stored, kind_of(kind))
            columns.append(exp.alias_(found, names[name]))
            if name in scan.schema.unit:
                conditions.append(sql.inverted(sql.is_null(found)))
        source = self._dialect.source(scan.reference)
        query = exp.select(*columns, copy=False).from_(source, copy=False)
        if conditions:
            query = query.where(sql.conjunction(*conditions), copy=False)
        return Rendered(query, names, scan.schema)

    def _with_columns(self, relation: nodes.WithColumns, of: Rendered) -> Rendered:
        values = Values(self._dialect, of.names, self._parameter)
        fresh = of.fresh(name for name, _ in relation.columns)
        named = [exp.alias_(values.value(one), fresh[name]) for name, one in relation.columns]
        kept = [exp.column(short) for name, short in of.names.items() if name not in fresh]
        tree = sql.select([*kept, *named], values.query(of.tree))
        return Rendered(tree, {**of.names, **fresh}, relation.schema)

    def _truncate(self, relation: nodes.Truncate, of: Rendered) -> Any:
        by, first, unit = of.short(relation.by), of.short(relation.order_by), of.unit
        rest = [one for one in of.names.values() if one not in by and one not in unit]
        numbers = {"r": sql.window(exp.RowNumber(), [*unit, *by], rest)}
        falling = first if relation.descending else ()
        again = {"r": sql.window(exp.RowNumber(), [*unit, *by], [*first, "hr", "r"], falling)}
        kept = sql.compare(exp.column("r"), "<=", exp.Literal.number(relation.rows))
        if by:
            numbers = {"g": sql.window(exp.DenseRank(), unit, by), **numbers}
            again["g"] = sql.window(exp.DenseRank(), unit, ["hg", "g"])
            kept = sql.conjunction(
                sql.compare(exp.column("g"), "<=", exp.Literal.number(relation.groups)), kept
            )
        tree = sql.select([*of.columns, *_aliased(numbers)], of.tree)
        hashes = {
            f"h{last}": self._hash(relation.key, list(numbers)[: place + 1], unit)
            for place, last in enumerate(numbers)
        }
        hashed = [*of.columns, *map(exp.column, numbers), *_aliased(hashes)]
        tree = sql.select([*of.columns, *_aliased(again)], sql.select(hashed, tree))
        return sql.select(of.columns, tree, kept)

    def _hash(self, key: str, numbers: list[str], unit: list[str]) -> Any:
        """Return the hash of a key, of numbers, and of the unit."""
        text = self._dialect.text_value(self._parameter(f"{len(numbers)}:{key}"))
        for each in (*numbers, *unit):
            for right in (exp.Literal.string("|"), cast(exp.column(each), str)):
                text = sql.binary(exp.DPipe, text, right, safe=True)
        return self._dialect.by_bytes(exp.MD5(this=text))

    def _join(self, relation: nodes.PublicJoin, of: Rendered) -> Rendered:
        keys = [f"k{place}" for place in range(len(relation.on))]
        added = {name: f"v{place}" for place, name in enumerate(relation.added)}
        rows = [(*key, *row) for key, row in zip(relation.keys, relation.rows, strict=True)]
        kinds = [relation.schema.kind(name) for name in (*relation.on, *relation.added)]
        public = self._public(rows, [*keys, *added.values()], kinds)
        matches = sql.equal(of.short(relation.on), keys)
        return self._paired(of, public, added, relation.schema, matches, relation.how)

    def _private_join(self, relation: nodes.PrivateJoin, of: Rendered) -> Rendered:
        partners = self._relation(relation.other)
        other, keys = partners.tree, [*partners.unit, *partners.short(relation.on)]
        if relation.how in ("semi", "anti"):  # one partner at most
            distinct = list(map(exp.column, dict.fromkeys(keys)))
            other = sql.select(distinct, other).group_by(*distinct, copy=False)
        matches = sql.equal([*of.unit, *of.short(relation.on)], keys)
        added = {name: partners.names[one] for name, one in relation.added}
        kind = "left" if relation.how in ("left", "anti") else "inner"
        joined = self._paired(of, other, added, relation.schema, matches, kind)
        if relation.how == "anti":
            joined.tree.where(sql.is_null(exp.column(keys[0], "k")), copy=False)
        return joined

    def _per_unit(self, relation: nodes.PerUnit, of: Rendered) -> Rendered:
        unit = list(map(exp.column, of.unit))
        fresh = of.fresh(name for name, _ in relation.columns)
        values = [exp.alias_(self._of_unit(one, of), fresh[name]) for name, one in relation.columns]
        made = sql.select([*unit, *values], of.tree).group_by(*unit, copy=False)
        names = {**{name: of.names[name] for name in of.schema.unit}, **fresh}
        return Rendered(made, names, relation.schema)

    def _of_unit(self, one: nodes.OfUnit, of: Rendered) -> Any:
        """Return an aggregate of the rows of a unit. A clamped sum fits 64 bits."""
        if one.statistic == "count":
            return exp.Count(this=exp.Star())
        own, quantum = exp.column(of.names[one.column]), one.quantum
        if one.statistic == "count_distinct":
            return exp.Count(this=exp.Distinct(expressions=[own]))
        if one.statistic in ("min", "max"):
            return (exp.Min if one.statistic == "min" else exp.Max)(this=own)
        if quantum is not None:
            most = 2.0**51 * quantum
            own = self._quantised(nodes.Quantised(one.column, -most, most, 1.0 / quantum), own)
        total = sql.or_else(exp.Sum(this=self._dialect.wide(own)), exp.Literal.number(0))
        ends = (self._dialect.constant(end, int) for end in one.bounds)
        clamped = cast(sql.clamped(total, *ends), int)
        if quantum is None:
            return clamped
        return sql.binary(exp.Mul, cast(clamped, float), self._dialect.constant(quantum, float))

    @staticmethod
    def _paired(
        of: Rendered,
        other: Tree,
        added: dict[str, str],
        after: Schema,
        matches: Tree,
        kind: str,
    ) -> Rendered:
        """Return a join of two queries, with some columns of the other one under fresh names."""
        fresh = of.fresh(added)
        columns: list[Any] = [exp.column(one, "t") for one in of.names.values()]
        columns += [exp.alias_(exp.column(one, "k"), fresh[name]) for name, one in added.items()]
        joined = exp.select(*columns, copy=False).from_(sql.subquery(of.tree, "t"), copy=False)
        joined = joined.join(sql.subquery(other, "k"), on=matches, join_type=kind, copy=False)
        return Rendered(joined, {**of.names, **fresh}, after)

    def _public(self, rows: list[Any], names: list[str], kinds: list[type]) -> Any:
        """Return a query of public rows, which go to the engine as one array for each column."""
        columns = zip(*rows, strict=True)
        arrays = [self._array(list(one), kind) for one, kind in zip(columns, kinds, strict=True)]
        return self._dialect.rows(arrays, names, kinds)

    def _array(self, values: list[Any], kind: type) -> Any:
        return self._dialect.array(self._parameter(values), kind)

    def _parameter(self, value: Any) -> Any:
        self._parameters.append(value)
        return self._dialect.parameter(len(self._parameters))

    # --- aggregates --------------------------------------------------------------------------

    def _aggregate(self, one: nodes.Aggregate, rows: Rendered) -> Any:
        if isinstance(one, nodes.FoundKeys):
            return self._found_keys(one, rows)
        if isinstance(one, nodes.Bins):
            own, kept = rows.names[one.column], rows.short(one.by)
            both = [exp.column(name) for name in dict.fromkeys([*kept, own])]
            known, kind = (
                sql.select(both, rows.tree, sql.not_null(own)),
                rows.schema.kind(one.column),
            )
            search = Search(self._dialect, self._array, known, kept, own, kind, one.edges)
            if not one.by:
                columns = [exp.column("b"), exp.Count(this=exp.Star())]
                return sql.select(columns, search.located()).group_by(exp.column("b"), copy=False)
            return self._groups(one, [exp.Count(this=exp.Star())], rows, search.located(), "b")
        values, query = [self._term(each, rows) for each in one.of], rows.tree
        if one.distinct:
            names = rows.short(one.distinct)
            columns = [exp.column(name) for name in dict.fromkeys([*rows.short(one.by), *names])]
            known = sql.conjunction(*map(sql.not_null, names))
            query = sql.select(columns, query, known).group_by(*columns, copy=False)
        return self._groups(one, values, rows, query) if one.by else sql.select(values, query)

    def _term(self, one: nodes.Term, rows: Rendered) -> Any:
        """Return the sum of a term over rows. Squares fit 64 bits."""
        if one.value is None:
            return exp.Count(this=exp.Star())
        own = exp.column(rows.names[one.value.column])
        if one.power == 0:
            return exp.Count(this=own)
        steps = self._quantised(one.value, own)
        if one.power == 2:
            steps = sql.binary(exp.Mul, steps, steps.copy())
        return sql.or_else(exp.Sum(this=self._dialect.wide(steps)), exp.Literal.number(0))

    def _groups(
        self,
        one: nodes.Sums | nodes.Bins,
        values: list[Any],
        rows: Rendered,
        query: Tree,
        *within: str,
    ) -> Any:
        """Aggregate first and join with the public keys then: a join of groups, not of rows."""
        by, short = rows.short(one.by), [f"n{place}" for place in range(len(values))]
        named = [exp.alias_(each, name) for each, name in zip(values, short, strict=True)]
        groups = [exp.column(name) for name in (*by, *within)]
        grouped = sql.select([*groups, *named], query).group_by(*groups, copy=False)
        keys = [f"k{place}" for place in range(len(by))]
        placed = [(*key, place) for place, key in enumerate(one.keys)]
        public = sql.subquery(self._public(placed, [*keys, "i"], [*rows.kinds(one.by), int]), "k")
        columns = [exp.column("i", "k"), *(exp.column(name, "t") for name in (*within, *short))]
        joined = exp.select(*columns, copy=False).from_(sql.subquery(grouped, "t"), copy=False)
        null = any(None in key for key in one.keys)
        on = sql.equal(by, keys, null=null)
        return joined.join(public, on=on, join_type="inner", copy=False)

    def _found_keys(self, one: nodes.FoundKeys, rows: Rendered) -> Any:
        """Count distinct pairs of a unit and a key, apart by the number of keys of the unit."""
        by, kinds, conditions = rows.short(one.by), rows.kinds(one.by), []
        for own, kind in zip(by, kinds, strict=True):
            conditions.append(sql.not_null(own))
            if kind in (date, datetime):  # others cannot be handed out by drivers
                for sign, end in ((">=", kind.min), ("<=", kind.max)):
                    ends = self._dialect.constant(end, kind)
                    conditions.append(sql.known(sql.compare(exp.column(own), sign, ends)))
        both = list(map(exp.column, dict.fromkeys([*rows.unit, *by])))
        pairs = sql.select(both, rows.tree, sql.conjunction(*conditions))
        number = exp.Literal.number(1)  # of keys of a unit that is one row
        if rows.unit:
            pairs = pairs.group_by(*both, copy=False)
            number = sql.window(exp.Count(this=exp.Star()), rows.unit, [])
        of_unit = exp.alias_(number, "j")
        columns = [*map(exp.column, by), exp.column("j")]
        numbered = sql.select([*columns[:-1], of_unit], pairs)
        told = [  # drivers hand out timestamps differently, and all engines write the same text
            cast(own.copy(), str) if kind is datetime else own
            for own, kind in zip(columns, kinds, strict=False)
        ]
        counted = sql.select([*told, columns[-1], exp.Count(this=exp.Star())], numbered)
        return counted.group_by(*(each.copy() for each in columns), copy=False)

    def _quantised(self, value: nodes.Quantised, own: Tree) -> Any:
        """Return the integer of a value x: clamped, or ``floor(x * factor + 0.5)`` of that.

        Of tiny values this is 0. Where underflow is an error, the product is not computed of them.
        """
        kind, factor = int if value.factor is None else float, value.factor
        constant = self._dialect.constant
        ends = constant(value.lower, kind), constant(value.upper, kind)
        clamped = sql.clamped(own, *ends)
        if factor is None:
            return clamped
        product = sql.binary(exp.Mul, clamped.copy(), constant(factor, float))
        half = exp.Add(this=product, expression=constant(0.5, float))
        steps = cast(exp.Floor(this=half), int)
        if not self._dialect.underflows:
            return steps
        tiny = SMALLEST / factor
        above = sql.compare(clamped, ">", constant(-tiny, float))
        small = sql.conjunction(above, sql.compare(clamped, "<", constant(tiny, float)))
        return sql.case([(sql.is_null(own), exp.Null()), (small, exp.Literal.number(0))], steps)


def _aliased(trees: Mapping[str, Any]) -> list[Any]:
    return [exp.alias_(one, name) for name, one in trees.items()]
