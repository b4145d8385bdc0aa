"""What differs between engines in the rendering of a plan."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date, datetime
from typing import Any, ClassVar

try:
    from sqlglot import exp as exp
except ImportError as error:
    raise ImportError(
        "tables need sqlglot, which the extra named tables installs; from a clone: "
        "pip install -e '.[tables]'",
        name="sqlglot",
    ) from error

Tree = exp.Expression  # a part of a statement
Type = exp.DataType.Type
TYPES = {
    int: Type.BIGINT,
    float: Type.DOUBLE,
    str: Type.TEXT,
    bool: Type.BOOLEAN,
    date: Type.DATE,
    datetime: Type.TIMESTAMPNTZ,
}


def typed(kind: type) -> Any:
    """Return the type of a column in a syntax tree."""
    return exp.DataType(this=TYPES[kind], nested=False)


def cast(one: Tree, kind: type) -> Any:
    """Return an expression cast to a column's type."""
    return exp.Cast(this=one, to=typed(kind))


def decimal(digits: int, scale: int) -> Any:
    """Return the type of a decimal number."""
    numbers = [exp.DataTypeParam(this=exp.Literal.number(one)) for one in (digits, scale)]
    return exp.DataType(this=Type.DECIMAL, expressions=numbers)


class Dialect:
    """The rendering for one engine. It holds no state.

    :ivar name: of the dialect in sqlglot
    :ivar collation: compares texts by their bytes
    :ivar weekday: name of the day of the week as a part of a date
    :ivar search: how it finds a value among many edges, as in ``clauses.py``
    :ivar underflows: whether a product of doubles that is too small for one is an error
    """

    name: ClassVar[str]
    collation: ClassVar[str]
    weekday: ClassVar[str] = "ISODOW"
    search: ClassVar[str]
    underflows: ClassVar[bool] = False

    def text(self, tree: Tree) -> str:
        """Return the statement of a tree."""
        return str(tree.sql(dialect=self.name, copy=False))

    def stored(self, column: Tree, kind: type) -> Any:
        """Return a stored column in its type: a cast that cannot fail. NaN becomes NULL."""
        return self.read(cast(column, kind), kind)

    def read(self, one: Tree, kind: type) -> Any:
        """Return a value as the plan means it: texts are compared by bytes, NaN is NULL."""
        if kind is str:
            return self.by_bytes(one)
        if kind is float:  # NaN equals NaN in each engine
            return exp.Nullif(this=one, expression=cast(exp.Literal.string("NaN"), float))
        return one

    def decimal(self, column: Tree, scale: int) -> Any:
        """Return a stored decimal of at most 18 digits, times 10^scale, as an integer."""
        factor = exp.Cast(this=exp.Literal.string(str(10**scale)), to=decimal(scale + 1, 0))
        return cast(exp.Paren(this=exp.Mul(this=column, expression=factor)), int)

    def by_bytes(self, one: Tree) -> Any:
        """Return a text that is compared by its bytes."""
        return exp.Collate(this=one, expression=exp.to_identifier(self.collation, quoted=True))

    def source(self, reference: tuple[str, ...]) -> Any:
        """Return what is scanned."""
        _, *parts = reference
        names = [exp.to_identifier(part, quoted=True) for part in parts]
        keys = ("this", "db", "catalog")
        table = exp.Table(**dict(zip(keys, reversed(names), strict=False)))
        return exp.alias_(table, "t", table=True)

    def parameter(self, position: int) -> Any:
        """Return the place of a parameter; positions begin with 1."""
        return exp.Parameter(this=exp.Literal.number(position))

    def text_value(self, parameter: Tree) -> Any:
        """Return a parameter as a text."""
        return self.by_bytes(cast(parameter, str))

    def array(self, parameter: Tree, kind: type) -> Any:
        """Return a parameter as an array."""
        array = exp.DataType(this=Type.ARRAY, expressions=[typed(kind)], nested=True)
        return exp.Cast(this=parameter, to=array)

    def rows(self, arrays: Sequence[Any], names: Sequence[str], kinds: Sequence[type]) -> Any:
        """Return a query whose columns are the elements of arrays of one length."""
        columns = [
            exp.alias_(exp.Unnest(expressions=[one]), name)
            for one, name in zip(arrays, names, strict=True)
        ]
        return self._read(exp.select(*columns, copy=False), names, kinds)

    def _read(self, public: Tree, names: Sequence[str], kinds: Sequence[type]) -> Any:
        """Return a query of columns as the plan means them."""
        read = [
            exp.alias_(self.read(self.element(exp.column(name), kind), kind), name)
            for name, kind in zip(names, kinds, strict=True)
        ]
        return exp.select(*read, copy=False).from_(subquery(public, "p"), copy=False)

    def element(self, one: Tree, kind: type) -> Any:
        """Return an element of an array in a column's type."""
        del kind
        return one

    def constant(self, value: Any, kind: type) -> Any:
        """Return a number, a Boolean, a date or a timestamp, in a column's type."""
        if kind is bool:
            return exp.true() if value else exp.false()
        if kind is int:
            return cast(exp.Literal.number(int(value)), int)
        return cast(exp.Literal.string(str(value)), kind)  # of a double, the shortest that is it

    def exact(self, one: Tree) -> Any:
        """Return an integer in a type of at least 2^124, whose products and sums are exact."""
        return exp.Cast(this=one, to=decimal(38, 0))

    def narrow(self, one: Tree) -> Any:
        """Return an exact integer in 64 bits; NULL if it does not fit. It is computed once."""
        low, high = (self.exact(exp.Literal.string(str(end))) for end in (-(2**63) - 1, 2**63))
        kept: Any = exp.Greatest(this=one, expressions=[low], ignore_nulls=True)
        kept = exp.Least(this=kept, expressions=[high], ignore_nulls=True)
        inside = exp.Nullif(
            this=exp.Nullif(this=kept, expression=low.copy()), expression=high.copy()
        )
        return cast(inside, int)

    def quotient(self, left: Tree, right: Tree) -> Any:
        """Return the quotient of integers that are not negative, rounded down."""
        return exp.IntDiv(this=left, expression=right)

    def matches(self, one: Tree, pattern: str) -> Any:
        """Return whether all of a text has a pattern, which has no backslash."""
        return exp.RegexpLike(this=one, expression=exp.Literal.string(f"^({pattern})$"))

    def barrier(self, query: Tree) -> Any:
        """Return a query whose columns the engine computes once, however often they are used."""
        return query

    def wide(self, one: Tree) -> Any:
        """Return 64-bit integers in a type whose sum cannot overflow."""
        return one


class DuckDB(Dialect):
    """DuckDB. The sum of 64-bit integers has 128 bits."""

    name, collation, search = "duckdb", "C", "asof"

    def decimal(self, column: Tree, scale: int) -> Any:
        """Return a stored decimal as an integer. DuckDB would multiply in 18 digits."""
        return super().decimal(exp.Cast(this=column, to=decimal(38, scale)), scale)

    def exact(self, one: Tree) -> Any:
        """Return an integer in 128 bits; an overflow is an error."""
        return exp.Cast(this=one, to=exp.DataType(this=Type.INT128))

    def stored(self, column: Tree, kind: type) -> Any:
        """Return a stored column in its type.

        A timestamp with a time zone is read as an instant of UTC, whatever the zone of the session.
        """
        if kind is not datetime:
            return super().stored(column, kind)
        instant = exp.Anonymous(this="EPOCH_US", expressions=[column])
        return exp.Anonymous(this="MAKE_TIMESTAMP", expressions=[instant])

    def narrow(self, one: Tree) -> Any:
        """Return an exact integer in 64 bits; NULL if it does not fit."""
        return exp.TryCast(this=one, to=typed(int))

    def source(self, reference: tuple[str, ...]) -> Any:
        """Return a table, or Parquet files. Folders are no columns.

        NaN is in no statistics of a file, so DuckDB takes a comparison with it for false, unless
        told.
        """
        kind, *parts = reference
        if kind == "table":
            return super().source(reference)
        paths = exp.Array(expressions=[exp.Literal.string(one) for one in parts])
        options = {"hive_partitioning": exp.false(), "can_have_nan": exp.true()}
        given = [
            exp.EQ(this=exp.to_identifier(name), expression=one) for name, one in options.items()
        ]
        read = exp.ReadParquet(expressions=[paths, *given])
        return exp.alias_(exp.Table(this=read), "t", table=True)


class PostgreSQL(Dialect):
    """PostgreSQL. The sum of 64-bit integers is a numeric of any size."""

    name, collation, search = "postgres", "C", "function"
    underflows = True

    def decimal(self, column: Tree, scale: int) -> Any:
        """Return a stored decimal as an integer; NaN, which a numeric can be, is NULL."""
        nan = exp.Cast(this=exp.Literal.string("NaN"), to=exp.DataType(this=Type.DECIMAL))
        return super().decimal(exp.Nullif(this=column, expression=nan), scale)

    def quotient(self, left: Tree, right: Tree) -> Any:
        """Return the quotient of integers that are not negative, rounded down."""
        return exp.Div(this=left, expression=right, typed=True, safe=False)

    def barrier(self, query: Any) -> Any:
        """Return a query that is not merged with the one around it."""
        return query.offset(0, copy=False)


class Spark(Dialect):
    """Spark. The sum of 64-bit integers would wrap, so they are decimals of 38 digits."""

    name, collation, search = "spark", "UTF8_BINARY", "parts"
    weekday = "DAYOFWEEK_ISO"

    def matches(self, one: Tree, pattern: str) -> Any:
        """Return whether all of a text has a pattern. In Java ``$`` is before a newline, too."""
        known = exp.Literal.string(f"^({pattern})$(?!a|[^a])")
        return exp.RegexpLike(this=one, expression=known)

    def parameter(self, position: int) -> Any:
        """Return the place of a parameter, which has a name in Spark."""
        return exp.Placeholder(this=f"p{position}")

    def array(self, parameter: Tree, kind: type) -> Any:
        """Return a parameter, a text of JSON, as an array of texts. What is no JSON is an error."""
        del kind  # rows() casts the elements, which cannot fail
        listed, *mode = map(exp.Literal.string, ("ARRAY<STRING>", "mode", "FAILFAST"))
        keys, values = (exp.Array(expressions=[one]) for one in mode)
        options = exp.VarMap(keys=keys, values=values)
        return exp.Anonymous(this="FROM_JSON", expressions=[parameter, listed, options])

    def rows(self, arrays: Sequence[Any], names: Sequence[str], kinds: Sequence[type]) -> Any:
        """Return a query whose columns are the elements of arrays of one length."""
        inline = exp.Inline(this=exp.ArraysZip(expressions=list(arrays)))
        identifiers = [exp.to_identifier(name) for name in names]
        public = exp.select(exp.Aliases(this=inline, expressions=identifiers), copy=False)
        return self._read(public, names, kinds)

    def element(self, one: Tree, kind: type) -> Any:
        """Return an element, which is a text, in a column's type: a cast that cannot fail."""
        return cast(one, kind)

    def wide(self, one: Tree) -> Any:
        """Return 64-bit integers as decimals of 38 digits."""
        return self.exact(one)


DIALECTS: dict[str, Dialect] = {one.name: one() for one in (DuckDB, PostgreSQL, Spark)}


# Expressions that all statements are made of, with the parentheses that they need.

COMPARISONS = {
    "==": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def subquery(query: Tree, name: str) -> Any:
    """Return a query in parentheses, with a name."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))


def select(columns: Iterable[Any], query: Tree, condition: Tree | None = None) -> Any:
    """Return a query of some columns of another one."""
    made = exp.select(*(one.copy() for one in columns), copy=False)
    made = made.from_(subquery(query, "t"), copy=False)
    return made if condition is None else made.where(condition, copy=False)


def fresh(one: Tree) -> Any:
    """Return an expression that is part of no other one: itself, or a copy."""
    return one if one.parent is None else one.copy()


def paren(one: Tree) -> Any:
    """Return an expression in parentheses."""
    return exp.Paren(this=fresh(one))


def binary(make: Callable[..., Any], left: Tree, right: Tree, **options: Any) -> Any:
    """Return an operation on two expressions, in parentheses."""
    return paren(make(this=fresh(left), expression=fresh(right), **options))


def compare(left: Tree, sign: str, right: Tree) -> Any:
    """Return a comparison."""
    return COMPARISONS[sign](this=fresh(left), expression=fresh(right))


def is_null(one: Tree) -> Any:
    """Return whether an expression is NULL."""
    return exp.Is(this=fresh(one), expression=exp.Null())


def inverted(condition: Tree) -> Any:
    """Return the negation of a condition."""
    return exp.Not(this=paren(condition))


def not_null(name: str) -> Any:
    """Return whether a column is not NULL."""
    return inverted(is_null(exp.column(name)))


def known(comparison: Tree) -> Any:
    """Return a comparison that is false where SQL does not know it."""
    return or_else(paren(comparison), exp.false())


def or_else(one: Tree, other: Tree) -> Any:
    """Return an expression, or another one where it is NULL."""
    return exp.Coalesce(this=fresh(one), expressions=[fresh(other)])


def conjunction(left: Tree, *others: Tree) -> Any:
    """Return a conjunction."""
    for right in others:
        left = binary(exp.And, paren(left), paren(right))
    return left


def disjunction(left: Tree, right: Tree) -> Any:
    """Return a disjunction."""
    return binary(exp.Or, paren(left), paren(right))


def equal(names: list[str], keys: list[str], *, null: bool = False) -> Any:
    """Return whether columns of ``t`` are equal to columns of ``k``.

    :param null: whether NULL equals NULL
    """
    sign, pairs = exp.NullSafeEQ if null else exp.EQ, zip(names, keys, strict=True)
    return conjunction(
        *(sign(this=exp.column(one, "t"), expression=exp.column(key, "k")) for one, key in pairs)
    )


def case(cases: list[tuple[Any, Any]], otherwise: Tree) -> Any:
    """Return the value of the first condition that holds, in parentheses."""
    ifs = [exp.If(this=fresh(condition), true=fresh(value)) for condition, value in cases]
    return paren(exp.Case(ifs=ifs, default=fresh(otherwise)))


def clamped(own: Tree, low: Tree, high: Tree) -> Any:
    """Return a value between two bounds; NULL of NULL."""
    return case([(compare(own, "<=", low), low), (compare(own, ">=", high), high)], own)


def window(function: Tree, by: list[str], order: list[str], falling: Collection[str] = ()) -> Any:
    """Return a function over the rows that are equal in ``by``; the order is never empty.

    :param falling: the columns of the order that fall, with NULL at the end
    """
    ordered = [
        exp.Ordered(this=exp.column(name), desc=name in falling, nulls_first=name not in falling)
        for name in order or by
    ]
    return exp.Window(
        this=function,
        partition_by=[exp.column(name) for name in by],
        order=exp.Order(expressions=ordered),
    )
