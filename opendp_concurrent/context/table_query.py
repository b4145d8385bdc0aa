"""Queries on tables in an engine: steps on rows, aggregates, and noisy answers as frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from inspect import Parameter, Signature, signature
from itertools import pairwise
from math import inf, pi, sqrt
from typing import Any

from opendp import measurements

from .. import _checks as checks
from .. import composition, tables
from .._opendp import HAS_NOISY_TOP_K, dp, query_parts
from ..errors import Data, Distance, InvalidTypeError, InvalidValueError, TooFewRowsError
from .answers import ACCURACIES, Labels, Noise, Summary, library_of
from .query import TABLES, ConcurrentQuery

# standard deviations at scale 1: of Laplace noise, and of the exponential noise of OpenDP's top-k
PURE = sqrt(2.0), 1.0
# of Gaussian noise, and of the Gumbel noise
ZCDP = 1.0, pi / sqrt(6.0)


@dataclass(frozen=True, slots=True)
class Top:
    """How the keys with the most rows are found. The choice is public.

    :ivar counts: returns the transformation to counts, under a norm; the same one each time
    :ivar measure: pure DP or zCDP
    :ivar wanted: number of keys
    :ivar selects: whether by a selection of keys, without counts
    """

    counts: Callable[[str], dp.Transformation]
    measure: dp.Measure
    wanted: int
    selects: bool

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in a count, at scale 1."""
        return (PURE if self.measure == dp.max_divergence() else ZCDP)[self.selects]

    def measurement(self, scale: float) -> Any:
        """Return the measurement, of the space of the counts."""
        if self.selects:
            select = measurements.then_noisy_top_k(self.measure, self.wanted, scale)
            return self.counts("linf") >> select
        pure = self.measure == dp.max_divergence()
        noise, norm = (dp.m.then_laplace, "l1") if pure else (dp.m.then_gaussian, "l2")
        return self.counts(norm) >> noise(scale)

    def places(self, released: Sequence[int]) -> list[int]:
        """Return the places of the keys, the largest count first."""
        if self.selects:
            return list(released)
        order = sorted(range(len(released)), key=lambda place: -released[place])
        return order[: self.wanted]

    def noise(self, d_in: Distance) -> float:
        """Return the standard deviation of the noise at a loss of 1."""
        loss = self.measurement(1.0).map(d_in)
        return self.deviation * (loss if self.measure == dp.max_divergence() else sqrt(loss))


def best_top(
    d_in: Distance, counts: Callable[[str], dp.Transformation], measure: dp.Measure, wanted: int
) -> Top:
    """Return the way that has less noise at the same loss."""
    ways = [Top(counts, measure, wanted, False)]
    if HAS_NOISY_TOP_K:
        ways.append(Top(counts, measure, wanted, True))
    return min(ways, key=lambda one: one.noise(d_in))


_NORMS = {
    "laplace": "l1",
    "certified_laplace": "l1",
    "gaussian": "l2",
    "certified_gaussian": "l2",
    "noisy_max": "linf",
}


def _named(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with the name that errors and ``help`` show."""
    method.__name__, method.__qualname__ = name, f"TableQuery.{name}"
    return method


def _step(name: str, then: Callable[..., Any]) -> Callable[..., TableQuery]:
    """Return the method that applies a transformation of tables."""

    @wraps(then)
    def step(self: TableQuery, *args: Any, **kwargs: Any) -> TableQuery:
        made: TableQuery = self.new_with(chain=self._chain >> then(*args, **kwargs))
        return made

    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    vars(step)["__signature__"] = Signature([own, *signature(then).parameters.values()])
    return _named(name, step)


def _statistic(statistic: Any) -> Callable[..., TableAnswerQuery]:
    """Return the method of a statistic."""

    def ask(
        self: TableQuery,
        column: str,
        bounds: tuple[float, float],
        quantum: float | None = None,
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Return the mean, the variance or the standard deviation of a column.

        It is that of the values clamped to bounds, over the rows that have a value. The variance is
        the mean square of the distance from the mean, and the standard deviation its root. All
        sums come from one launch (:func:`.make_table_answers`). After ``.laplace()`` or
        ``.gaussian()`` the answer is an :class:`.Estimate` with an interval; for groups, a list of
        them in the order of the keys.

        :param norm: if left out, that of the noise that follows
        """
        one = tables.Answer(statistic, column, bounds, quantum)
        return self._estimates({"": one}, *self._keyed(by, keys), norm, one)

    return _named(statistic, ask)


def _quantile_at(name: str, alpha: float) -> Callable[..., Any]:
    """Return the method of one quantile."""

    def ask(
        self: TableQuery,
        column: str,
        candidates: Sequence[float],
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
    ) -> Any:
        """Return the median of a column, or a number beyond which few values are.

        This is :meth:`quantile` at 0.5 (``median``), 0.01 (``min``) or 0.99 (``max``). The smallest
        value itself depends on one unit, so no private answer is near it.
        """
        return self.quantile(column, candidates, alpha, by, keys)

    return _named(name, ask)


class TableQuery(ConcurrentQuery):
    """A query on a table. Each method has the arguments of its transformation in ``oc.t``."""

    _advice = TABLES

    def new_with(self, *, chain: Any, wrap_release: Any = None) -> Any:
        """Return the query with another chain."""
        return table_query(super().new_with(chain=chain, wrap_release=wrap_release))

    # --- steps -----------------------------------------------------------------------------------

    where = _step("where", tables.then_where)

    def with_columns(self, **columns: tables.Expression) -> TableQuery:
        """Add columns, whose values are expressions on the row; see :func:`.make_with_columns`."""
        made: TableQuery = self.new_with(chain=self._chain >> tables.then_with_columns(columns))
        return made

    def select(self, columns: Sequence[str] | None = None, **answers: TableAnswerQuery) -> Any:
        """Keep some columns (:func:`.make_table_select`), or release several answers in one launch.

        Each answer has a name, and is a count, sum, mean, variance or deviation of this query, all
        of them by the same keys or by none: ``few.select(n=few.count(), age=few.mean("age", (0,
        120)))``. After ``.laplace()`` or ``.gaussian()`` the release is a mapping from names to
        estimates, or a frame. See :func:`.make_table_answers`.

        :param columns: names of columns to keep
        :param answers: queries
        """
        if (columns is None) == (not answers):
            raise InvalidTypeError(
                "columns must be names of columns to keep; or pass answers by name, such as "
                "select(n=query.count(), age=query.mean('age', (0, 120)))"
            )
        if columns is not None:
            return self.new_with(chain=self._chain >> tables.then_table_select(columns))
        labels, specs = self._together(answers)
        by = [name for name, _ in labels.columns] or None
        keys = [key[0] if len(key) == 1 else key for key in labels.keys] if by else None
        return self._estimates(dict(zip(answers, specs, strict=True)), by, keys, labels, None)

    def _estimates(
        self,
        answers: Mapping[str, tables.Answer],
        by: Sequence[str] | None,
        keys: tables.Keys,
        labels: Labels,
        norm: str | None,
        spec: tables.Answer | None = None,
    ) -> TableAnswerQuery:
        """Return the query for estimates of answers by name, from one launch."""
        schema, specs = self._schema(), list(answers.values())

        def read(chosen: str) -> Labels:
            joint = tables.Joint.of(schema, specs, chosen)

            def estimates(values: Sequence[int], noise: Noise) -> dict[str, list[tables.Estimate]]:
                return dict(zip(answers, joint.estimates(values, noise.accuracy), strict=True))

            return replace(labels, read=estimates, shares=joint.shares)

        return self._answer(
            lambda chosen: tables.then_table_answers(specs, by, keys, norm=chosen),
            read,
            norm,
            spec,
        )

    def _together(
        self, answers: Mapping[str, TableAnswerQuery]
    ) -> tuple[Labels, list[tables.Answer]]:
        """Return the common keys of answers, and what they are, or raise."""
        specs, labels = [], None
        for name, one in answers.items():
            spec, rows = one._of if type(one) is TableAnswerQuery else (None, None)
            if spec is None or rows is not self._chain:
                raise InvalidTypeError(
                    f"{name} must be a count, sum, mean, variance or deviation of the same query, "
                    "without noise: few = context.query().truncate(3); few.select(n=few.count())"
                )
            own = Labels(one._labels.columns, one._labels.keys)
            if labels is not None and own != labels:
                raise InvalidValueError(f"{name} must have the by and keys of the other answers")
            labels = own
            specs.append(spec)
        assert labels is not None
        labels.check(list(answers))
        return labels, specs

    def per_unit(self, **columns: tables.Answer) -> TableQuery:
        """Go on with one row for each unit; see :func:`.make_per_unit`.

        ``query.per_unit(visits=oc.tables.count(), last=oc.tables.max("day"))``
        """
        made: TableQuery = self.new_with(chain=self._chain >> tables.then_per_unit(columns))
        return made

    truncate = _step("truncate", tables.then_truncate)
    group_truncate = _step("group_truncate", tables.then_group_truncate)
    join = _step("join", tables.then_public_join)
    join_private = _step("join_private", tables.then_private_join)

    # --- aggregates ------------------------------------------------------------------------------

    def count(
        self,
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        column: str | None = None,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Count the rows, or those of each public key; see :func:`.make_table_count`.

        :param keys: values of these columns; they must be public. With ``by`` alone, they must be
            given, too
        :param column: counts only rows with a value in this column
        :param norm: if left out, that of the noise that follows
        """
        names, public, labels = self._keyed(by, keys)
        return self._answer(
            lambda chosen: tables.then_table_count(names, public, column=column, norm=chosen),
            labels,
            norm,
            tables.Answer("count", column),
        )

    def distinct_units(
        self,
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Count the units, or those of each public key; see :func:`.make_distinct_units`.

        :param norm: if left out, that of the noise that follows
        """
        names, public, labels = self._keyed(by, keys)
        return self._answer(
            lambda chosen: tables.then_distinct_units(names, public, norm=chosen), labels, norm
        )

    def rows_per_unit(
        self, edges: Sequence[int] = tables.ROWS, *, norm: str | None = None
    ) -> TableAnswerQuery:
        """Count the units by their numbers of rows; see :func:`.make_rows_per_unit`.

        :param norm: if left out, that of the noise that follows
        """
        public = checks.sequence("numbers", edges=edges)
        labels = Labels((("from", int), ("below", int)), list(pairwise(public)))
        return self._answer(
            lambda chosen: tables.then_rows_per_unit(public, norm=chosen), labels, norm
        )

    def count_distinct(
        self,
        columns: str | Sequence[str],
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Count the different values of columns; see :func:`.make_distinct_values`.

        :param norm: if left out, that of the noise that follows
        """
        names, public, labels = self._keyed(by, keys)
        return self._answer(
            lambda chosen: tables.then_distinct_values(columns, names, public, norm=chosen),
            labels,
            norm,
        )

    def sum(
        self,
        column: str,
        bounds: tuple[float, float],
        quantum: float | None = None,
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Sum a column, for each public key if there are keys; see :func:`.make_table_sum`.

        The answer is in the unit of the column.

        :param norm: if left out, that of the noise that follows
        """
        names, public, labels = self._keyed(by, keys)
        kind = self._schema().type_of(
            tables.name_of("column", self._schema(), column, (int, float))
        )
        size = None if quantum is None else checks.positive(quantum=quantum)
        of = column, bounds, quantum
        return self._answer(
            lambda chosen: tables.then_table_sum(*of, names, public, norm=chosen),
            replace(labels, value=kind, unit=tables.unit_of_sum(kind, size)),
            norm,
            tables.Answer("sum", *of),
        )

    mean, variance, stdev = map(_statistic, ("mean", "variance", "stdev"))

    def histogram(
        self,
        column: str,
        edges: Sequence[float],
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        norm: str | None = None,
    ) -> TableAnswerQuery:
        """Count the rows between public edges, by key if asked; see :func:`.make_table_histogram`.

        :param norm: if left out, that of the noise that follows
        """
        name, kind, public = self._numbers(column, edges=edges)
        names, plain, keyed = self._keyed(by, keys)
        columns = (*keyed.columns, ("from", kind), ("below", kind))
        labels = Labels(columns, [(*key, *ends) for key in keyed.keys for ends in pairwise(public)])
        return self._answer(
            lambda chosen: tables.then_table_histogram(name, public, names, plain, norm=chosen),
            labels,
            norm,
        )

    def quantile_scores(
        self, column: str, candidates: Sequence[float], alpha: float
    ) -> TableAnswerQuery:
        """Score candidates for a quantile; see :func:`.make_quantile_scores`."""
        name, kind, public = self._numbers(column, candidates=candidates)
        labels = Labels((("candidate", kind),), [(one,) for one in public])
        return self._answer(
            lambda _: tables.then_quantile_scores(name, public, alpha), labels, "linf"
        )

    def quantile(
        self,
        column: str,
        candidates: Sequence[float],
        alpha: float | Sequence[float] = 0.5,
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        scale: float | None = None,
        norm: str | None = None,
    ) -> Any:
        """Return one of the candidates, near a quantile.

        Two candidates are taken for bounds: the candidates are then at most 250 numbers from one
        to the other, evenly spaced, and the answer has an interval. Integers and decimals are all
        candidates, if they are at most 250.

        With more candidates and without keys, it is chosen by a noisy maximum; see
        :func:`.make_quantile_scores` and :func:`opendp.measurements.make_noisy_max`. With keys, or
        for an interval, end the query with ``laplace()`` or ``gaussian()``: the answer is an
        :class:`.Estimate`, one for each key, whose value is the last candidate below which at most
        a share ``alpha`` of the rows is, with an interval. All come from one release; see
        :func:`.make_table_prefixes`.

        :param candidates: increasing numbers of the column's type; or a lower and an upper bound
        :param alpha: which quantile, in [0, 1]; or several, such as ``[0.25, 0.5, 0.75]``, from one
            release, as with keys; each has the name of its number
        :param by: names of columns
        :param keys: distinct values of these columns
        :param scale: scale of the noise, without keys only; found from the privacy loss of the
            query if left out
        :param norm: with keys only; if left out, that of the noise that follows
        """
        name, kind, public = self._numbers(column, candidates=candidates)
        between = len(public) == 2
        if between:
            public = tables.spaced(kind, candidates=public)
        prefixes = partial(self._prefixes, name, public, alpha, by, keys, norm)
        if by is not None or keys is not None or isinstance(alpha, (list, tuple)):
            return prefixes()
        if between and scale is None:
            return self._quantile(self._with_noise(prefixes()), prefixes)
        share, measure = checks.probability(alpha=alpha), self._measure_of_noise()
        scores = self.quantile_scores(name, public, share)

        def noisy(scale: float) -> Any:
            return query_parts(scores).chain >> dp.m.then_noisy_max(measure, scale, negate=True)

        chain = dp.PartialChain(noisy) if scale is None else noisy(scale)
        return self._quantile(
            self.new_with(chain=chain, wrap_release=lambda place: public[place]), prefixes
        )

    median, min, max = map(_quantile_at, ("median", "min", "max"), (0.5, 0.01, 0.99))

    def bounds(
        self,
        column: str,
        share: float = 0.01,
        exponents: Sequence[int] = range(-10, 41),
        by: str | Sequence[str] | None = None,
        keys: tables.Keys = None,
        *,
        alpha: float = 0.001,
    ) -> TableBoundsQuery:
        """Return bounds for a sum or mean from the data: powers of 2, or 0, with either sign.

        Noisy counts between these numbers are one release of :func:`.make_table_histogram`, with
        Laplace noise, or Gaussian noise under zCDP. A count that noise alone may be is taken for
        0. At most about the share of the other rows is below the lower bound, and as many are
        above the upper one. If no count is left, there are too few rows to tell, which is an error.

        :param share: of the rows that each bound may cut off
        :param exponents: of the powers; a power that the column's type does not have, such as 1/2
            of integers, is left out
        :param by: names of columns
        :param keys: distinct values of these columns. The answer is then a list of bounds, in the
            order of the keys, with None for a key that has too few rows
        :param alpha: probability that a count of no rows is not taken for 0
        :raises TooFewRowsError: by ``release``, after the charge
        """
        name = tables.name_of("column", self._schema(), column, (int, float))
        kind, part = self._schema().type_of(name), checks.probability(share=share)
        if not part < 0.5:
            raise InvalidValueError(f"share ({part}) must be below 0.5, or no value is left")
        failing = checks.positive(alpha=checks.probability(alpha=alpha))
        cuts = tables.powers_of_two(kind, exponents=exponents)
        end = inf if kind is float else tables.in_unit(kind, tables.LARGEST)
        names, plain, _ = self._keyed(by, keys)
        edges = [-end, *cuts, end]
        counts = self._answer(
            lambda chosen: tables.then_table_histogram(name, edges, names, plain, norm=chosen),
            Labels(),
            None,
        )
        accuracy = ACCURACIES[self._noise_of_measure()]
        noisy = self._with_noise(counts)
        found = TableBoundsQuery(*query_parts(self.new_with(chain=query_parts(noisy).chain)))

        def read(values: Sequence[int], scale: float) -> Any:
            # noise is above the threshold in one of the counts with at most this probability
            threshold, size = accuracy(scale, min(1.0, 2 * failing / len(values))), len(edges) - 1
            groups = [values[start : start + size] for start in range(0, len(values), size)]
            ends = [tables.bounds_of(group, cuts, threshold, part) for group in groups]
            if names is None and ends[0] is None:
                raise TooFewRowsError(threshold, failing)
            return ends[0] if names is None else ends

        found._read = read
        return found

    def top(self, count: int, by: str | Sequence[str], keys: tables.Keys) -> ConcurrentQuery:
        """Return the public keys with the most rows, the largest first.

        Either noisy counts of all keys are sorted, or OpenDP's noisy top-k selects the keys:
        whichever has less noise at the same loss. Counts have less if a unit has few groups: up to
        1.4 times as many as keys are asked for under pure DP, and 1.6 times under zCDP.

        :param count: number of keys
        """
        names, public, _ = self._keyed(by, keys)
        public, wanted = public or [], checks.count(count=count)
        if wanted > len(public):
            raise InvalidValueError(f"count ({wanted}) must be at most {len(public)}, one per key")
        domain, metric, d_in = self._unit()

        @cache
        def counts(norm: str) -> dp.Transformation:  # keys are checked once for each norm
            made: dp.Transformation = tables.make_table_count(
                domain, metric, names, public, norm=norm
            )
            return made

        way = best_top(d_in, counts, self._measure_of_noise(), wanted)
        made: ConcurrentQuery = self.new_with(
            chain=dp.PartialChain(lambda scale: self._after(way.measurement(scale))),
            wrap_release=lambda found: [public[place] for place in way.places(found)],
        )
        return made

    def _with_noise(self, answer: TableAnswerQuery) -> TableAnswerQuery:
        """Return an answer with noise: Gaussian if the loss of the query is of zCDP, or Laplace."""
        noisy: TableAnswerQuery = getattr(answer, self._noise_of_measure())()
        return noisy

    def _noise_of_measure(self) -> str:
        return "laplace" if self._measure_of_noise() == dp.max_divergence() else "gaussian"

    @staticmethod
    def _quantile(query: ConcurrentQuery, prefixes: Callable[[], TableAnswerQuery]) -> Any:
        chosen = TableQuantileQuery(*query_parts(query))
        noted = query if isinstance(query, TableAnswerQuery) else None
        chosen._labels = Labels() if noted is None else noted._labels
        chosen._noise = None if noted is None else noted._noise
        chosen._prefixes = prefixes
        return chosen

    def _prefixes(
        self,
        column: str,
        candidates: Sequence[float],
        alpha: float | Sequence[float],
        by: str | Sequence[str] | None,
        keys: tables.Keys,
        norm: str | None,
    ) -> TableAnswerQuery:
        cuts = checks.sequence("numbers", candidates=candidates)
        one = not isinstance(alpha, (list, tuple))
        shares = {
            "" if one else f"{share:g}": checks.probability(alpha=share)
            for share in ([alpha] if one else checks.sequence("shares", alpha=alpha))
        }
        names, plain, labels = self._keyed(by, keys)

        def read(chosen: str) -> Labels:
            def estimates(values: Sequence[int], noise: Noise) -> dict[str, list[tables.Estimate]]:
                strategy = tables.strategy_for(len(cuts) + 1, chosen)
                law = _NORMS[noise.name] == "l1", noise.scale
                return {
                    name: strategy.quantiles(values, cuts, share, law, noise.alpha)
                    for name, share in shares.items()
                }

            return replace(labels, read=estimates)

        return self._answer(
            lambda chosen: tables.then_table_prefixes(column, cuts, names, plain, norm=chosen),
            read,
            norm,
        )

    # --- keys from the data ----------------------------------------------------------------------

    def keys(
        self, by: str | Sequence[str], d_out: tuple[float, float] | None = None
    ) -> TableKeysQuery:
        """Find the keys that enough units have, under (ε, δ); see :func:`.make_table_keys`.

        :param d_out: (ε, δ); that of the query if left out, which is then one under (ε, δ)
        """
        columns = self._columns(by)
        if d_out is None:
            if self._output_measure != dp.approximate(dp.max_divergence()) or self._d_out is None:
                raise InvalidTypeError(
                    "d_out must be given: keys are found from the data under (ε, δ) only, and the "
                    "query has no such privacy loss; pass one, such as d_out=(0.5, 1e-7), or begin "
                    "with context.query(epsilon=0.5, delta=1e-7)"
                )
            d_out = self._d_out
        names, (_, _, d_in) = [name for name, _ in columns], self._unit()
        made = super().__getattr__("table_keys")(names, d_out=d_out, d_in=d_in)
        found = TableKeysQuery(*query_parts(made))
        found._columns, found._scale = columns, made._chain.scale
        if self._output_measure != dp.approximate(dp.max_divergence()):
            found._chain = composition.cast(made._chain, self._output_measure)
        return found

    # --- what the methods share ------------------------------------------------------------------

    def _schema(self) -> tables.Schema:
        domain, metric, _ = self._unit()
        return tables.tables_of(domain, metric).schema

    def _columns(self, by: str | Sequence[str]) -> tuple[tuple[str, tables.Type], ...]:
        schema = self._schema()
        return tuple(
            (name, schema.type_of(name)) for name in tables.names_of("by", schema, by, tables.KEYS)
        )

    def _numbers(self, column: str, **argument: Any) -> tuple[str, tables.Type, list[Any]]:
        """Return the name and the type of a column of numbers, and public ones of its type."""
        ((place, _),) = argument.items()
        name = tables.name_of("column", self._schema(), column, (int, float))
        kind = self._schema().type_of(name)
        numbers = checks.sequence("numbers", **argument)
        return (
            name,
            kind,
            [tables.in_unit(kind, tables.value_of(kind, **{place: one})) for one in numbers],
        )

    def _keyed(
        self, by: str | Sequence[str] | None, keys: tables.Keys
    ) -> tuple[tuple[str, ...] | None, list[Any] | None, Labels]:
        """Return names of columns, public keys, and the labels of both; neither without keys."""
        schema = self._schema()
        names, found = tables.groups_of(schema, by, keys)
        if not names:
            return None, None, Labels()
        types = list(map(schema.type_of, names))
        public = [tuple(map(tables.in_unit, types, key)) for key in found]
        plain = [key[0] if len(names) == 1 else key for key in public]
        return names, plain, Labels(tuple(zip(names, types, strict=True)), public)

    def _answer(
        self,
        then: Callable[[str], Any],
        labels: Labels | Callable[[str], Labels],
        norm: str | None = "l1",
        spec: tables.Answer | None = None,
    ) -> TableAnswerQuery:
        chain = self._chain

        def under(chosen: str) -> TableAnswerQuery:
            made = ConcurrentQuery.new_with(self, chain=chain >> then(chosen))
            answer = TableAnswerQuery(*query_parts(made))
            answer._labels = labels if isinstance(labels, Labels) else labels(chosen)
            answer._of = spec, chain
            return answer

        answer = under("l1" if norm is None else norm)
        answer._under = None if norm is not None else under
        return answer


class TableAnswerQuery(ConcurrentQuery):
    """A query for integers of a table, which can be released as a data frame."""

    laplace: Callable[..., TableAnswerQuery]  # constructors, which __getattr__ adds
    gaussian: Callable[..., TableAnswerQuery]
    _labels: Labels
    _under: Callable[[str], TableAnswerQuery] | None = None  # the aggregate under another norm
    _of: tuple[tables.Answer | None, Any] = None, None  # for select(), and of which rows
    _noise: tuple[str, Any] | None = None  # the constructor's name, and its scale if it was given

    def new_with(self, *, chain: Any, wrap_release: Any = None) -> TableAnswerQuery:
        """Return the query with another chain, for the same integers."""
        made = super().new_with(chain=chain, wrap_release=wrap_release)
        answer = TableAnswerQuery(*query_parts(made))
        answer._labels, answer._noise, answer._of = self._labels, self._noise, (None, None)
        return answer

    def __getattr__(self, name: str) -> Any:
        """Add a constructor. The norm of the integers follows from the noise, unless given."""
        norm = _NORMS.get(name)
        if norm is None:
            return super().__getattr__(name)
        under = self._under
        on = self if under is None else under(norm)
        make = super(TableAnswerQuery, on).__getattr__(name)

        @wraps(make)
        def noted(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            made._noise = name, args[0] if args else kwargs.get("scale")
            return made

        return noted

    def summarize(self, alpha: float | None = None, *, answers: int | None = None) -> Summary:
        """Return the noise before a release, with the shares of the parts of a statistic."""
        found, unit = super().summarize(alpha, answers=answers), float(self._labels.unit)
        scale = None if found.scale is None else unit * found.scale
        error = None if found.accuracy is None else unit * found.accuracy
        return replace(found, scale=scale, accuracy=error, shares=self._labels.shares)

    def release(
        self,
        data: Data = None,
        bounds: tuple[float, float] | None = None,
        T: type | str | None = None,  # noqa: N803 - OpenDP's name
        *,
        frame: str | None = None,
        alpha: float = 0.05,
    ) -> Any:
        """Release the query: integers, estimates, or a data frame of them.

        A mean, a variance or a deviation is an :class:`.Estimate`, or a list of them by key; in a
        frame it has the columns ``value``, ``lower`` and ``upper``. The interval is about noise and
        about rounding to quanta, not about clamping and truncation. Other answers are in the unit
        of the column: sums in quanta are floats, sums of decimals are of ``decimal.Decimal``.

        The frame has a column for each key, ``value`` and ``accuracy``: the noise in a value is at
        most its accuracy, with probability at least 1 - alpha for each value. Accuracy is about
        noise only, not about clamping and truncation.

        :param data: as in OpenDP, for a query without context
        :param bounds: lower and upper bound of the search for the scale
        :param T: as in OpenDP
        :param frame: ``"polars"`` or ``"pandas"``; integers if left out. The library is imported
            before the launch
        :param alpha: probability, for each value, that its noise is above the accuracy
        :raises ImportError: if the library is not installed; nothing is charged
        """
        read = self._labels.read
        if frame is None and read is None:
            found, (name, _) = super().release(data, bounds, T), self._noise or ("", None)
            return self._labels.numbers(found) if name in ACCURACIES else found
        library = None if frame is None else library_of(frame=frame)
        checks.positive(alpha=checks.probability(alpha=alpha))
        self._labels.check()
        name, scale = self._noise or ("", None)
        if name not in ACCURACIES:
            what = "add noise first" if frame is None else "frame is for answers with noise"
            raise InvalidTypeError(
                f"{what}: end the query with laplace() or gaussian(), before release(...)"
            )
        measurement = self.resolve(bounds=bounds, T=T)
        noise = Noise(name, measurement.param if scale is None else scale, alpha)
        values = super(TableAnswerQuery, self.new_with(chain=measurement)).release(data)
        if library is not None:
            return self._labels.frame(library, values, noise)
        assert read is not None
        statistics = {
            name: found if self._labels.columns else found[0]
            for name, found in read(values, noise).items()
        }
        return statistics.get("", statistics)


class TableBoundsQuery(ConcurrentQuery):
    """A query for bounds of a column."""

    _read: Callable[[Sequence[int], float], Any]

    def release(
        self,
        data: Data = None,
        bounds: tuple[float, float] | None = None,
        T: type | str | None = None,  # noqa: N803 - OpenDP's name
    ) -> Any:
        """Release a lower and an upper bound, or those of each key."""
        measurement = self.resolve(bounds=bounds, T=T)
        return self._read(self.new_with(chain=measurement).release(data), measurement.param)


class TableQuantileQuery(TableAnswerQuery):
    """A query for a candidate near a quantile; with noise behind it, for one with an interval."""

    _prefixes: Callable[[], TableAnswerQuery]

    def __getattr__(self, name: str) -> Any:
        """Add noise to the numbers of values below candidates, or another constructor."""
        return getattr(self._prefixes(), name) if name in ACCURACIES else super().__getattr__(name)


class TableKeysQuery(ConcurrentQuery):
    """A query for keys of the data, which can be released as a data frame."""

    _columns: tuple[tuple[str, tables.Type], ...]
    _scale: float | None  # of the noise in numbers, if they are released

    def release(
        self,
        data: Any = None,
        bounds: tuple[float, float] | None = None,
        T: type | str | None = None,  # noqa: N803 - OpenDP's name
        *,
        frame: str | None = None,
        alpha: float = 0.05,
    ) -> Any:
        """Release keys: a mapping to noisy numbers of units, or to None; or a data frame.

        :param frame: ``"polars"`` or ``"pandas"``. The frame has a column for each key; and
            ``value`` and ``accuracy``, where numbers are released
        :param alpha: probability, for each key, that the noise is above the accuracy
        """
        library = None if frame is None else library_of(frame=frame)
        checks.positive(alpha=checks.probability(alpha=alpha))
        Labels(self._columns).check()
        found = super().release(data, bounds, T)
        if library is None:
            return found
        several = len(self._columns) > 1
        labels = Labels(self._columns, [key if several else (key,) for key in found])
        noise = None if self._scale is None else Noise("laplace", self._scale, alpha)
        return labels.frame(library, list(found.values()), noise)


def table_query(query: ConcurrentQuery) -> ConcurrentQuery:
    """Return the query as one on a table if it has tables as data; else unchanged."""
    chain = query_parts(query).chain
    domain = chain.output_domain if isinstance(chain, dp.Transformation) else None
    if isinstance(chain, tuple):
        domain = chain[0]
    if domain is None or not tables.TABLES.has(domain):
        return query
    return TableQuery(*query_parts(query))
