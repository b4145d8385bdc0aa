"""Transformations from tables to integers: counts, sums, histograms, scores, and several at once.

Each one runs one statement in the engine. The answer is exact; noise is added by a measurement of
OpenDP that is chained behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import frexp, inf, nextafter, sqrt
from typing import Any, TypeAlias

from opendp.mod import Domain, Metric, Transformation

from .. import _checks as checks
from .. import _opendp as _native
from ..composition import constructor
from ..errors import InvalidTypeError, InvalidValueError
from . import numbers
from . import plan as nodes
from . import schema as schemas
from .domain import GroupBound, Norms, Tables, tables_of
from .engine import Rows
from .expressions import Answer
from .moments import MOST_CELLS, MOST_STEPS, Estimate, Moments, Statistic, strategy_for
from .schema import By, Keys
from .steps import make_per_unit

MOST_EDGES = 10_000  # which a statement sends
ROWS = (*(first * 10**power for power in range(6) for first in (1, 2, 3, 5)), 10**6)
SHARES = 10_000  # largest denominator of a quantile


@constructor(norm=numbers.norm_of)
def make_table_count(
    input_domain: Domain,
    input_metric: Metric,
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    column: str | None = None,
    norm: str = "l1",
) -> Transformation:
    """Count the rows of a table, or those of each public key.

    Keys come from you, never from the data; for a key that has no rows the count is 0. Rows with
    other values are not counted. A missing value, NULL, is counted for the key None only.

    Guarantee: let a unit have at most R rows, in at most g groups, at most r in each. A count
    of all rows changes by at most d_in R. Counts by key change by at most d_in times min(R, g r) in
    L1 and r in L∞; in L2, by d_in times the largest norm of such counts, which is the root of g
    times r if R is g r.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param by: names of columns of integers, texts, Booleans, dates or timestamps; all rows if left
        out
    :param keys: distinct values of the column, or tuples of values of the columns, as a list, a
        Series or an array; or a frame that has the columns; or a mapping from names of columns to
        values, for all of their combinations. A frame or a mapping has the names, if ``by`` is left
        out
    :param column: counts only rows with a value in this column
    :param norm: metric of the counts by key: ``"l1"`` for Laplace noise, ``"l2"`` for Gaussian
        noise, ``"linf"`` for a noisy maximum
    :return: a transformation to an integer, under absolute distance; with keys, to a vector of
        integers, in the order of the keys
    :raises InvalidTypeError, InvalidValueError: naming the argument; if nothing bounds the rows of
        a unit

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE votes AS "
    ...     "SELECT range AS person, range % 2 AS for FROM range(9)"
    ... )
    >>> votes = oc.tables.scan(connection, "votes", {"person": int, "for": int}, "person")
    >>> bounded = oc.t.make_truncate(*votes.space, per_unit=1)
    >>> count = bounded >> oc.t.then_table_count()
    >>> count(votes), count.map(1)
    (9, 1)
    >>> counts = bounded >> oc.t.then_table_count("for", [0, 1, 2])
    >>> counts(votes), counts.map(1)
    ([5, 4, 0], 1)
    """
    tables = tables_of(input_domain, input_metric)
    return _sums(tables, counted(tables.schema, column), 1, by, keys, norm)


def counted(schema: schemas.Schema, column: str | None) -> nodes.Term:
    """Return 1 of each row, or of each row with a value in a column."""
    if column is None:
        return nodes.ROW
    name = schemas.name_of("column", schema, column, tuple(schemas.KINDS))
    return nodes.Term(nodes.Quantised(name, 0, 0), 0)


@constructor(norm=numbers.norm_of)
def make_distinct_units(
    input_domain: Domain,
    input_metric: Metric,
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Count the units that have a row; or for each public key, those that have a row of it.

    Guarantee: the count changes by at most d_in, and needs no truncation. Let a unit have rows in
    at most g groups, which a truncation bounds. Counts by key change by at most d_in g in L1,
    d_in times the root of g in L2, and d_in in L∞.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables; with keys, of truncated ones
    :param input_metric: units added or removed
    :param by: names of columns, as in :func:`.make_table_count`; all rows if left out
    :param keys: values of these columns, as there
    :param norm: metric of the counts by key: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to an integer, under absolute distance; with keys, to a vector of
        integers, in the order of the keys
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE logins AS "
    ...     "SELECT range % 3 AS person FROM range(8)"
    ... )
    >>> logins = oc.tables.scan(connection, "logins", {"person": int}, "person")
    >>> persons = oc.t.make_distinct_units(*logins.space)
    >>> persons(logins), persons.map(1)
    (3, 1)
    """
    tables = tables_of(input_domain, input_metric)
    return _distinct(tables, tables.schema.unit, by, keys, norm)


def _distinct(
    tables: Tables, columns: tuple[str, ...], by: By | None, keys: Keys, norm: str
) -> Transformation:
    """Count different values of columns; of no columns, the rows, each of which is a unit."""
    names, public = schemas.groups_of(tables.schema, by, keys)
    of, groups = frozenset(columns), frozenset(names)
    # how many different values a unit has in its groups, in each of them, and in how many
    each = GroupBound(groups, tables.groups_at_most(groups), tables.groups_at_most(of))
    bounded = tables.at_most(tables.groups_at_most(of | groups), each)
    sums = nodes.Sums((nodes.ROW,), names, public, columns)
    return _summed(tables, sums, bounded.contribution(groups, len(public)), 1, norm)


@constructor(norm=numbers.norm_of)
def make_rows_per_unit(
    input_domain: Domain,
    input_metric: Metric,
    edges: Sequence[int] = ROWS,
    *,
    norm: str = "l1",
) -> Transformation:
    """Count the units by their numbers of rows: a histogram. It needs no truncation.

    It helps to choose how many rows :func:`.make_truncate` keeps of each unit. Bin i has the units
    with at least ``edges[i]`` rows and fewer than ``edges[i + 1]``. Units with no rows, or with
    another number of them, are not counted.

    Guarantee: the counts change by at most d_in in each norm, because a unit is in at most one bin.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables
    :param input_metric: units added or removed
    :param edges: at least two increasing integers; 1, 2, 3 and 5 times powers of 10, up to a
        million, if left out
    :param norm: metric of the counts: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to a vector of integers, one fewer than edges
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE taps AS "
    ...     "SELECT range % 4 AS person FROM range(10)"
    ... )
    >>> taps = oc.tables.scan(connection, "taps", {"person": int}, "person")
    >>> sizes = oc.t.make_rows_per_unit(*taps.space, edges=[1, 2, 3, 4])
    >>> sizes(taps), sizes.map(1)
    ([0, 2, 2], 1)
    """
    unit = tables_of(input_domain, input_metric).schema.unit
    rows = "n" * (1 + max(map(len, unit), default=0))  # no column of the unit has this name
    counted = make_per_unit(input_domain, input_metric, {rows: Answer("count")})
    return counted >> then_table_histogram(rows, edges, norm=norm)


@constructor(norm=numbers.norm_of)
def make_distinct_values(
    input_domain: Domain,
    input_metric: Metric,
    columns: str | Sequence[str],
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Count the different values of columns; or for each public key, those in its rows.

    Rows with NULL in one of the columns are left out.

    Guarantee: the count changes by at most d_in times the number of different values that a unit
    has, which a truncation bounds. Counts by key change by at most the bound of
    :func:`.make_table_count`, of a unit that has one row for each key and value.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of tables whose units have rows in few groups
    :param input_metric: units added or removed
    :param columns: names of columns of integers, texts, Booleans or dates
    :param by: names of columns, as in :func:`.make_table_count`; all rows if left out
    :param keys: values of these columns, as there
    :param norm: metric of the counts by key: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to an integer, under absolute distance; with keys, to a vector of
        integers, in the order of the keys
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE bought AS "
    ...     "SELECT range % 3 AS person, range % 7 AS article FROM range(99)"
    ... )
    >>> schema = {"person": int, "article": int}
    >>> bought = oc.tables.scan(connection, "bought", schema, "person")
    >>> bounded = oc.t.make_group_truncate(*bought.space, by="article", groups=4)
    >>> articles = bounded >> oc.t.then_distinct_values("article")
    >>> articles(bought), articles.map(1)
    (6, 4)
    """
    tables = tables_of(input_domain, input_metric)
    names = schemas.names_of("columns", tables.schema, columns, schemas.KEYS)
    return _distinct(tables, names, by, keys, norm)


Groups: TypeAlias = tuple[tuple[str, ...], nodes.Rows, Norms]


def groups_or_one(tables: Tables, by: By | None, keys: Keys) -> Groups:
    """Return public groups and what a unit contributes to them; one group without keys."""
    names, public = schemas.groups_of(tables.schema, by, keys)
    if not names:
        return names, public, _anywhere(tables)
    return names, public, tables.contribution(frozenset(names), len(public))


def _sums(
    tables: Tables, term: nodes.Term, largest: int, by: By | None, keys: Keys, norm: str
) -> Transformation:
    """Make a transformation that adds up an integer of each row, which is at most ``largest``."""
    names, public, contribution = groups_or_one(tables, by, keys)
    return _summed(tables, nodes.Sums((term,), names, public), contribution, largest, norm)


def _summed(tables: Tables, sums: nodes.Sums, of: Norms, largest: int, norm: str) -> Transformation:
    """Make a transformation to one integer, or to one for each public key."""
    if sums.by:
        return numbers.make_sums(tables, sums, norm, of, [largest])
    return numbers.make_answer(tables, sums, numbers.scalar(of.l1 * largest), numbers.one_integer)


@constructor(norm=numbers.norm_of)
def make_table_sum(
    input_domain: Domain,
    input_metric: Metric,
    column: str,
    bounds: tuple[float, float],
    quantum: checks.Positive | None = None,
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Sum a column of a table, clamped to bounds and in whole quanta; for each public key, if any.

    Of a column of floats, the answer is the number of quanta: each value is clamped and rounded to
    a whole number of quanta first, so that the sum does not depend on the order of the rows.
    Multiply the noisy answer by ``quantum``. A missing value (NULL or NaN) adds 0. Infinities are
    clamped. The engine adds in at least 126 bits, which fewer than 2^63 rows cannot overflow. The
    sum is then clamped to 64 bits.

    Guarantee: the sum changes by at most the bound of :func:`.make_table_count`, times the larger
    absolute bound in quanta.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param column: name of a column of integers or floats
    :param bounds: lower and upper bound: integers for integers, at most 2^62 in absolute value
    :param quantum: for floats only: the unit of the answer, such as 0.01. The bounds must be at
        most 2^52 quanta
    :param by: names of columns, as in :func:`.make_table_count`; all rows if left out
    :param keys: values of these columns, as there
    :param norm: metric of the sums by key: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to an integer, under absolute distance; with keys, to a vector of
        integers, in the order of the keys
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE pay AS "
    ...     "SELECT range AS person, range % 2 AS zone, range * 2.5e0 AS eur FROM range(5)"
    ... )
    >>> schema = {"person": int, "zone": int, "eur": float}
    >>> pay = oc.tables.scan(connection, "pay", schema, "person")
    >>> bounded = oc.t.make_truncate(*pay.space, per_unit=1)
    >>> total = bounded >> oc.t.then_table_sum("eur", bounds=(0.0, 8.0), quantum=0.5)
    >>> total(pay), total.map(1)
    (46, 16)
    >>> totals = bounded >> oc.t.then_table_sum("eur", (0.0, 8.0), 0.5, by="zone", keys=[0, 1])
    >>> totals(pay), totals.map(1)
    ([26, 20], 16)
    """
    tables = tables_of(input_domain, input_metric)
    value = numbers.quantised(tables.schema, column, bounds, quantum)
    return _sums(tables, nodes.Term(value), value.largest, by, keys, norm)


def unit_of_sum(kind: schemas.Type, quantum: float | None) -> Fraction:
    """Return what the integers of a sum of a column count, in the unit of the column."""
    if isinstance(kind, schemas.Decimal):
        return Fraction(1, 10**kind.scale)
    return Fraction(1) if quantum is None else schemas.exact_of(quantum=quantum)


@constructor(norm=numbers.norm_of)
def make_table_histogram(
    input_domain: Domain,
    input_metric: Metric,
    column: str,
    edges: Sequence[float],
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Count the rows of a table between public edges, for each public key if there are keys.

    Bin i has the values that are at least ``edges[i]`` and below ``edges[i + 1]``. Other values,
    and missing ones, are not counted.

    Guarantee: the counts change by at most d_in times the rows of a unit, in each norm, since all
    rows of a unit may be in one bin; with keys, by at most the bound of :func:`.make_table_count`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param column: name of a column of integers or floats
    :param edges: at least two increasing numbers of the column's type, at most 10,000
    :param by: names of columns, as in :func:`.make_table_count`; one group if left out
    :param keys: values of these columns, as there
    :param norm: metric of the counts: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to a vector of integers, key by key, each one fewer than edges
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE born AS "
    ...     "SELECT range AS person, 1950 + range AS year FROM range(60)"
    ... )
    >>> born = oc.tables.scan(connection, "born", {"person": int, "year": int}, "person")
    >>> bounded = oc.t.make_truncate(*born.space, per_unit=1)
    >>> decades = bounded >> oc.t.then_table_histogram("year", range(1950, 2001, 10))
    >>> decades(born)
    [10, 10, 10, 10, 10]
    """
    tables = tables_of(input_domain, input_metric)
    name, public = edges_of(tables, "edges", column, edges, 2)
    groups = groups_or_one(tables, by, keys)
    every = binned(groups, len(public) + 1)

    def decode(rows: Rows) -> list[int]:
        return [count for counts in every(rows) for count in counts[1:-1]]

    names, keyed, contribution = groups
    output = numbers.vector(len(keyed) * (len(public) - 1), norm, contribution)
    return numbers.make_answer(tables, nodes.Bins(name, public, names, keyed), output, decode)


def binned(groups: Groups, bins: int) -> Callable[[Rows], list[list[int]]]:
    """Return a function from the rows of a statement to the counts of each group."""
    names, keyed, _ = groups

    def counts(rows: Rows) -> list[list[int]]:
        found = [[0] * bins for _ in keyed]
        for row in rows:
            place, each, count = row if names else (0, *row)
            found[place][each] = numbers.saturated(count)
        return found

    return counts


def _anywhere(tables: Tables) -> Norms:
    """Return the norms of what a unit contributes if all of its rows may be in one bin.

    A bound on the groups by the column's values does not help: a bin has many values.
    """
    rows = tables.bounded_rows()
    return Norms(rows, rows**2, rows)


def edges_of(
    tables: Tables, place: str, column: str, edges: Sequence[float], least: int
) -> tuple[str, tuple[Any, ...]]:
    """Return the name of a column of numbers, and increasing numbers of its type, or raise."""
    name = schemas.name_of("column", tables.schema, column, (int, float))
    kind, given = tables.schema.type_of(name), checks.sequence("numbers", **{place: edges})
    public = tuple(schemas.value_of(kind, **{place: one}) for one in given)
    if not least <= len(public) <= MOST_EDGES:
        raise InvalidValueError(
            f"{place} must have from {least} to {MOST_EDGES} numbers, found {len(public)}"
        )
    if not all(one < other for one, other in pairwise(public)):
        raise InvalidValueError(f"{place} must be increasing numbers")
    return name, public


@constructor
def make_quantile_scores(
    input_domain: Domain,
    input_metric: Metric,
    column: str,
    candidates: Sequence[float],
    alpha: checks.Probability,
) -> Transformation:
    """Score candidates for a quantile of a column: the smallest score is the best.

    The score of c is the absolute value of (q - p) #(values < c) - p #(values > c), where p/q is
    the fraction next to ``alpha`` whose denominator is at most 10,000. Chain it with
    ``dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)``, whose answer is the index of a
    candidate. Missing values are not counted.

    Guarantee: each score changes by at most d_in times the rows of a unit, times max(p, q - p).

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param column: name of a column of integers or floats
    :param candidates: increasing numbers of the column's type, at most 10,000
    :param alpha: which quantile, in [0, 1]: 0.5 is the median
    :return: a transformation to a vector of integers, under L∞ distance
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE old AS "
    ...     "SELECT range AS person, range AS age FROM range(100)"
    ... )
    >>> old = oc.tables.scan(connection, "old", {"person": int, "age": int}, "person")
    >>> bounded = oc.t.make_truncate(*old.space, per_unit=1)
    >>> scores = bounded >> oc.t.then_quantile_scores("age", [20, 50, 80], alpha=0.5)
    >>> scores(old), scores.map(1)
    ([59, 1, 61], 1)
    """
    tables = tables_of(input_domain, input_metric)
    name, public = edges_of(tables, "candidates", column, candidates, 1)
    share = Fraction(alpha).limit_denominator(SHARES)
    p, q = share.numerator, share.denominator
    # the rows at or above the next number of the type are those above a candidate
    nexts = [_next(tables.schema.kind(name), one) for one in public]
    cuts = tuple(sorted({*public, *(one for one in nexts if one is not None)}))
    places = {cut: place for place, cut in enumerate(cuts)}
    every = binned(groups_or_one(tables, None, None), len(cuts) + 1)

    def decode(rows: numbers.Rows) -> list[int]:
        below = list(accumulate(every(rows)[0]))  # below[i] rows are below cut i
        scores = []
        for one, following in zip(public, nexts, strict=True):
            above = 0 if following is None else below[-1] - below[places[following]]
            scores.append(numbers.saturated(abs((q - p) * below[places[one]] - p * above)))
        return scores

    output = numbers.vector(len(public), "linf", _anywhere(tables), [max(p, q - p)])
    return numbers.make_answer(tables, nodes.Bins(name, cuts), output, decode)


def _next(kind: type, value: Any) -> Any:
    """Return the number of a type after this one; None after the last."""
    if kind is int:
        return None if value == schemas.LARGEST else value + 1
    return None if value == inf else nextafter(value, inf)


# Several kinds of integers at once: answers that share a launch, and prefix counts.

STATISTICS = ("count", "sum", "mean", "variance", "stdev")
FINE = 16  # shares of the budget are multiples of about 1/16 of the smallest one
FINEST = 2**56  # of what a row adds, if shares are to be fine


@dataclass(frozen=True, slots=True)
class _Part:
    """An answer among others: what is asked of the engine, and how its integers are read."""

    terms: tuple[nodes.Term, ...]
    per_row: tuple[int, ...]
    step: float
    moments: tuple[Moments, Statistic] | None = None

    def integers(self, values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values) if self.moments is None else self.moments[0].integers(*values)

    def estimate(self, noisy: Sequence[float], accuracy: float) -> Estimate:
        if self.moments is not None:
            moments, statistic = self.moments
            return moments.estimate(noisy, accuracy, statistic)
        (one,) = noisy
        return Estimate(*(self.step * each for each in (one, one - accuracy, one + accuracy)))


def _part(schema: schemas.Schema, answer: Any, norm: str) -> _Part:
    if type(answer) is not Answer or answer.statistic not in STATISTICS:
        raise InvalidTypeError(
            f"answers must be of oc.tables.Answer, such as Answer('mean', 'age', (0, 120)), found "
            f"{checks.shown(answer)}"
        )
    statistic = answer.statistic
    if statistic == "count":
        if (answer.bounds, answer.quantum) != (None, None):
            raise InvalidTypeError("answers has a count, which takes no bounds")
        return _Part((counted(schema, answer.column),), (1,), 1)
    quantum = None if answer.quantum is None else checks.positive(quantum=answer.quantum)
    name = schemas.name_of("column", schema, answer.column, (int, float))
    kind = schema.type_of(name)
    if quantum is None and kind is float and statistic != "sum":
        largest = max(abs(checks.real(bounds=one)) for one in checks.pair(bounds=answer.bounds))
        quantum = 2.0 ** (frexp(largest)[1] - 20) if 2.0**-400 < largest < 2.0**400 else None
    value = numbers.quantised(schema, name, answer.bounds, quantum)
    step = float(unit_of_sum(kind, quantum))
    if statistic == "sum":
        return _Part((nodes.Term(value),), (value.largest,), step)
    order = 1 if statistic == "mean" else 2
    (first, last), small = value.ends, order == 1 or value.largest <= MOST_STEPS
    squares = "" if order == 1 else ", and are at most 2^31 quanta"
    numbers.check_bounds(
        first < last, small, answer.bounds, f"which differ by at least a quantum{squares}"
    )
    known = Moments(first, last, step, kind is not float, order, norm)
    asked: Any = statistic  # one of the others by now
    terms = tuple(nodes.Term(value, power) for power in range(order + 1))
    return _Part(terms, known.per_row, known.step, (known, asked))


@dataclass(frozen=True, slots=True)
class Joint:
    """Answers that share one vector of integers, and so one launch. Each has the same share.

    :ivar parts: the answers
    :ivar weights: what the integers of each answer are multiplied by
    """

    parts: tuple[_Part, ...]
    weights: tuple[int, ...]

    @classmethod
    def of(cls, schema: schemas.Schema, answers: Any, norm: str) -> Joint:
        """Return the answers, or raise naming the argument."""
        found = checks.sequence("answers", answers=answers)
        parts = tuple(_part(schema, one, norm) for one in found)
        sizes = [
            sqrt(sum(float(one) ** 2 for one in part.per_row))
            if norm == "l2"
            else float(max(part.per_row) if norm == "linf" else sum(part.per_row))
            for part in parts
        ]
        if len(parts) == 1:
            return cls(parts, (1,))
        most = max(sizes) * (FINE if max(sizes) < FINEST else 1)
        return cls(parts, tuple(max(1, round(most / max(one, 1.0))) for one in sizes))

    @property
    def per_row(self) -> tuple[int, ...]:
        """What a row adds to each integer of its group at most."""
        pairs = zip(self.parts, self.weights, strict=True)
        return tuple(weight * one for part, weight in pairs for one in part.per_row)

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """The part of the loss that each integer of one mean, variance or deviation takes."""
        alone = self.parts[0].moments if len(self.parts) == 1 else None
        return () if alone is None else alone[0].shares

    def integers(self, *values: int) -> list[int]:
        """Return the integers of a group, from those of the engine."""
        found, at = list[int](), 0
        for part, weight in zip(self.parts, self.weights, strict=True):
            size = len(part.per_row)
            found += (weight * one for one in part.integers(values[at : at + size]))
            at += size
        return found

    def estimates(
        self, noisy: Sequence[int], accuracy: Callable[[int], float]
    ) -> list[list[Estimate]]:
        """Return the estimates of each answer, in the order of the groups.

        :param accuracy: returns what the noise in each of so many integers is at most
        """
        found: list[list[Estimate]] = [[] for _ in self.parts]
        accuracies, at = [accuracy(len(part.per_row)) for part in self.parts], 0
        while at < len(noisy):
            for mine, part, weight, most in zip(
                found, self.parts, self.weights, accuracies, strict=True
            ):
                size = len(part.per_row)
                own = [one / weight for one in noisy[at : at + size]]
                mine.append(part.estimate(own, most / weight))
                at += size
        return found


@constructor(norm=numbers.norm_of)
def make_table_answers(
    input_domain: Domain,
    input_metric: Metric,
    answers: Sequence[Answer],
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Answer several questions in one statement: counts, sums, means, variances.

    Noise of one scale on the integers then answers all of them in one launch. The integers have
    weights, so that each answer has the same share of the loss, up to about 1/16. A query of a
    context reads them: ``few.select(n=few.count(), age=few.mean("age", (0, 120)))``.

    Guarantee: let a row of a unit add at most p_i to the integers of its group. The answer then
    changes by at most the bound of :func:`.make_table_count` times the sum of the p_i in L1, the
    root of the sum of their squares in L2, and the largest in L∞.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param answers: each an :class:`.Answer`
    :param by: names of columns, as in :func:`.make_table_count`; one group if left out
    :param keys: values of these columns, as there
    :param norm: metric of the answer: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to a vector of integers, group by group, answer by answer
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE shops AS SELECT range AS person, range % 3 AS items FROM range(9)"
    ... )
    >>> shops = oc.tables.scan(connection, "shops", {"person": int, "items": int}, "person")
    >>> bounded = oc.t.make_truncate(*shops.space, per_unit=1)
    >>> asked = [oc.tables.Answer("count"), oc.tables.Answer("sum", "items", (0, 4))]
    >>> both = bounded >> oc.t.then_table_answers(asked)
    >>> both(shops), both.map(1)
    ([576, 144], 128)

    A row counts 64 times, and its items 16 times.
    """
    tables = tables_of(input_domain, input_metric)
    joint = Joint.of(tables.schema, answers, norm)
    names, public, contribution = groups_or_one(tables, by, keys)
    terms = tuple(term for part in joint.parts for term in part.terms)
    sums = nodes.Sums(terms, names, public)
    return numbers.make_sums(tables, sums, norm, contribution, joint.per_row, joint.integers)


@constructor(norm=numbers.norm_of)
def make_table_prefixes(
    input_domain: Domain,
    input_metric: Metric,
    column: str,
    cuts: Sequence[float],
    by: str | Sequence[str] | None = None,
    keys: Keys = None,
    *,
    norm: str = "l1",
) -> Transformation:
    """Combine the counts between cuts so that noise on them gives the numbers of values below cuts.

    For quantiles, by group too: ``context.query().truncate(1).quantile("age", range(91), 0.5,
    by="region", keys=regions).laplace()``. The combinations have the least error of several: the
    counts themselves, sums over blocks of a tree, and for L2 the optimum of all linear ones up to
    1%, if there are at most 255 cuts.

    Guarantee: let A be the public matrix from counts to the answer, a_j its columns. The answer
    changes by at most the bound of :func:`.make_table_count` times the largest norm of an a_j.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of truncated tables
    :param input_metric: units added or removed
    :param column: name of a column of integers or floats
    :param cuts: increasing numbers of the column's type, at most 1000
    :param by: names of columns, as in :func:`.make_table_count`; one group if left out
    :param keys: values of these columns, as there
    :param norm: metric of the answer: ``"l1"``, ``"l2"`` or ``"linf"``
    :return: a transformation to a vector of integers, group by group
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import duckdb
    >>> connection = duckdb.connect().execute(
    ...     "CREATE TABLE runs AS SELECT range AS person, range % 50 AS minutes FROM range(100)"
    ... )
    >>> runs = oc.tables.scan(connection, "runs", {"person": int, "minutes": int}, "person")
    >>> bounded = oc.t.make_truncate(*runs.space, per_unit=1)
    >>> prefixes = bounded >> oc.t.then_table_prefixes("minutes", range(10, 41, 10))
    >>> prefixes(runs), prefixes.map(1)
    ([20, 20, 20, 20, 20], 1)
    """
    tables = tables_of(input_domain, input_metric)
    name, public = edges_of(tables, "cuts", column, cuts, 1)
    if len(public) >= MOST_CELLS:
        raise InvalidValueError(f"cuts must have at most {MOST_CELLS - 1} numbers")
    strategy = strategy_for(len(public) + 1, norm)
    groups = groups_or_one(tables, by, keys)
    names, keyed, contribution = groups
    every = binned(groups, len(public) + 1)
    size = len(keyed) * strategy.integers
    output = numbers.combined(size, norm, contribution, strategy.per_row)

    def decode(rows: Rows) -> list[int]:
        return [
            numbers.saturated(one) for counts in every(rows) for one in strategy.combine(counts)
        ]

    return numbers.make_answer(tables, nodes.Bins(name, public, names, keyed), output, decode)


then_table_count = _native.to_then(make_table_count)
then_distinct_units = _native.to_then(make_distinct_units)
then_rows_per_unit = _native.to_then(make_rows_per_unit)
then_distinct_values = _native.to_then(make_distinct_values)
then_table_sum = _native.to_then(make_table_sum)
then_table_histogram = _native.to_then(make_table_histogram)
then_quantile_scores = _native.to_then(make_quantile_scores)
then_table_answers = _native.to_then(make_table_answers)
then_table_prefixes = _native.to_then(make_table_prefixes)
