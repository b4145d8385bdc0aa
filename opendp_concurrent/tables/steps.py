"""Transformations from tables to tables: rows, columns, truncation, joins, and one row a unit.

Each one appends a node to the plan of a table, and nothing runs in the engine. A unit's rows in the
result depend on the unit's own rows only, so the distance in units does not grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from opendp.mod import Domain, Metric, Transformation

from .. import _checks as checks
from .. import _opendp as _native
from ..composition import constructor
from ..errors import InvalidTypeError, InvalidValueError
from . import plan as nodes
from . import schema as schemas
from .domain import GroupBound, Tables, table_domain, tables_of, units, units_in
from .expressions import Answer, Expression
from .numbers import quantised
from .table import Table, table_given
from .typed import Node, checked, checked_value

MOST_ROWS = checks.at_most(2**31 - 1, "a unit has fewer rows")


def step(
    before: Tables,
    after: Tables,
    node: Callable[[nodes.Relation], nodes.Relation],
    *,
    materialize: bool = False,
) -> Transformation:
    """Make a unit-wise transformation, which appends a node to the plan."""

    def then(known: Table) -> Table:
        derived = known.derived(node(known.relation), after)
        return derived.materialized() if materialize else derived

    return _made(before, after, then)


def _made(before: Tables, after: Tables, then: Callable[[Table], Table]) -> Transformation:
    """Make a unit-wise transformation."""
    return _native.make_user_transformation(
        table_domain(before),
        units(),
        table_domain(after),
        units(),
        _native.carry(lambda table: then(table_given(before, table))),
        _native.carry(lambda d_in: units_in(d_in=d_in)),
    )


@constructor
def make_where(input_domain: Domain, input_metric: Metric, predicate: Expression) -> Transformation:
    """Keep the rows of a table for which a predicate holds.

    A predicate holds or does not, also on missing values: a comparison with NULL or NaN does not
    hold, and its negation holds.

    Guarantee: the distance in units does not grow, because each row is kept or not by its own
    values.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param predicate: made of :func:`.col`, with constants of the columns' types; a column of
        Booleans is a condition
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument; for a function or a text of
        SQL, which cannot be shown to be deterministic and total

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute("CREATE TABLE ages AS SELECT 1 AS person, 20 AS age")
    >>> ages = oc.tables.scan(connection, "ages", {"person": int, "age": int}, "person")
    >>> adults = oc.t.make_where(*ages.space, oc.tables.col("age") >= 18)
    >>> count = adults >> oc.t.then_truncate(1) >> oc.t.then_table_count()
    >>> count(ages), count.map(1)
    (1, 1)
    """
    tables = tables_of(input_domain, input_metric)
    known = checked(tables.schema, predicate)
    return step(tables, tables, lambda of: nodes.Where(of, known))


@constructor
def make_with_columns(
    input_domain: Domain, input_metric: Metric, columns: Mapping[str, Expression]
) -> Transformation:
    """Add columns to a table, whose values are expressions on the row.

    A name that the table has already is redefined. All expressions see the row as it was before.

    Guarantee: the distance in units does not grow, and each unit has as many rows as before,
    because each row is mapped to one by its own values, and its unit stays.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param columns: mapping from names to expressions, which are made of :func:`.col`. The columns
        of the unit cannot be redefined, nor those by which the groups of a unit are bounded
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute("CREATE TABLE rides AS SELECT 1 AS person, 90 AS km")
    >>> rides = oc.tables.scan(connection, "rides", {"person": int, "km": int}, "person")
    >>> col = oc.tables.col
    >>> columns = {"far": col("km") > 50, "miles": col("km") * 0.62}
    >>> oc.t.make_with_columns(*rides.space, columns)(rides)
    Table("person": int, "km": int, "far": bool, "miles": float; unit "person")
    """
    tables = tables_of(input_domain, input_metric)
    schema, found = tables.schema, list[tuple[str, Node]]()
    for name, value in checks.mapping("names to expressions", columns=columns).items():
        known = schemas.column_name(columns=name)
        found.append((known, checked_value(schema, value, f"columns[{known!r}]")))
    if not found:
        raise InvalidValueError("columns must have at least one column")
    bounded = {*schema.unit, *(name for one in tables.groups for name in one.by)}
    for name, _ in found:
        if name in bounded:
            raise InvalidValueError(
                f"columns must not redefine {name!r}: it tells units apart, or the groups of a "
                "unit that are bounded; give the column another name"
            )
    after = schema.with_columns({name: one.type for name, one in found})
    schemas.check_distinct("columns", after.names)
    return step(tables, tables.on(after), lambda of: nodes.WithColumns(of, tuple(found), after))


@constructor
def make_table_select(
    input_domain: Domain, input_metric: Metric, columns: Sequence[str]
) -> Transformation:
    """Keep some columns of a table, and the column of the unit.

    Guarantee: the distance in units does not grow.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param columns: names
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE wide AS "
    ...     "SELECT 1 AS person, 20 AS a, 30 AS b"
    ... )
    >>> wide = oc.tables.scan(connection, "wide", {"person": int, "a": int, "b": int}, "person")
    >>> oc.t.make_table_select(*wide.space, ["b"])(wide)
    Table("person": int, "b": int; unit "person")
    """
    tables = tables_of(input_domain, input_metric)
    names = schemas.names_of("columns", tables.schema, columns, tuple(schemas.KINDS))
    schema = tables.schema.keep(names)
    return step(tables, tables.on(schema), lambda of: nodes.Select(of, schema))


@constructor(per_unit=MOST_ROWS)
def make_truncate(
    input_domain: Domain,
    input_metric: Metric,
    per_unit: int,
    order_by: Sequence[str] = (),
    *,
    descending: bool = False,
    key: str = nodes.KEY,
    materialize: bool = False,
) -> Transformation:
    """Keep at most so many rows of each unit.

    The rows are chosen by a hash, so that answers do not lean to small or large values: over the
    key, all rows of a unit are kept with the same probability. The same key keeps the same rows, in
    each query and on each engine. With ``order_by``, the first rows in this order are kept, or the
    last ones; only rows that are equal in these columns are chosen by the hash. Which rows of a
    unit are kept depends on its own rows only.

    A unit with many rows then has less weight in a mean than it has in the table. To choose the
    number of rows, see :func:`.make_rows_per_unit`.

    Guarantee: the distance in units does not grow, and each unit has at most ``per_unit`` rows.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param per_unit: number of rows
    :param order_by: names of columns: keep the rows that are first in ascending order, NULL first
    :param descending: keep the rows that are last in the order of ``order_by`` instead
    :param key: a text that the hash depends on. It may be public, but not depend on the data
    :param materialize: store the truncated rows in the engine, once for each invocation, until the
        last handle on them is freed
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE trips AS "
    ...     "SELECT 1 AS person, range AS km FROM range(9)"
    ... )
    >>> trips = oc.tables.scan(connection, "trips", {"person": int, "km": int}, "person")
    >>> count = oc.t.make_truncate(*trips.space, per_unit=3) >> oc.t.then_table_count()
    >>> count(trips), count.map(2)
    (3, 6)
    """
    tables, text = tables_of(input_domain, input_metric), str(schemas.value_of(str, key=key))
    first = schemas.names_of("order_by", tables.schema, order_by, tuple(schemas.KINDS), none=True)
    last = checks.flag(descending=descending)
    if last and not first:
        raise InvalidValueError("descending needs the columns of an order: pass order_by")
    kept = {"rows": per_unit, "key": text, "order_by": first, "descending": last}
    return _truncated(tables, tables.at_most(per_unit), kept, materialize)


def _truncated(
    before: Tables, after: Tables, kept: Mapping[str, Any], materialize: bool
) -> Transformation:
    """Make a truncation. If each row is a unit, no unit has more than one."""

    def node(of: nodes.Relation) -> nodes.Relation:
        return nodes.Truncate(of, **kept) if before.schema.unit else of

    return step(before, after, node, materialize=materialize)


@constructor(groups=MOST_ROWS, rows=MOST_ROWS)
def make_group_truncate(
    input_domain: Domain,
    input_metric: Metric,
    by: str | Sequence[str],
    groups: int,
    rows: int = 1,
    *,
    key: str = nodes.KEY,
    materialize: bool = False,
) -> Transformation:
    """Keep at most so many groups of each unit, and at most so many of its rows in each group.

    A group is all rows with the same values in the columns ``by``; NULL is one of the values. The
    groups of a unit, and the rows in each, are chosen by a hash, as in :func:`.make_truncate`.
    Counts of these groups then have a smaller sensitivity than after that: in L2, the root of
    ``groups`` times ``rows``.

    Guarantee: the distance in units does not grow, and each unit has rows in at most ``groups``
    groups, at most ``rows`` in each.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param by: names of columns of integers, texts, Booleans or dates
    :param groups: number of groups of a unit
    :param rows: number of rows of a unit in a group
    :param key: as for :func:`.make_truncate`
    :param materialize: as for :func:`.make_truncate`
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE calls AS "
    ...     "SELECT 1 AS person, range % 4 AS day FROM range(9)"
    ... )
    >>> calls = oc.tables.scan(connection, "calls", {"person": int, "day": int}, "person")
    >>> bounded = oc.t.make_group_truncate(*calls.space, by="day", groups=4)
    >>> counts = bounded >> oc.t.then_table_count("day", range(5), norm="l2")
    >>> counts(calls), counts.map(1)
    ([1, 1, 1, 1, 0], 2.0)
    """
    tables, text = tables_of(input_domain, input_metric), str(schemas.value_of(str, key=key))
    names = schemas.names_of("by", tables.schema, by, schemas.KEYS)
    bound = GroupBound(frozenset(names), groups, rows)
    kept = {"rows": rows, "key": text, "by": names, "groups": groups}
    return _truncated(tables, tables.at_most(groups * rows, bound), kept, materialize)


@constructor(how=checks.one_of("inner", "left"))
def make_public_join(
    input_domain: Domain,
    input_metric: Metric,
    on: str | Sequence[str],
    schema: Mapping[str, type],
    rows: Any,
    how: str = "inner",
) -> Transformation:
    """Join a table with public rows: add columns that are a public function of others.

    A row without a public partner is dropped, unless ``how`` is ``"left"``; so is one with NULL in
    a column of ``on``. A row with k partners becomes k rows.

    Guarantee: the distance in units does not grow. If no key has more than k public rows, each
    bound on the rows of a unit is k times that before; a mapping has one row for each key. Where
    each row is a unit, k must be 1.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param on: names of columns of integers, texts, Booleans or dates
    :param schema: mapping from the names of the columns that are added to their types
    :param rows: mapping from the values of ``on`` (a tuple, if there are several) to the values of
        the added columns (a tuple, if there are several); or a frame of pandas or Polars with all
        of these columns, in which a key may have several rows. None is NULL. They must be public
    :param how: ``"inner"``, or ``"left"``, which keeps rows without a partner, with NULL in the new
        columns
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument; for another private table,
        which :func:`.make_private_join` joins

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE homes AS "
    ...     "SELECT 1 AS person, 'Bern' AS city"
    ... )
    >>> homes = oc.tables.scan(connection, "homes", {"person": int, "city": str}, "person")
    >>> zones = {"Bern": "west", "Graz": "east"}
    >>> zoned = oc.t.make_public_join(*homes.space, "city", {"zone": str}, zones)
    >>> counts = zoned >> oc.t.then_truncate(1) >> oc.t.then_table_count("zone", ["east", "west"])
    >>> counts(homes)
    [0, 1]
    """
    tables = tables_of(input_domain, input_metric)
    if isinstance(rows, Table):
        raise InvalidTypeError(
            "rows must be public, found a table: pass a mapping from keys to values; for two "
            "private tables of the same units, use with_tables(...) and make_private_join"
        )
    names = schemas.names_of("on", tables.schema, on, schemas.KEYS)
    types = schemas.columns_of(schema)
    if not types:
        raise InvalidValueError("schema must have at least one column to add; use make_where")
    schemas.check_distinct("schema", (*tables.schema.names, *(name for name, _ in types)))
    added = tuple(name for name, _ in types)
    keys, values = _public_rows(rows, names, added)
    kinds = [tables.schema.type_of(name) for name in names]
    known = tuple(schemas.row_of(kinds, rows=one) for one in keys)
    if isinstance(rows, Mapping) and len(set(known)) != len(known):
        raise InvalidValueError("rows must have distinct keys")
    public = tuple(schemas.row_of([one for _, one in types], null=True, rows=one) for one in values)
    most = max([1, *Counter(known).values()])
    if most > 1 and not tables.schema.unit:  # nothing could tell the rows of a unit from others
        raise InvalidValueError(
            f"rows have {most} partners for a key, and must have one: each row of the table is a "
            "unit, which has to stay one row; for several, scan with the column of a unit"
        )
    joined = tables.schema.with_columns(dict(types))

    def node(of: nodes.Relation) -> nodes.Relation:
        return nodes.PublicJoin(of, names, added, known, public, how, joined)

    return step(tables, tables.times(joined, most), node)


def _public_rows(rows: Any, on: Sequence[str], added: Sequence[str]) -> tuple[Any, Any]:
    """Return the keys and the values of public rows, as tuples if there are several; or raise."""
    if not hasattr(rows, "columns"):
        given = checks.mapping("keys to values", rows=rows)
        return list(given), list(given.values())
    missing = {*on, *added} - set(rows.columns)
    if missing:
        raise InvalidValueError(f"rows must have the columns {', '.join(sorted(missing))}")

    def parts(names: Sequence[str]) -> list[Any]:
        lists = [schemas.listed(rows[name]) for name in names]
        return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

    return parts(on), parts(added)


@constructor(how=checks.one_of("inner", "left", "semi", "anti"))
def make_private_join(
    input_domain: Domain,
    input_metric: Metric,
    table: str,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    on: str | Sequence[str] = (),
    how: str = "inner",
) -> Transformation:
    """Join a table with another private one: each row with the rows of its own unit there.

    The other table was added by :meth:`.Table.with_tables`. A row gets partners of its unit only,
    so no truncation is needed before. A unit with m rows here and n rows there can have m n rows
    afterwards. If the other table bounds n, then the result is bounded, too. Otherwise truncate
    after the join.

    Guarantee: the distance in units does not grow, where a unit has its rows in both tables. If a
    row has at most n partners, each bound on the rows of a unit is n times that before.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables with others
    :param input_metric: units added or removed
    :param table: name of the other table
    :param columns: names of the columns to add; or a mapping from new names to theirs; all of them
        if left out
    :param on: names of columns of both tables, of integers, texts, Booleans or dates, in which a
        partner is equal besides the unit, in the same types; decimals of the same scale. NULL
        equals nothing
    :param how: ``"inner"``: rows with a partner, once for each; ``"left"``: also rows without one,
        with NULL in the new columns; ``"semi"``: rows with a partner, once, without new columns;
        ``"anti"``: rows without a partner
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE flights AS SELECT range % 3 AS plane FROM range(9)")
    >>> _ = connection.execute("CREATE TABLE planes AS SELECT 1 AS plane, 180 AS seats")
    >>> planes = oc.tables.scan(connection, "planes", {"plane": int, "seats": int}, "plane")
    >>> flights = oc.tables.scan(connection, "flights", {"plane": int}, "plane")
    >>> both = flights.with_tables(planes=planes)
    >>> seated = both.space >> oc.t.then_private_join("planes", ["seats"]) >> oc.t.then_truncate(5)
    >>> total = seated >> oc.t.then_table_sum("seats", bounds=(0, 200))
    >>> total(both), total.map(1)
    (540, 1000)
    """
    tables = tables_of(input_domain, input_metric)
    name, known = checks.text(table=table), dict(tables.others)
    if name not in known:
        raise InvalidValueError(
            f"table ({checks.shown(name)}) must be the name of a table that with_tables(...) has "
            f"added; there are: {', '.join(known) or 'none'}"
        )
    schema, other = tables.schema, known[name]
    both = schemas.names_of("on", schema, on, schemas.KEYS, none=True)
    for one in both:
        own, theirs = schema.type_of(one), other.schema.type_of(one, "on")
        if own != theirs:
            raise InvalidTypeError(
                f"on ({one}) must have the same type in both tables, found {schemas.spelled(own)} "
                f"and {schemas.spelled(theirs)}; with_columns makes one of the other: "
                "col(name).cast(oc.tables.Decimal(2))"
            )
    whole = how in ("inner", "left")
    if not whole and columns is not None:
        raise InvalidTypeError(f"columns must be left out, since a join by {how!r} adds none")
    added = _renamed(other.schema, columns, both) if whole else ()
    schemas.check_distinct("columns", (*schema.names, *(name for name, _ in added)))
    after = schema.with_columns({new: other.schema.type_of(of) for new, of in added})
    # without a partner, a row stays one
    most = None if other.rows is None else max(1, other.contribution(frozenset(both)).linf)
    output = tables.times(after, most if whole else 1)

    def node(of: nodes.Relation, partners: nodes.Relation) -> nodes.Relation:
        return nodes.PrivateJoin(of, partners, both, added, how, after)

    return _made(tables, output, lambda known: known.joined(name, node, output))


def _renamed(
    other: schemas.Schema, columns: Any, on: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return new names of columns of another table, and theirs; or raise."""
    if columns is None:
        columns = [name for name in other.names if name not in (*other.unit, *on)]
    if isinstance(columns, Mapping):
        pairs = checks.mapping("new names to names", columns=columns)
    else:
        names = schemas.names_of("columns", other, columns, tuple(schemas.KINDS), none=True)
        pairs = dict(zip(names, names, strict=True))
    found = tuple(
        (schemas.column_name(columns=new), checks.text(columns=of)) for new, of in pairs.items()
    )
    for _, of in found:
        other.kind(of, "columns")
    return found


OF_UNIT = ("count", "count_distinct", "sum", "min", "max")
ORDERED = (int, float, str, date, datetime)  # whose smallest and largest values engines agree on


@constructor
def make_per_unit(
    input_domain: Domain, input_metric: Metric, columns: Mapping[str, Answer]
) -> Transformation:
    """Return a table with one row for each unit: a table of persons from a table of visits.

    A unit without a row has none here either. Means, histograms and quantiles over persons then
    need no truncation, since each person has one row; and all of its rows count.

    Guarantee: the distance in units does not grow, and each unit has at most one row.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables whose units may have several rows
    :param input_metric: units added or removed
    :param columns: mapping from names to what the rows of a unit are made into:
        ``oc.tables.count()``, ``count_distinct(column)``, ``sum(column, bounds)``, ``min(column)``
        or ``max(column)``. The unit's columns are kept
    :return: a transformation of tables
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE stays AS SELECT range % 3 AS person, range * 10 AS cost FROM range(8)"
    ... )
    >>> stays = oc.tables.scan(connection, "stays", {"person": int, "cost": int}, "person")
    >>> columns = {"stays": oc.tables.count(), "cost": oc.tables.sum("cost", (0, 100))}
    >>> persons = oc.t.make_per_unit(*stays.space, columns)
    >>> total = persons >> oc.t.then_table_sum("cost", (0, 100))
    >>> total(stays), total.map(1)
    (260, 100)

    The sums are 90, 120 and 70; the second one is clamped to 100.
    """
    tables = tables_of(input_domain, input_metric)
    before, found = tables.schema, list[tuple[str, nodes.OfUnit]]()
    if not before.unit:
        raise InvalidValueError(
            "input_domain must have units of several rows: here each is one row; use with_columns"
        )
    for name, one in checks.mapping("names to counts, sums, min or max", columns=columns).items():
        found.append((schemas.column_name(columns=name), _of_unit(before, one)))
    if not found:
        raise InvalidValueError("columns must have at least one column")
    schema = before.keep(()).with_columns({name: one.kind for name, one in found})
    schemas.check_distinct("columns", (*before.unit, *(name for name, _ in found)))
    after = replace(tables, schema=schema, rows=1, groups=frozenset())
    return step(tables, after, lambda of: nodes.PerUnit(of, tuple(found), schema))


def _of_unit(schema: schemas.Schema, one: object) -> nodes.OfUnit:
    """Return what the rows of a unit are made into, or raise."""
    if type(one) is not Answer or one.statistic not in OF_UNIT:
        raise InvalidTypeError(
            "columns must be made by oc.tables.count(), count_distinct(...), sum(...), min(...) or "
            f"max(...), found {checks.shown(one)}"
        )
    if one.statistic == "count":
        return nodes.OfUnit("count", int)
    if one.statistic == "count_distinct":
        (name,) = schemas.names_of("columns", schema, [one.column], schemas.KEYS)
        return nodes.OfUnit("count_distinct", int, name)
    if one.statistic in ("min", "max"):
        (name,) = schemas.names_of("columns", schema, [one.column], ORDERED)
        return nodes.OfUnit(one.statistic, schema.type_of(name), name)
    value = quantised(schema, one.column, one.bounds, one.quantum)
    kind = schema.type_of(value.column)
    return nodes.OfUnit("sum", kind, value.column, value.ends, one.quantum)


then_where = _native.to_then(make_where)
then_with_columns = _native.to_then(make_with_columns)
then_table_select = _native.to_then(make_table_select)
then_truncate = _native.to_then(make_truncate)
then_group_truncate = _native.to_then(make_group_truncate)
then_public_join = _native.to_then(make_public_join)
then_private_join = _native.to_then(make_private_join)
then_per_unit = _native.to_then(make_per_unit)
