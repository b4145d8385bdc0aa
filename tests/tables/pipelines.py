"""Random tables and pipelines, hostile to engines: names, texts, numbers, and missing values."""

from dataclasses import dataclass, field
from datetime import date, datetime
from math import inf, nan
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc

from . import reference

LARGE = 2**63 - 1
TEXTS = ("", "a", "A", "b", "é", "e\u0301", "ß", "ss", "a ", " a", "'", "''", '"', "\\", "\\'", "`")
TEXTS += ("a\nb", "\t", "%s", "%", "$1", "?", ":p1", "{x}", "--", "/*", ";", "NULL", "null", "NaN")
TEXTS += ("\U0001f600", "\uffff", "0", "1", "true", "'; DROP TABLE t; --", "\r", "\x01", "x" * 300)
FLOATS = (0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.1, 0.3, 0.005, 1.005)
FLOATS += (5e-324, -5e-324, 1e-310, 1e300, -1e300, 1e16, 2.0**53, inf, -inf, nan)
TIMES = (datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1))
VALUES: dict[type, tuple[Any, ...]] = {
    int: (0, 1, 2, 3, -1, -2, 7, 2**31, -(2**31) - 1, LARGE, -LARGE),
    **{float: FLOATS, str: TEXTS, bool: (True, False)},
    date: (date.min, date(1970, 1, 1), date(2024, 2, 29), date(2021, 1, 3), date.max),
    datetime: (*TIMES, datetime(2024, 2, 29, 13, 14, 15, 123457), datetime.max),
}
TEXTS_OF_HASHES = st.sampled_from(["fair", "key", "é'|"])
STATISTICS = ("count", "sum", "mean", "variance", "stdev")
NORMS = st.sampled_from(["l1", "l2", "linf"])
NAMES = ("age", "Region", "per son", 'quo"te', "back`tick", "a'b", "select", "c0", "t", "k0")
NAMES += ("é", "r", "i", "n", "100%", "a.b", "$1", "x\\y", ";--", "group")
STORED = {int: "BIGINT", float: "DOUBLE PRECISION", str: "TEXT", bool: "BOOLEAN", date: "DATE"}
STORED[datetime] = "TIMESTAMP"
STORED |= {oc.tables.Decimal(scale): f"DECIMAL(12, {scale})" for scale in (2, 3)}


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
RELAXED = {"deadline": None, "suppress_health_check": SLOW}


def check(test, examples, *engines):
    """Call a test with so many random draws on engines."""

    @settings(max_examples=examples, **RELAXED)
    @given(st.data())
    def each(draws):
        test(*engines, draws.draw)

    each()


def rows_of(table):
    """The rows of a table, as they are read."""
    text, parameters = table.engine().query(table.relation)
    return table.engine().run(text, parameters)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def values(kind, missing=False):
    one = st.sampled_from(VALUES[kind])
    return st.one_of(st.none(), one, one, one) if missing else one


def public(kind):
    """Values that equal themselves."""
    return values(kind).filter(lambda one: one == one)


@dataclass
class Data:
    """A schema, the unit's column and rows."""

    schema: dict[str, type]
    unit: str
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, schema, unit, rows):
        """Of rows that are tuples."""
        return cls(schema, unit, [dict(zip(schema, row, strict=True)) for row in rows])


@st.composite
def data(draw, least=0, most=12):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=3, max_size=6, unique=True))
    unit, *others = names
    schema = {unit: draw(st.sampled_from([int, str]))}
    schema[others[0]] = draw(st.sampled_from([int, float]))  # one that can be added
    schema[others[1]] = draw(st.sampled_from([int, str, bool, date, datetime]))  # a key
    for name in others[2:]:
        schema[name] = draw(st.sampled_from(list(VALUES)))
    few = {}
    for name, kind in schema.items():
        few[name] = draw(st.lists(values(kind, True), min_size=1, max_size=4))
    row = st.tuples(*(st.sampled_from(few[name]) for name in schema)).map(
        lambda values: dict(zip(schema, values, strict=True))
    )
    return Data(schema, unit, draw(st.lists(row, min_size=least, max_size=most)))


def kinds_of(columns, schema):
    """The types of what the rows of a unit are made into."""
    counts = {name: one.statistic.startswith("count") for name, one in columns.items()}
    return {name: int if counts[name] else schema[one.column] for name, one in columns.items()}


@dataclass
class Pipeline:
    """Steps and an aggregate: names of transformations with their arguments."""

    parts: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def build(self, space):
        """The transformation that the package makes."""
        for name, arguments in self.parts:
            space = space >> vars(oc.t)[f"then_{name}"](**arguments)
        return space

    def answer(self, rows, unit, schema):
        """The answer in plain Python."""
        found, schema = reference.scanned(rows, unit), dict(schema)
        for name, arguments in self.parts:
            weighted = name in ("table_prefixes", "table_answers")
            unused = () if weighted else ("norm", "materialize")
            plain = {key: one for key, one in arguments.items() if key not in unused}
            if name == "group_truncate":
                plain["rows_each"] = plain.pop("rows")
            if name == "public_join":
                plain["partners"] = plain.pop("rows")
                added = plain["schema"]
            elif name == "with_columns":
                one = reference.kind_of
                added = {fresh: one(value, schema) for fresh, value in plain["columns"].items()}
            if name in ("where", "with_columns"):
                plain["schema"] = schema
            if name == "per_unit":
                schema = {unit: schema[unit], **kinds_of(plain["columns"], schema)}
            found = getattr(reference, name)(found, unit, **plain)
            schema |= added if name in ("public_join", "with_columns") else {}
        return found


@st.composite
def expressions(draw, schema, kind, depth=3):
    """An expression of a type; half of the leaves are columns, if there are some of the type."""
    columns = [name for name, of in schema.items() if of is kind]
    if not depth or draw(st.integers(0, 4)) == 0:
        if columns and draw(st.booleans()):
            return oc.tables.col(draw(st.sampled_from(columns)))
        return oc.tables.lit(draw(public(kind)))
    of = lambda kind: draw(expressions(schema, kind, depth - 1))  # noqa: E731
    form = draw(st.sampled_from([*FORMS[kind], *FORMS[None]]))
    if form == "case":
        found = oc.tables.when(of(bool)).then(of(kind))
        found = found.when(of(bool)).then(of(kind)) if draw(st.booleans()) else found
        return found.otherwise(of(kind)) if draw(st.booleans()) else found
    if form == "fill_null":
        return of(kind).fill_null(of(kind))
    if form in ("==", "<=", ">"):
        other = draw(st.sampled_from(list(VALUES)))
        return reference.COMPARE[form](of(other), of(other))
    if form in ("&", "|"):
        return of(bool) & of(bool) if form == "&" else of(bool) | of(bool)
    if form == "~":
        return ~of(bool)
    other = draw(st.sampled_from(list(VALUES)))
    if form == "is_null":
        return of(other).is_null()
    if form == "is_in":
        return of(other).is_in(draw(st.lists(public(other), min_size=1, max_size=4)))
    if form == "between":
        return of(other).between(draw(public(other)), draw(public(other)))
    if form in ("+", "-", "*"):
        pair = [of(kind), number(of, draw, kind)]
        return reference.ARITHMETIC[form](*draw(st.permutations(pair)))
    if form == "/":
        divisor = draw(st.sampled_from([0.5, -3.0, 1e-150, 7, -1e300, 5e150]))
        if draw(st.booleans()):
            ends = draw(st.sampled_from([(1e-150, 2.0), (-1e300, -1e-3), (1.0, inf)]))
            divisor = of(float).clip(*ends) if draw(st.booleans()) else of(float)
        return number(of, draw, float) / divisor
    if form == "//":
        return of(int) // (of(int) if draw(st.booleans()) else draw(st.sampled_from([1, 7, LARGE])))
    if form in ("lower", "length"):
        return getattr(of(str), form)()
    if form == "clip":
        return of(kind).clip(*sorted([draw(public(kind)), draw(public(kind))]))
    if form == "cut":
        other = draw(st.sampled_from([one for one in VALUES if one is not bool]))
        order = reference.sortable
        breaks = st.lists(public(other), min_size=1, max_size=6, unique_by=order)
        breaks = sorted(draw(breaks), key=order)
        labels = [f"bin {place}" for place in range(len(breaks) + 1)] if kind is str else None
        return of(other).cut(breaks, labels, left_closed=draw(st.booleans()))
    if form == "part":
        timed = draw(st.booleans())
        names = ["year", "month", "day", "week", "weekday", *(["hour", "minute"] if timed else [])]
        return getattr(of(datetime if timed else date).dt, draw(st.sampled_from(names)))()
    return of(draw(st.sampled_from(form))).cast(kind)


FORMS = {  # of each type; those of casts are the types before
    None: ["case", "fill_null"],
    int: [*"+-*", "//", "clip", "cut", "part", "length", (float, bool, str)],
    float: [*"+-*/", "clip", (int,)],
    str: ["cut", "lower", (int, date)],
    bool: ["==", "<=", ">", "&", "|", "~", "is_null", "is_in", "between"],
    date: ["clip", (str, datetime)],
    datetime: ["clip", (date,)],
}


def number(of, draw, kind):
    """A number; of an integer that becomes a float, not every constant can."""
    found = of(int if kind is int or draw(st.booleans()) else float)
    return found.clip(-(2**53), 2**53) if kind is float and found.operation == "literal" else found


def predicates(schema):
    return expressions(schema, bool)


def keyed(schema):
    return [name for name, kind in schema.items() if kind is not float]


@st.composite
def some_keys(draw, schema, by, most=5, null=True):
    kinds = [schema[name] for name in by]
    value = public if not null else lambda kind: st.one_of(st.none(), public(kind))
    one = value(kinds[0]) if len(by) == 1 else st.tuples(*map(value, kinds))
    return draw(st.lists(one, min_size=1, max_size=most, unique=True))


def columns_of(names, most):
    """Some of the names; if there are none, the example is none either."""
    if not names:
        return st.nothing()
    return st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)


@st.composite
def of_units(draw, schema):
    """What the rows of a unit are made into."""
    make = draw(st.sampled_from(["count", "count_distinct", "sum", "min", "max"]))
    fits = {"sum": (int, float), "min": (int, float, str, date, datetime)}
    kinds = fits.get("min" if make == "max" else make, (int, str, bool, date, datetime))
    columns = [name for name, kind in schema.items() if kind in kinds]
    if make == "count" or not columns:
        return oc.tables.count()
    column = draw(st.sampled_from(columns))
    low, wide = draw(st.integers(-100, 2**60)), draw(st.integers(0, 2**60))
    given = {int: [(low, low + wide)], float: [(-7.0, float(wide % 999)), 0.25]}
    return vars(oc.tables)[make](column, *(given[schema[column]] if make == "sum" else []))


STEPS = ["where", "with_columns", "table_select", "truncate", "group_truncate", "public_join"]
STEPS.append("per_unit")


@st.composite
def steps(draw, schema, unit):
    """A step, and the schema after it."""
    name = draw(st.sampled_from(STEPS))
    if name == "where":
        return (name, {"predicate": draw(predicates(schema))}), schema
    if name == "with_columns":
        fresh = [one for one in NAMES if one.casefold() not in {name.casefold() for name in schema}]
        kinds = {one: draw(st.sampled_from(list(VALUES))) for one in draw(columns_of(fresh, 2))}
        columns = {one: draw(expressions(schema, kind)) for one, kind in kinds.items()}
        return (name, {"columns": columns}), {**schema, **kinds}
    if name == "table_select":
        kept = draw(columns_of(list(schema), 4))
        after = {one: kind for one, kind in schema.items() if one in kept or one == unit}
        return (name, {"columns": kept}), after
    if name == "truncate":
        order = draw(st.one_of(st.just([]), columns_of(list(schema), 2)))
        rows = {"per_unit": draw(st.integers(1, 3)), "order_by": order}
        rows["descending"] = bool(order) and draw(st.booleans())
        return (name, {**rows, "key": draw(TEXTS_OF_HASHES)}), schema
    if name == "per_unit":
        columns = draw(st.dictionaries(st.sampled_from(NAMES), of_units(schema), min_size=1))
        columns.pop(unit, None)
        columns = columns or {"xx": oc.tables.count()}
        return (name, {"columns": columns}), {unit: schema[unit], **kinds_of(columns, schema)}
    by = draw(columns_of(keyed(schema), 2))
    if name == "group_truncate":
        count = st.integers(1, 3)
        numbers = {"groups": draw(count), "rows": draw(count)}
        return (name, {"by": by, **numbers, "key": draw(TEXTS_OF_HASHES)}), schema
    fresh = [one for one in NAMES if one.casefold() not in {name.casefold() for name in schema}]
    kinds = st.sampled_from(list(VALUES))
    added = {one: draw(kinds) for one in draw(columns_of(fresh, 2))}
    keys = draw(some_keys(schema, by, null=False))
    partner = [st.one_of(st.none(), public(kind)) for kind in added.values()]
    value = partner[0] if len(partner) == 1 else st.tuples(*partner)
    partners = {key: draw(value) for key in keys}
    return (name, {"on": by, "schema": added, "rows": partners}), {**schema, **added}


@st.composite
def answers(draw, schema, numbers):
    """Several answers, whose bounds differ by more than a quantum."""
    found = []
    for statistic in draw(st.lists(st.sampled_from(STATISTICS), min_size=1, max_size=3)):
        column = draw(st.sampled_from(numbers))
        quantum = None if schema[column] is int else draw(st.sampled_from([0.25, 1.0, 1 / 3]))
        low, wide = draw(st.integers(-100, 100)), draw(st.integers(2, 300))
        ends = (low, low + wide) if quantum is None else (float(low), float(low + wide))
        given = () if statistic == "count" else (column, ends, quantum)
        found.append(oc.tables.Answer(statistic, *given))
    arguments = {"answers": found, "norm": draw(NORMS)}
    if draw(st.booleans()):
        by = draw(columns_of(keyed(schema), 2))
        arguments |= {"by": by, "keys": draw(some_keys(schema, by))}
    return arguments


@st.composite
def aggregates(draw, schema):
    numbers = [name for name, kind in schema.items() if kind in (int, float)]
    names = ["table_count", "distinct_units", "table_count", "distinct_values", "rows_per_unit"]
    if numbers:
        names += ["table_sum", "table_sum", "table_histogram", "quantile_scores"] * 2
        names += ["table_prefixes", "table_answers", "table_answers"] * 2
    name = draw(st.sampled_from(names))
    if name == "rows_per_unit":
        sizes = st.lists(st.integers(-1, 5), min_size=2, max_size=6, unique=True)
        return name, {"edges": sorted(draw(sizes))}
    arguments: dict[str, Any] = {}
    grouped = ("table_count", "table_sum", "distinct_units", "distinct_values")
    if name in grouped and draw(st.booleans()):
        by = draw(columns_of(keyed(schema), 2))
        arguments = {"by": by, "keys": draw(some_keys(schema, by))}
        arguments["norm"] = draw(NORMS)
    if name == "distinct_values":
        arguments["columns"] = draw(columns_of(keyed(schema), 2))
    if name in ("table_count", "distinct_units", "distinct_values"):
        return name, arguments
    if name == "table_answers":
        return name, draw(answers(schema, numbers))
    column = draw(st.sampled_from(numbers))
    arguments["column"] = column
    if name == "table_sum":
        ends = st.integers(-(2**62), 2**62) | st.integers(-3, 3)
        if schema[column] is float:
            ends = st.floats(-1000, 1000) | st.sampled_from([0.0, 1.0, -1.0, 5e-324])
            quanta = st.sampled_from([0.01, 0.1, 0.25, 1.0, 1 / 3, 1e-9, 100.0, 1e90])
            arguments["quantum"] = draw(quanta)
        arguments["bounds"] = tuple(sorted([draw(ends), draw(ends)]))
        return name, arguments
    edges = sorted(draw(st.lists(public(schema[column]), min_size=2, max_size=7, unique=True)))
    if name == "table_prefixes" or (name == "table_histogram" and draw(st.booleans())):
        by = draw(columns_of(keyed(schema), 2))
        groups = {"by": by, "keys": draw(some_keys(schema, by))}
        numbers = {"edges" if name == "table_histogram" else "cuts": edges}
        return name, {"column": column, **numbers, **groups, "norm": draw(NORMS)}
    if name == "table_histogram":
        return name, {"column": column, "edges": edges, "norm": draw(NORMS)}
    alpha = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    return name, {"column": column, "candidates": edges, "alpha": alpha}


@st.composite
def pipelines(draw, schema, unit, most=4):
    parts = []
    for _ in range(draw(st.integers(0, most))):
        part, schema = draw(steps(schema, unit))
        parts.append(part)
    aggregate = draw(aggregates(schema))
    bounded = any(name in ("truncate", "group_truncate", "per_unit") for name, _ in parts)
    free = ("distinct_units", {}), "rows_per_unit"
    if not bounded and aggregate not in free and aggregate[0] not in free:
        parts.append(("truncate", {"per_unit": draw(st.integers(1, 4))}))
    return Pipeline([*parts, aggregate])
