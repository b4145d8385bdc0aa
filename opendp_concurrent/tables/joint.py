"""Transformations from tables to several kinds of integers at once: answers, and prefix counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp, sqrt
from typing import Any

from opendp.mod import Domain, Metric, Transformation

from .. import _checks as checks
from .. import _opendp as _native
from ..composition import constructor
from ..errors import InvalidTypeError, InvalidValueError
from . import plan as nodes
from .aggregates import binned, counted, edges_of, groups_or_one, unit_of_sum
from .domain import tables_of
from .engine import Rows
from .expressions import Answer
from .moments import MOST_CELLS, MOST_STEPS, Estimate, Moments, strategy_for
from .moments import Statistic as OfMoments
from .numbers import (
    check_bounds,
    combined,
    make_answer,
    make_sums,
    norm_of,
    quantised,
    saturated,
)
from .schema import Keys, Schema, name_of

STATISTICS = ("count", "sum", "mean", "variance", "stdev")
FINE = 16  # shares of the budget are multiples of about 1/16 of the smallest one
LARGEST = 2**56  # of what a row adds, if shares are to be fine


@dataclass(frozen=True, slots=True)
class _Part:
    """An answer among others: what is asked of the engine, and how its integers are read."""

    terms: tuple[nodes.Term, ...]
    per_row: tuple[int, ...]
    step: float
    moments: tuple[Moments, OfMoments] | None = None

    def integers(self, values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values) if self.moments is None else self.moments[0].integers(*values)

    def estimate(self, noisy: Sequence[float], accuracy: float) -> Estimate:
        if self.moments is not None:
            moments, statistic = self.moments
            return moments.estimate(noisy, accuracy, statistic)
        (one,) = noisy
        return Estimate(*(self.step * each for each in (one, one - accuracy, one + accuracy)))


def _part(schema: Schema, answer: Any, norm: str) -> _Part:
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
    name = name_of("column", schema, answer.column, (int, float))
    kind = schema.type_of(name)
    if quantum is None and kind is float and statistic != "sum":
        largest = max(abs(checks.real(bounds=one)) for one in checks.pair(bounds=answer.bounds))
        quantum = 2.0 ** (frexp(largest)[1] - 20) if 2.0**-400 < largest < 2.0**400 else None
    value = quantised(schema, name, answer.bounds, quantum)
    step = float(unit_of_sum(kind, quantum))
    if statistic == "sum":
        return _Part((nodes.Term(value),), (value.largest,), step)
    order = 1 if statistic == "mean" else 2
    (first, last), small = value.ends, order == 1 or value.largest <= MOST_STEPS
    squares = "" if order == 1 else ", and are at most 2^31 quanta"
    check_bounds(first < last, small, answer.bounds, f"which differ by at least a quantum{squares}")
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
    def of(cls, schema: Schema, answers: Any, norm: str) -> Joint:
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
        most = max(sizes) * (FINE if max(sizes) < LARGEST else 1)
        return cls(parts, tuple(max(1, round(most / max(one, 1.0))) for one in sizes))

    @property
    def per_row(self) -> tuple[int, ...]:
        """What a row adds to each integer of its group at most."""
        pairs = zip(self.parts, self.weights, strict=True)
        return tuple(weight * one for part, weight in pairs for one in part.per_row)

    @property
    def terms(self) -> tuple[nodes.Term, ...]:
        """What the engine adds up, answer by answer."""
        return tuple(term for part in self.parts for term in part.terms)

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


@constructor(norm=norm_of)
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
    sums = nodes.Sums(joint.terms, names, public)
    return make_sums(tables, sums, norm, contribution, joint.per_row, joint.integers)


@constructor(norm=norm_of)
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
    counted = binned(groups, len(public) + 1)
    size = len(keyed) * strategy.integers
    output = combined(size, norm, contribution, strategy.per_row)

    def decode(rows: Rows) -> list[int]:
        return [saturated(one) for counts in counted(rows) for one in strategy.combine(counts)]

    return make_answer(tables, nodes.Bins(name, public, names, keyed), output, decode)


then_table_answers = _native.to_then(make_table_answers)
then_table_prefixes = _native.to_then(make_table_prefixes)
