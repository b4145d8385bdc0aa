"""Plans as statements of SQL, one syntax tree for every engine.

Every value of the caller goes to the engine as a parameter, other than numbers and dates. The
columns of a table are renamed to ``c0``, ``c1`` and so on where it is scanned, so that quoting,
case and duplicates matter there only. The tree is made of few kinds of nodes, which are listed in
``syntax.py``; nothing else is rendered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ...interrupts import whole
from .. import plan as nodes
from ..schema import Schema
from . import expressions as sql
from .bins import Search
from .charging import charged
from .dialects import DIALECTS, Dialect, cast
from .dialects import exp as exp
from .syntax import check_syntax
from .values import Values

MOST_STATEMENTS = 256
SMALLEST = 0.25  # below it in steps, a value is quantised to 0


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and its parameters. It returns rows of integers."""

    text: str
    parameters: tuple[Any, ...]


_STATEMENTS: dict[tuple[Any, ...], Statement] = {}


@whole
def prepare(dialect: str) -> None:
    """Let sqlglot import the dialect, which it does when it is used for the first time."""
    DIALECTS[dialect].text(exp.select("1"))


def statement(dialect: str, relation: nodes.Relation, aggregate: nodes.Aggregate) -> Statement:
    """Return the statement for an aggregate of a relation.

    It returns one integer, or for groups and bins rows of a position and an integer.
    """
    return _cached((dialect, relation, aggregate))


def materialization(dialect: str, relation: nodes.Relation) -> Statement:
    """Return a query of all rows of a relation, whose columns have their own names."""
    return _cached((dialect, relation, None))


def charging(dialect: str, relation: nodes.Relation, charge: nodes.Charge) -> Statement:
    """Return a query of each unit, of what it has spent after a charge, and of what it adds."""
    return _cached((dialect, relation, charge))


def _cached(key: tuple[Any, ...]) -> Statement:
    found = _STATEMENTS.get(key)
    if found is None:
        if len(_STATEMENTS) >= MOST_STATEMENTS:
            _STATEMENTS.clear()
        found = _STATEMENTS[key] = Renderer(DIALECTS[key[0]]).statement(*key[1:])
    return found


def _of(names: dict[str, str], schema: Schema) -> list[str]:
    """Return the short names of the unit's columns."""
    return [names[name] for name in schema.unit]


class Renderer:
    """Renders one statement, and collects its parameters."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect, self._parameters = dialect, list[Any]()

    def statement(
        self, relation: nodes.Relation, aggregate: nodes.Aggregate | nodes.Charge | None
    ) -> Statement:
        """Return the statement of an aggregate, of a charge, or of all rows."""
        query, names = self._relation(relation)
        if isinstance(aggregate, nodes.Charge):
            schema = nodes.schema_after(relation)
            (unit,) = schema.unit  # others have no budgets
            per_unit = self._per_unit(aggregate.value, query, names, unit)
            tree = charged(self._dialect, aggregate, per_unit, schema.kind(unit))
        elif aggregate is None:
            columns = [exp.alias_(sql.column(of), name, quoted=True) for name, of in names.items()]
            tree = sql.select(columns, query)
        else:
            tree = self._aggregate(aggregate, query, names, nodes.schema_after(relation))
        check_syntax(tree)
        return Statement(self._dialect.text(tree), tuple(self._parameters))

    # --- relations ---------------------------------------------------------------------------

    def _relation(self, relation: nodes.Relation) -> tuple[Any, dict[str, str]]:
        """Return a query for the relation, and the short name of each of its columns."""
        if isinstance(relation, nodes.Scan):
            return self._scan(relation)
        query, names = self._relation(relation.of)
        schema = nodes.schema_after(relation.of)
        if isinstance(relation, nodes.Where):
            values = Values(self._dialect, names, self._parameter)
            condition = values.value(relation.predicate)
            columns = [sql.column(of) for of in names.values()]
            return sql.select(columns, values.query(query), condition), names
        if isinstance(relation, nodes.WithColumns):
            return self._with_columns(relation, query, names)
        if isinstance(relation, nodes.Select):
            kept = {name: names[name] for name in relation.schema.names}
            return sql.select(map(sql.column, kept.values()), query), kept
        if isinstance(relation, nodes.Truncate):
            return self._truncate(relation, query, names, _of(names, schema)), names
        if isinstance(relation, nodes.GroupTruncate):
            return self._group_truncate(relation, query, names, _of(names, schema)), names
        if isinstance(relation, nodes.PrivateJoin):
            return self._private_join(relation, query, names, schema)
        return self._join(relation, query, names, schema)

    def _scan(self, scan: nodes.Scan) -> tuple[Any, dict[str, str]]:
        names = {name: f"c{place}" for place, name in enumerate(scan.schema.names)}
        columns, conditions, scales = [], list[Any](), dict(scan.scales)
        for name, kind in scan.schema.columns:
            stored = exp.column(name, "t", quoted=True)
            if name in scales:
                found = self._dialect.decimal(stored, scales[name])
            else:
                found = self._dialect.stored(stored, kind)
            columns.append(exp.alias_(found, names[name]))
            if name in scan.schema.unit:
                conditions.append(sql.inverted(sql.is_null(found)))
        source = self._dialect.source(scan.reference)
        query = exp.select(*columns, copy=False).from_(source, copy=False)
        return query.where(sql.conjunction(*conditions), copy=False), names

    def _with_columns(
        self, relation: nodes.WithColumns, query: Any, names: dict[str, str]
    ) -> tuple[Any, dict[str, str]]:
        values, first = Values(self._dialect, names, self._parameter), self._fresh(names)
        fresh = {name: f"c{first + at}" for at, (name, _) in enumerate(relation.columns)}
        trees = [values.value(one) for _, one in relation.columns]
        named = [exp.alias_(one, of) for one, of in zip(trees, fresh.values(), strict=True)]
        kept = [sql.column(of) for name, of in names.items() if name not in fresh]
        return sql.select([*kept, *named], values.query(query)), {**names, **fresh}

    def _truncate(
        self,
        relation: nodes.Truncate,
        query: exp.Expression,
        names: dict[str, str],
        unit: list[str],
    ) -> Any:
        first = [names[name] for name in relation.order_by]
        rest = [of for of in names.values() if of not in first and of not in unit]
        number = sql.window(exp.RowNumber(), unit, [*first, *rest])
        columns = [sql.column(of) for of in names.values()]
        numbered = sql.select([*columns, exp.alias_(number, "r")], query)
        if relation.key is not None:
            again = sql.window(exp.RowNumber(), unit, ["h", "r"])
            numbered = self._rehashed(
                numbered, names, unit, relation.key, {"h": ("r",)}, {"r": again}
            )
        return sql.select(columns, numbered, sql.at_most("r", relation.rows))

    def _group_truncate(
        self,
        relation: nodes.GroupTruncate,
        query: exp.Expression,
        names: dict[str, str],
        unit: list[str],
    ) -> Any:
        by = [names[name] for name in relation.by]
        rest = [of for of in names.values() if of not in by and of not in unit]
        group = sql.window(exp.DenseRank(), unit, by)
        row = sql.window(exp.RowNumber(), [*unit, *by], rest)
        columns = [sql.column(of) for of in names.values()]
        numbered = sql.select([*columns, exp.alias_(group, "g"), exp.alias_(row, "r")], query)
        if relation.key is not None:
            again = {
                "g": sql.window(exp.DenseRank(), unit, ["hg", "g"]),
                "r": sql.window(exp.RowNumber(), [*unit, *by], ["hr", "r"]),
            }
            hashes = {"hg": ("g",), "hr": ("g", "r")}
            numbered = self._rehashed(numbered, names, unit, relation.key, hashes, again)
        both = sql.conjunction(sql.at_most("g", relation.groups), sql.at_most("r", relation.rows))
        return sql.select(columns, numbered, both)

    def _rehashed(
        self,
        query: Any,
        names: dict[str, str],
        unit: list[str],
        key: str,
        hashes: Mapping[str, tuple[str, ...]],
        again: Mapping[str, Any],
    ) -> Any:
        """Number rows anew, in the order of hashes of a key, of numbers, and of the unit."""
        columns = [sql.column(of) for of in names.values()]
        numbers = [sql.column(of) for of in again]
        hashed = []
        for name, of in hashes.items():
            parts = [cast(sql.column(each), str) for each in (*of, *unit)]
            text = self._dialect.text_value(self._parameter(f"{len(of)}:{key}"))
            for part in parts:
                for right in (exp.Literal.string("|"), part):
                    text = sql.binary(exp.DPipe, text, right, safe=True)
            hashed.append(exp.alias_(self._dialect.by_bytes(exp.MD5(this=text)), name))
        made = sql.select([*columns, *numbers, *hashed], query)
        return sql.select([*columns, *(exp.alias_(one, of) for of, one in again.items())], made)

    def _join(
        self, relation: nodes.PublicJoin, query: Any, names: dict[str, str], schema: Schema
    ) -> tuple[Any, dict[str, str]]:
        on = [(name, schema.kind(name)) for name in relation.on]
        keys = [f"k{place}" for place in range(len(on))]
        added = {name: f"v{place}" for place, (name, _) in enumerate(relation.added)}
        rows = [(*key, *row) for key, row in zip(relation.keys, relation.rows, strict=True)]
        kinds = [kind for _, kind in (*on, *relation.added)]
        public = self._public(rows, [*keys, *added.values()], kinds)
        matches = sql.equal([names[name] for name in relation.on], keys)
        return self._paired(query, names, public, added, matches)

    def _private_join(
        self, relation: nodes.PrivateJoin, query: Any, names: dict[str, str], schema: Schema
    ) -> tuple[Any, dict[str, str]]:
        other, own = self._relation(relation.other)
        units = _of(own, nodes.schema_after(relation.other))
        keys = [*units, *(own[name] for name in relation.on)]
        if relation.how in ("semi", "anti"):  # one partner at most
            distinct = list(map(sql.column, dict.fromkeys(keys)))
            other = sql.select(distinct, other).group_by(*distinct, copy=False)
        matches = sql.equal([*_of(names, schema), *(names[name] for name in relation.on)], keys)
        added = {name: own[of] for name, of in relation.added}
        kind = "left" if relation.how in ("left", "anti") else "inner"
        joined, together = self._paired(query, names, other, added, matches, kind)
        if relation.how == "anti":
            joined = joined.where(sql.is_null(exp.column(units[0], "k")), copy=False)
        return joined, together

    def _paired(
        self,
        query: Any,
        names: dict[str, str],
        other: Any,
        added: dict[str, str],
        matches: Any,
        kind: str = "inner",
    ) -> tuple[Any, dict[str, str]]:
        """Return a join of two queries, with some columns of the other one under fresh names."""
        first = self._fresh(names)
        fresh = {name: f"c{first + at}" for at, name in enumerate(added)}
        columns: list[Any] = [exp.column(of, "t") for of in names.values()]
        for name, of in added.items():
            columns.append(exp.alias_(exp.column(of, "k"), fresh[name]))
        joined = exp.select(*columns, copy=False).from_(sql.subquery(query, "t"), copy=False)
        joined = joined.join(sql.subquery(other, "k"), on=matches, join_type=kind, copy=False)
        return joined, {**names, **fresh}

    @staticmethod
    def _fresh(names: dict[str, str]) -> int:
        return 1 + max(int(of[1:]) for of in names.values())

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

    def _aggregate(
        self, one: nodes.Aggregate, query: exp.Expression, names: dict[str, str], schema: Schema
    ) -> Any:
        if isinstance(one, nodes.DistinctUnits):
            return self._distinct(query, _of(names, schema))
        if isinstance(one, nodes.DistinctValues):
            return self._distinct(query, [names[name] for name in one.by])
        if isinstance(one, nodes.FoundKeys):
            return self._found_keys(one, query, names, schema)
        if isinstance(one, nodes.Bins):
            own, kind = names[one.column], schema.kind(one.column)
            kept = [names[name] for name in one.by]
            both = [sql.column(name) for name in dict.fromkeys([*kept, own])]
            known = sql.select(both, query, sql.not_null(own))
            search = Search(self._dialect, self._array, known, kept, own, kind, one.edges)
            if not one.by:
                return search.counted()
            count = exp.Count(this=exp.Star())
            return self._groups(one, [count], search.located(), names, schema, "b")
        values = [self._term(each, names) for each in one.of]
        if one.by:
            return self._groups(one, values, query, names, schema)
        return sql.select(values, query)

    def _term(self, one: nodes.Term, names: dict[str, str]) -> Any:
        """Return the sum of a term over rows. Squares fit 64 bits."""
        if one.value is None:
            return exp.Count(this=exp.Star())
        if one.power == 0:
            return exp.Count(this=sql.column(names[one.value.column]))
        steps = self._quantised(one.value, sql.column(names[one.value.column]))
        if one.power == 2:
            steps = sql.binary(exp.Mul, steps, steps.copy())
        return sql.or_else(exp.Sum(this=self._dialect.wide(steps)), sql.number(0))

    @staticmethod
    def _distinct(query: Any, names: list[str]) -> Any:
        """Count the different values of columns, without NULL."""
        if len(names) == 1:
            distinct = exp.Distinct(expressions=[sql.column(names[0])])
            return sql.select([exp.Count(this=distinct)], query)
        columns, known = list(map(sql.column, names)), sql.conjunction(*map(sql.not_null, names))
        distinct = sql.select(columns, query, known).group_by(*columns, copy=False)
        return sql.select([exp.Count(this=exp.Star())], distinct)

    def _groups(
        self,
        one: nodes.Sums | nodes.Bins,
        values: list[Any],
        query: exp.Expression,
        names: dict[str, str],
        schema: Schema,
        *within: str,
    ) -> Any:
        """Aggregate first and join with the public keys then: a join of groups, not of rows."""
        by = [names[name] for name in one.by]
        short = [f"n{place}" for place in range(len(values))]
        named = [exp.alias_(each, name) for each, name in zip(values, short, strict=True)]
        groups = [sql.column(name) for name in (*by, *within)]
        grouped = sql.select([*groups, *named], query).group_by(*groups, copy=False)
        keys = [f"k{place}" for place in range(len(by))]
        rows = [(*key, place) for place, key in enumerate(one.keys)]
        kinds = [schema.kind(name) for name in one.by]
        public = self._public(rows, [*keys, "i"], [*kinds, int])
        columns = [exp.column("i", "k"), *(exp.column(name, "t") for name in (*within, *short))]
        joined = exp.select(*columns, copy=False).from_(sql.subquery(grouped, "t"), copy=False)
        return joined.join(
            sql.subquery(public, "k"), on=sql.equal(by, keys), join_type="inner", copy=False
        )

    def _found_keys(
        self, one: nodes.FoundKeys, query: Any, names: dict[str, str], schema: Schema
    ) -> Any:
        """Count distinct pairs of a unit and a key, apart by the number of keys of the unit."""
        by, unit = [names[name] for name in one.by], _of(names, schema)
        conditions = []
        for name, own in zip(one.by, by, strict=True):
            conditions.append(sql.not_null(own))
            kind = schema.kind(name)
            if kind in (date, datetime):  # others cannot be handed out by drivers
                for sign, end in ((">=", kind.min), ("<=", kind.max)):
                    ends = self._dialect.constant(end, kind)
                    conditions.append(sql.known(sql.compare(sql.column(own), sign, ends)))
        both = list(map(sql.column, dict.fromkeys([*unit, *by])))
        found = sql.conjunction(*conditions)
        pairs = sql.select(both, query, found).group_by(*both, copy=False)
        of_unit = exp.alias_(sql.window(exp.Count(this=exp.Star()), unit, []), "j")
        columns = [*map(sql.column, by), sql.column("j")]
        numbered = sql.select([*columns[:-1], of_unit], pairs)
        told = [  # drivers hand out timestamps differently, and all engines write the same text
            cast(own.copy(), str) if schema.kind(name) is datetime else own
            for name, own in zip(one.by, columns, strict=False)
        ]
        counted = sql.select([*told, columns[-1], exp.Count(this=exp.Star())], numbered)
        return counted.group_by(*(each.copy() for each in columns), copy=False)

    def _per_unit(
        self, value: nodes.Quantised | None, query: exp.Expression, names: dict[str, str], unit: str
    ) -> Any:
        """Return a query of each unit ``u`` and its integer ``n``, which is not clipped."""
        number, own = self._term(nodes.Term(value), names), sql.column(names[unit])
        found = sql.select([exp.alias_(own, "u"), exp.alias_(number, "n")], query)
        return found.group_by(own.copy(), copy=False)

    def _quantised(self, value: nodes.Quantised, own: Any) -> Any:
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
        steps = self._dialect.whole(exp.Floor(this=half))
        if not self._dialect.underflows:
            return steps
        tiny = SMALLEST / factor
        above = sql.compare(clamped, ">", constant(-tiny, float))
        small = sql.conjunction(above, sql.compare(clamped, "<", constant(tiny, float)))
        return sql.case([(sql.is_null(own), exp.Null()), (small, sql.number(0))], steps)
