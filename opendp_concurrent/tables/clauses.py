"""Clauses of a statement: a search among edges, and expressions on one row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from . import dialects as sql
from .dialects import Dialect, Tree, cast, exp
from .schema import LARGEST
from .typed import Node

# Bins between public edges: which one a value is in, in a number of steps far below that of edges.
#
# Few edges are compared by bisection in the statement. More are sent as an array, and searched as
# the engine does it best: DuckDB by an ASOF join, PostgreSQL by its function, and Spark by a join
# within the part that bisection finds.

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
            place = exp.WidthBucket(this=exp.column(self.own), threshold=public)
            return self._with(self.query, place)
        return self._by_parts() if self.dialect.search == "parts" else self._by_asof()

    def _bisected(self, edges: Sequence[Any]) -> Any:
        """Return the number of edges at or below a value."""
        trees = [self.dialect.constant(one, self.kind) for one in edges]
        return bisected(
            exp.column(self.own), "<", trees, list(map(exp.Literal.number, range(len(edges) + 1)))
        )

    def _with(self, query: Tree, place: Tree) -> Any:
        return sql.select([*map(exp.column, self.kept), exp.alias_(place, "b")], query)

    def _public(self, columns: dict[str, tuple[list[Any], type]]) -> Any:
        """Return a query of the edges, with their numbers ``b`` from 1."""
        numbers = list(range(1, len(self.edges) + 1)), int
        every = {**columns, "e": (list(self.edges), self.kind), "b": numbers}
        arrays = [self.array(values, kind) for values, kind in every.values()]
        return self.dialect.rows(arrays, list(every), [kind for _, kind in every.values()])

    def _joined(self, query: Tree, public: Tree, on: Tree, **how: Any) -> Any:
        place = sql.or_else(exp.column("b", "k"), exp.Literal.number(0))
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
        columns = [*map(exp.column, dict.fromkeys([*self.kept, self.own])), part]
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


def bisected(own: Tree, sign: str, edges: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the first of some values whose edge a column compares with, or the last one."""
    if not edges:
        return values[0]
    middle = (len(edges) - 1) // 2
    below = bisected(own, sign, edges[:middle], values[: middle + 1])
    above = bisected(own, sign, edges[middle + 1 :], values[middle + 1 :])
    return sql.case([(sql.compare(own, sign, edges[middle]), below)], above)


# Expressions on one row as SQL, which no row makes fail.
#
# What is needed twice gets a name, in a query below, so that the text grows with the expression and
# not with its square.

MOST_FLOAT, LEAST_FLOAT = 1e150, 1e-150  # whose products and quotients are normal doubles

_ARITHMETIC = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div}
_BEYOND = LARGEST + 1  # 2^63, the first integer and the first double beyond 64 bits
_FIRST: dict[type, date] = {date: date.min, datetime: datetime.min}
_LAST: dict[type, date] = {date: date.max, datetime: datetime.max}
_INTEGER = "0|-?[1-9][0-9]{0,18}"
_LEAP = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29"
)


class Values:
    """The SQL of expressions on the rows of one query.

    :param names: the short name of each column
    :param parameter: returns the place of a parameter
    """

    def __init__(
        self, dialect: Dialect, names: dict[str, str], parameter: Callable[[Any], Any]
    ) -> None:
        self._dialect, self._names, self._parameter = dialect, names, parameter
        self._short: dict[Node, str] = {}
        self._level: dict[str, int] = {}
        self._trees: dict[str, Any] = {}

    def query(self, query: Tree) -> Any:
        """Return a query with the columns that trees name, one level of names after another."""
        columns = [exp.column(of) for of in self._names.values()]
        for level in range(max(self._level.values(), default=-1) + 1):
            fresh = [name for name, at in self._level.items() if at == level]
            named = [exp.alias_(self._trees[name], name) for name in fresh]
            query = self._dialect.barrier(sql.select([*columns, *named], query))
            columns += [exp.column(name) for name in fresh]
        return query

    def value(self, one: Node) -> Any:
        """Return the SQL of an expression, which has parentheses where it needs them."""
        if one.operation == "column":
            return exp.column(self._names[str(one.given)])
        if one.operation == "literal":
            return self.constant(one.given, one.kind)
        if one in self._short:
            return exp.column(self._short[one])
        return _RENDER[one.operation](self, one)

    def constant(self, value: Any, kind: type) -> Any:
        """Return a public constant; texts are parameters."""
        if kind is str:
            return self._dialect.text_value(self._parameter(value))
        return self._dialect.constant(value, kind)

    def _named(self, one: Node) -> Any:
        """Return the SQL of an expression that is used more than once."""
        if one.operation in ("column", "literal"):
            return self.value(one)
        if one not in self._short:
            tree = self.value(one)
            below = [
                self._level[of.name] for of in tree.find_all(exp.Column) if of.name in self._level
            ]
            name = self._short[one] = f"e{len(self._short)}"
            self._level[name], self._trees[name] = 1 + max(below, default=-1), tree
        return exp.column(self._short[one])

    # --- conditions ----------------------------------------------------------------------------

    def comparison(self, one: Node) -> Any:
        """Return a comparison, which is false on NULL."""
        left, right = map(self.value, one.of)
        return sql.known(sql.compare(left, one.operation, right))

    def connective(self, one: Node) -> Any:
        """Return a conjunction or a disjunction."""
        left, right = map(self.value, one.of)
        return (sql.conjunction if one.operation == "and" else sql.disjunction)(left, right)

    def is_in(self, one: Node) -> Any:
        """Return whether a value is one of some constants."""
        (own,) = one.of
        values = [self.constant(each, own.kind) for each in one.given]
        if not values:
            return exp.false()
        return sql.known(exp.In(this=self.value(own), expressions=values))

    # --- numbers -------------------------------------------------------------------------------

    def arithmetic(self, one: Node) -> Any:
        """Return a sum, difference, product or quotient."""
        make = _ARITHMETIC[one.operation]
        if one.kind is float:
            scaled = one.operation in "*/"
            options = {"typed": True, "safe": False} if make is exp.Div else {}
            own, other = (self._tame(each, scaled=scaled) for each in one.of)
            if make is exp.Div:
                other = exp.Nullif(this=sql.fresh(other), expression=self._float(0.0))
            return sql.binary(make, own, other, **options)
        left, right = (self._dialect.exact(self.value(each)) for each in one.of)
        return self._dialect.narrow(sql.binary(make, left, right))

    def _tame(self, one: Node, *, scaled: bool) -> Any:
        """Return an operand of float arithmetic, which then cannot overflow.

        :param scaled: whether it is multiplied or divided, and so must not be tiny
        """
        if one.operation == "literal":
            known: Any = one.given
            small = scaled and abs(known) < LEAST_FLOAT
            return exp.Null() if abs(known) > MOST_FLOAT else self._float(0.0 if small else known)
        if one.operation == "cast" and one.of[0].kind is int:  # neither large nor tiny
            return self.value(one)
        own = self._named(one)
        below = sql.compare(own, "<", self._float(-MOST_FLOAT))
        above = sql.compare(own, ">", self._float(MOST_FLOAT))
        cases = [(sql.disjunction(below, above), exp.Null())]
        if scaled:
            above = sql.compare(own, ">", self._float(-LEAST_FLOAT))
            below = sql.compare(own, "<", self._float(LEAST_FLOAT))
            cases.append((sql.conjunction(above, below), self._float(0.0)))
        return sql.case(cases, own)

    def _float(self, value: float) -> Any:
        return self._dialect.constant(value, float)

    def floor_division(self, one: Node) -> Any:
        """Return the quotient of integers, rounded down; NULL if the divisor is not positive.

        Engines differ in the rounding of negative quotients, so only others are asked for.
        """
        own, by = map(self._named, one.of)
        by = sql.case([(sql.compare(by, ">=", exp.Literal.number(1)), by)], exp.Null())
        mirrored = exp.Neg(this=sql.binary(exp.Add, own, exp.Literal.number(1)))
        below = exp.Neg(this=self._quotient(sql.paren(mirrored), by))
        shifted = sql.binary(exp.Sub, sql.paren(below), exp.Literal.number(1))
        positive = sql.compare(own, ">=", exp.Literal.number(0))
        return sql.case([(positive, self._quotient(own.copy(), by.copy()))], shifted)

    def _quotient(self, left: Tree, right: Tree) -> Any:
        return sql.paren(self._dialect.quotient(left, right))

    def clip(self, one: Node) -> Any:
        """Return a value between two bounds; NULL of NULL."""
        (of,) = one.of
        return sql.clamped(self._named(of), *(self.constant(each, of.kind) for each in one.given))

    def cut(self, one: Node) -> Any:
        """Return the label of a value's bin, by bisection."""
        (of,) = one.of
        edges, labels, closed = one.given
        own, sign = self._named(of), "<" if closed else "<="
        trees = [self.constant(each, of.kind) for each in edges]
        values = [self.constant(each, one.kind) for each in labels]
        found = bisected(own, sign, trees, values)
        return sql.case([(sql.is_null(own), exp.Null())], found)

    # --- texts ---------------------------------------------------------------------------------

    def lower(self, one: Node) -> Any:
        """Return a text in small letters; of A to Z only, since engines differ in others."""
        letters = map(exp.Literal.string, (ascii_uppercase, ascii_lowercase))
        parts = [self.value(*one.of), *letters]
        return self._dialect.by_bytes(exp.Anonymous(this="TRANSLATE", expressions=parts))

    def length(self, one: Node) -> Any:
        """Return the number of characters."""
        return cast(exp.Anonymous(this="LENGTH", expressions=[self.value(*one.of)]), int)

    # --- choices -------------------------------------------------------------------------------

    def case(self, one: Node) -> Any:
        """Return the value of the first condition that holds."""
        trees = [self.value(each) for each in one.of]
        pairs = len(trees) // 2
        cases = list(zip(trees[: 2 * pairs : 2], trees[1 : 2 * pairs : 2], strict=True))
        return sql.case(cases, trees[-1] if len(trees) % 2 else exp.Null())

    # --- dates and casts -----------------------------------------------------------------------

    def part(self, one: Node) -> Any:
        """Return a part of a date or timestamp."""
        (of,) = one.of
        name = self._dialect.weekday if one.given == "weekday" else str(one.given).upper()
        found = exp.Extract(this=exp.var(name), expression=self._named(of))
        return self._if_known(of, cast(found, int))

    def cast(self, one: Node) -> Any:
        """Return a value in another type; NULL if it has none."""
        (of,) = one.of
        if of.kind is int:
            return self._dialect.read(cast(self.value(of), one.kind), one.kind)
        own = self._named(of)
        if of.kind in _FIRST:
            return self._if_known(of, self._dialect.read(cast(own, one.kind), one.kind))
        if of.kind is bool:
            cases = [(sql.is_null(own), exp.Null()), (own, exp.Literal.number(1))]
            return sql.case(cases, exp.Literal.number(0))
        if of.kind is str:
            matches = self._dialect.matches(own, _INTEGER if one.kind is int else _DAY)
            if one.kind is int:
                found = self._dialect.narrow(self._dialect.exact(own.copy()))
            else:
                year = sql.compare(own, ">=", self.constant("0001", str))
                matches, found = sql.conjunction(matches, year), cast(own.copy(), date)
            return sql.case([(matches, found)], exp.Null())
        return self._whole(own)

    def _whole(self, own: Tree) -> Any:
        """Return a float without its fraction, as an integer."""
        above = sql.compare(own, ">", self._float(float(-_BEYOND)))
        inside = sql.conjunction(above, sql.compare(own, "<", self._float(float(_BEYOND))))
        up = exp.Neg(this=exp.Floor(this=sql.paren(exp.Neg(this=own.copy()))))
        cases = [
            (sql.paren(sql.inverted(sql.known(inside))), exp.Null()),
            (sql.compare(own, "<", self._float(0.0)), cast(sql.paren(up), int)),
        ]
        return sql.case(cases, cast(exp.Floor(this=own.copy()), int))

    def _if_known(self, of: Node, found: Tree) -> Any:
        """Return what is found of a date or timestamp of the years 1 to 9999, else NULL."""
        own = self._named(of)
        after = sql.compare(own, ">=", self.constant(_FIRST[of.kind], of.kind))
        inside = sql.conjunction(
            after, sql.compare(own, "<=", self.constant(_LAST[of.kind], of.kind))
        )
        return sql.case([(inside, found)], exp.Null())


_RENDER: dict[str, Callable[[Values, Node], Any]] = {
    **dict.fromkeys(sql.COMPARISONS, Values.comparison),
    **dict.fromkeys(("and", "or"), Values.connective),
    **dict.fromkeys(_ARITHMETIC, Values.arithmetic),
    "not": lambda self, one: sql.paren(sql.inverted(self.value(*one.of))),
    "holds": lambda self, one: sql.known(self.value(*one.of)),  # false on NULL
    "is_null": lambda self, one: sql.paren(sql.is_null(self.value(*one.of))),
    "is_in": Values.is_in,
    "//": Values.floor_division,
    "clip": Values.clip,
    "lower": Values.lower,
    "length": Values.length,
    "cut": Values.cut,
    "case": Values.case,
    "fill_null": lambda self, one: sql.or_else(*map(self.value, one.of)),
    "part": Values.part,
    "cast": Values.cast,
}
