"""A query of a context, whose children are contexts of this package, and contexts by key.

A name that a query does not have is answered by what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from inspect import signature
from itertools import takewhile
from typing import Any, ClassVar

from opendp.context import constructors

from .. import _checks as checks
from .. import accounting, composition, data, measures, numerics, queryables
from .._opendp import Lock, dp, query_parts, uninterruptible
from ..composition import measure
from ..errors import Answer, Distance, InvalidTypeError, InvalidValueError, Key, Loss
from .accountant import accountant_of, by_opendp, largest_by_opendp, loss_under
from .answers import Summary, summarize
from .search import fitted


class NamedContexts(queryables.SealedHandle):
    """A context for each key of a handle. A context is opened when it is first asked for.

    ``contexts[key]`` and ``contexts(key)`` return the same context each time.
    """

    __iter__ = None  # the handle does not list its keys

    def __init__(self, handle: dp.Queryable, open_context: Callable[[Any, Any], Any]) -> None:
        self._handle, self._open = handle, open_context
        self._opened: dict[Any, Any] = {}

    def _adopt_by(self, lifecycle: accounting.Lifecycle, lock: Lock | None) -> None:
        self._handle._adopt_by(lifecycle, lock)

    def __call__(self, key: Key) -> Answer:
        """Return the context of one key."""
        queryable = self._handle(key)  # which checks the key
        if key not in self._opened:
            self._opened.setdefault(key, self._open(key, queryable))
        return self._opened[key]

    def __getitem__(self, key: Key) -> Any:
        """Return the context of one key."""
        return self(key)

    def __repr__(self) -> str:
        return f"NamedContexts({self._handle!r})"


# What to write in place of names that pandas, Polars or SQL have, on each kind of data.

_NO_ROWS = "no query returns rows; end it with noise and release(), such as count().laplace()"
_SCAN = "scan the data as a table, oc.tables.scan(frame, schema, unit), whose queries have "
_LISTS = {
    "filter where": "filter the data before the context is made; or " + _SCAN + "where",
    "group_by groupby agg histogram value_counts": "use count_by_categories([...])",
    "median quantile": "use private_quantile(candidates=[...], alpha=0.5)",
    "std stdev var": _SCAN + "stdev",
    "average avg": "use impute_constant(0.0).clamp((0.0, 10.0)).resize(100, 5.0).mean()",
    "len size": "use count()",
    "head tail limit collect show": _NO_ROWS,
}
_TABLES = {
    "filter query": "use where(oc.tables.col('age') >= 18)",
    "group_by groupby": "use by= and keys=, such as count(by='region', keys=['north', 'south'])",
    "agg aggregate": "use select(n=few.count(), age=few.mean('age', (0, 120)))",
    "value_counts": "use count(by='region', keys=['north', 'south'])",
    "std std_dev": "use stdev('age', (0, 120))",
    "var": "use variance('age', (0, 120))",
    "average avg": "use mean('age', (0, 120))",
    "len size": "use count()",
    "n_unique nunique unique": "use distinct_units(), or count_distinct('region')",
    "drop rename": "use select(['age', 'region']), or with_columns(years=oc.tables.col('age'))",
    "assign with_column map": "use with_columns(old=oc.tables.col('age') > 64)",
    "merge": "use join for public rows, join_private for a table of with_tables",
    "head tail limit collect show": _NO_ROWS,
}
_FRAMES = {  # which Polars does not have
    "where": "use filter(pl.col('age') >= 18)",
    "groupby": "use group_by('region').agg(dp.len())",
    "agg": "use select(...), or group_by('region').agg(dp.len())",
    "len size": "use select(dp.len())",
    "average avg": "use select(pl.col('age').fill_null(0).dp.mean((0, 120)))",
    "std_dev stdev": _SCAN + "stdev",
}


# for each kind of data, what an error says about a name
LISTS, TABLES, FRAMES = (
    {
        name: f"a query on a {kind} has no {name}: {text}"
        for names, text in table.items()
        for name in names.split()
    }
    for kind, table in (("list", _LISTS), ("table", _TABLES), ("LazyFrame", _FRAMES))
)

_REFUSALS = {  # of OpenDP, and what to do
    "Query is not yet a measurement": "add noise first, such as .laplace()",
    "Unable to cast measure": "use .laplace(), or a context with rho, or with epsilon and delta",
}


class ConcurrentQuery(queryables.AsTransformation, dp.Query):
    """A query whose children are contexts of this package."""

    _advice: ClassVar[dict[str, str]] = LISTS  # in place of names that are not here

    @uninterruptible
    def new_with(self, *, chain: Any, wrap_release: Any = None) -> ConcurrentQuery:
        """Return the query with another chain."""
        return concurrent_query(super().new_with(chain=chain, wrap_release=wrap_release))

    def __getattr__(self, name: str) -> Any:
        """Add a constructor; under this package's measures, noise is certified for the measure."""
        if name in self._advice and name not in dir(type(self)):
            raise AttributeError(self._advice[name])
        measure = self.__dict__.get("_output_measure")
        if name in ("laplace", "gaussian") and measures.is_extrinsic(measure):
            return partial(super().__getattr__(f"certified_{name}"), output_measure=measure)
        try:
            add = super().__getattr__(name)
        except AttributeError as error:
            near = get_close_matches(name, [*constructors, *dir(type(self))], n=1, cutoff=0.75)
            if name.startswith("_") or not near:
                raise
            raise AttributeError(f"{error} Or did you mean .{near[0]}(...)?") from None
        if name in ("private_quantile", "noisy_max", "noisy_top_k"):
            add = partial(_under, name, self._measure_of_noise(), add)
        return partial(_added, name, add) if name in constructors else add

    def __dir__(self) -> list[str]:
        """Return the names that it has, each once: some are methods and constructors."""
        return sorted(set(super().__dir__()))

    def _measure_of_noise(self) -> dp.Measure:
        """Return zCDP if the loss of the query is one, else pure DP."""
        zcdp = dp.zero_concentrated_divergence()
        return zcdp if self._output_measure in (zcdp, dp.approximate(zcdp)) else dp.max_divergence()

    def as_transformation(self) -> dp.Transformation:
        """Return the transformation that the query is so far, or raise."""
        chain = self._chain
        if not isinstance(chain, dp.Transformation):
            raise InvalidTypeError(
                f"the query must be a transformation, found {type(chain).__name__}; "
                "pass a query such as context.query().count()"
            )
        return chain

    def target(self) -> Any:
        """Return the loss to calibrate to: what was typed, rounded down, or a share as it is."""
        fixed = self._context is not None and self._context.d_mids is not None
        return self._d_out if fixed else numerics.to_spend(self._d_out)

    @uninterruptible
    def resolve(
        self,
        allow_transformations: bool = False,
        bounds: tuple[float | None, float | None] | None = None,
        T: type | str | None = None,  # noqa: N803 - OpenDP's name
    ) -> Any:
        """Find the missing parameter of the query and cast the result to the context's measure.

        See :meth:`opendp.context.Query.resolve`. OpenDP casts between its own measures.
        """
        measure, chain, d_out = self._output_measure, self._chain, self.target()

        def under(made: Any) -> Any:
            if measures.is_extrinsic(measure) and isinstance(made, dp.Measurement):
                made = made if made.output_measure == measure else composition.cast(made, measure)
            plain = super(ConcurrentQuery, self).new_with(chain=made)
            plain._d_out = d_out  # a cast fixes its δ
            plain._d_in = None  # newer OpenDP refuses a loss above d_out, which a search must see
            try:
                return plain.resolve(allow_transformations)
            except ValueError as error:
                for text, advice in _REFUSALS.items():
                    if str(error).startswith(text):
                        raise InvalidValueError(f"{str(error).rstrip('.')}; {advice}") from error
                raise

        if not isinstance(chain, dp.PartialChain):
            return under(chain)
        return fitted(lambda number: under(chain(number)), measure, self._d_in, d_out, bounds, T)

    def summarize(self, alpha: float | None = None, *, answers: int | None = None) -> Summary:
        """Return the noise that the query would have, and its accuracy, without releasing it.

        Nothing is charged. OpenDP's queries on frames have the same method.

        :param alpha: probability of a larger error, for the accuracy
        :param answers: number of answers that are all within it, if the query does not fix it
        """
        return summarize(self.resolve(), alpha, answers)

    def compositor(
        self,
        split_evenly_over: int | None = None,
        split_by_weights: Sequence[float] | None = None,
        d_out: Loss | None = None,
        output_measure: dp.Measure | None = None,
        alpha: float | None = None,
    ) -> dp.Query:
        """Nest a context; see :meth:`opendp.context.Query.compositor`.

        With ``output_measure`` the nested context composes under that measure, within the largest
        loss that converts to the loss of the query.
        """
        d_out = self._loss(d_out)
        inner, convert = self._inner(d_out, output_measure, alpha)
        domain, metric, d_in = self._unit()
        accountant, d_mids, budget = accountant_of(
            domain, (metric, d_in), inner, split_evenly_over, split_by_weights
        )
        space, chained = (domain, metric), self._after(accountant)  # as OpenDP's contexts have it
        budget = d_out if budget is None else budget

        def wrap_release(queryable: dp.Queryable) -> dp.Context:
            return self._context.nested(chained, queryable, d_in, d_mids, budget, space)

        return self.new_with(chain=self._after(convert(accountant)), wrap_release=wrap_release)

    def block_filter(
        self,
        d_out: Loss,
        blocks: data.Partition,
        keys: Collection[Any] | None = None,
        *,
        orders: Sequence[float] | None = None,
        halt: bool = False,
        accumulator: measures.Accumulator | None = None,
    ) -> dp.Query:
        """Give each block of the data its own budget; see :func:`.make_block_filter`.

        The release is a :class:`.BlockFilterQueryable`, whose launches name their blocks. ``d_out``
        is charged once, at release.

        :param d_out: bound on the privacy loss of all blocks together
        :param blocks: such as ``oc.c.by_column("week")``
        :param keys: public keys of the first blocks
        :param orders: for Rényi curves only: the orders at which ``d_out`` is enforced
        :param halt: close the whole interaction at the first message that is no admitted launch
        :param accumulator: how the losses of a block's queries add up
        """
        domain, metric, d_in = self._unit()
        odometer = composition.make_concurrent_odometer(
            domain, metric, self._output_measure, accumulator=accumulator
        )
        made = composition.make_block_filter(
            odometer, d_in, d_out, blocks=blocks, keys=keys, orders=orders, halt=halt
        )
        self._check_loss(made, d_in)
        return self.new_with(chain=self._after(made))

    def parallel_composition(
        self,
        partition: data.Partition,
        measurements: Mapping[Any, dp.Measurement] | None = None,
        *,
        keys: Collection[Any] | None = None,
        split_evenly_over: int | None = None,
        split_by_weights: Sequence[float] | None = None,
        accumulator: measures.Accumulator | None = None,
        orders: Sequence[float] | None = None,
    ) -> dp.Query:
        """Split the data into parts, one context each; see :func:`.make_parallel_composition`.

        The release maps a public key to the context of its part, ``parts["north"]``. The privacy
        loss of the query is charged once, whatever the number of parts. If k parts may differ
        between neighbours, each part's loss is one of k equal shares.

        With ``measurements`` instead of ``keys``, the release maps a key to the release of its
        measurement.

        :param partition: such as ``oc.c.by_column("region")``
        :param measurements: the measurement of each key
        :param keys: the public keys of the parts
        :param split_evenly_over: number of queries that share a part's loss evenly
        :param split_by_weights: the proportions in which queries share a part's loss
        :param accumulator: how losses of a part add up that are chosen on the way
        :param orders: for Rényi curves only: the orders at which losses are enforced
        """
        if measurements is not None:
            if keys is not None:
                raise InvalidTypeError("keys and measurements exclude each other; pass one of them")
            made: dp.Query = super().__getattr__("parallel_composition")(partition, measurements)
            return made
        if keys is None:
            raise InvalidTypeError(
                'keys must be the public keys of the parts, such as keys=["north", "south"]'
            )
        partition = data.partitioned(partition=partition)
        names = checks.elements("keys", keys=list(checks.read("keys", keys=keys)))
        if not names:
            raise InvalidValueError("keys must have at least one key")
        d_out = self._loss(None)
        domain, metric, d_in = self._unit()
        kind = data.kind_of(domain)
        metric_of_parts, factor = partition.metric_of_parts(metric, domain)
        checks.integer(d_in=d_in)
        distance, part_domain = factor * d_in, kind.domain_of_parts(domain)
        measure = measures.composition_measure(self._output_measure)
        differing = min(distance, len(set(names))) or 1
        share = measure.split(measure.validate_budget("d_out", d_out), [Fraction(1)] * differing)[0]
        # a unit of a table may have rows in several parts, which then differ by this unit only
        each = d_in if kind.in_engine else distance
        accountant, d_mids, budget = accountant_of(
            part_domain,
            (metric_of_parts, each),
            (self._output_measure, share),
            split_evenly_over,
            split_by_weights,
            orders,
            accumulator,
        )
        parts = composition.make_parallel_composition(
            domain, metric, partition, dict.fromkeys(names, accountant)
        )
        self._check_loss(parts, d_in)

        def open_context(_: Any, queryable: dp.Queryable) -> dp.Context:
            own = None if d_mids is None else list(d_mids)
            space = part_domain, metric_of_parts
            return self._context.nested(accountant, queryable, each, own, budget, space)

        return self.new_with(
            chain=self._after(parts),
            wrap_release=lambda handle: NamedContexts(handle, open_context),
        )

    # --- what the methods share ------------------------------------------------------------------

    def _loss(self, d_out: Loss | None) -> Any:
        d_out = self.target() if d_out is None else numerics.to_spend(d_out)
        if d_out is None:
            raise InvalidTypeError(
                "the query has no privacy loss, which its children share: pass one, such as "
                "context.query(epsilon=0.5)"
            )
        return d_out

    def _inner(
        self, d_out: Any, inner: dp.Measure | None, alpha: float | None
    ) -> tuple[tuple[dp.Measure, Any], Callable[[Any], Any]]:
        """Return the measure and the loss of a nested context, and the cast of its accountant."""
        outer = self._output_measure
        if inner is None or inner == outer:
            return (outer, d_out), lambda accountant: accountant
        inner = measure(output_measure=inner)
        delta = d_out[1] if isinstance(outer, dp.ApproximateDivergence) else None
        if inner == dp.approximate(dp.zero_concentrated_divergence()) and delta is not None:
            most = largest_by_opendp(d_out, delta * checks.probability(alpha=alpha))
            convert = partial(by_opendp, delta=delta)
            return (inner, most), lambda made: composition.recertify(made, outer, convert)
        loss = loss_under(inner, outer, d_out, delta)
        return (inner, loss), lambda accountant: composition.cast(accountant, outer, delta=delta)

    def _unit(self) -> tuple[Any, dp.Metric, Any]:
        """Return the domain and metric of the query's data, and the distance of neighbours."""
        chain = self._chain
        if isinstance(chain, dp.Transformation):
            return chain.output_domain, chain.output_metric, chain.map(self._d_in)
        if not isinstance(chain, tuple):
            raise InvalidTypeError(
                f"the query is a measurement already ({type(chain).__name__}), and has no data for "
                "children; begin with context.query()"
            )
        return chain[0], chain[1], self._d_in

    def _after(self, made: Any) -> Any:
        return self._chain >> made if isinstance(self._chain, dp.Transformation) else made

    def _check_loss(self, made: dp.Measurement, d_in: Distance) -> None:
        """Raise if the loss is above that of the query."""
        if self._d_out is None:
            return
        measure = measures.composition_measure(self._output_measure)
        loss = queryables.read_map(made, d_in)
        if not measure.check(loss, self._d_out):
            raise InvalidValueError(
                f"the query has the privacy loss {checks.shown(self._d_out)}, which must be at "
                f"least the {checks.shown(loss)} of its children; pass smaller losses, or a query "
                "with a larger one"
            )


def _added(name: str, add: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Add a constructor to a query. OpenDP only counts the missing parameters; this names them."""
    try:
        return add(*args, **kwargs)
    except ValueError as error:
        if str(error).startswith(f"{name} has ") and str(error).endswith("too many."):
            known = ", ".join(str(one) for one in signature(constructors[name][0]).parameters)
            raise InvalidValueError(
                f"{name} has too many parameters, and takes ({known}); write bounds before it, "
                f"such as clamp((0.0, 10.0)).{name}()"
            ) from error
        if not str(error).startswith(f"{name} is missing"):
            raise
    missing: list[str] = []
    for one in signature(constructors[name][0]).parameters.values():
        if one.name not in kwargs:
            if one.default is not one.empty:
                break
            missing.append(one.name)
    names = ", ".join(missing[len(args) :])
    raise InvalidValueError(
        f"{name} needs the parameters {names}; pass them as {name}(...), or call release() if the "
        "query has noise already. At most one parameter of a query can be left out, which is then "
        "found from its privacy loss"
    )


def _under(
    name: str, measure: dp.Measure, add: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Add a constructor whose first argument is a measure, which may be left out."""
    names = list(signature(constructors[name][0]).parameters)
    if args and not isinstance(args[0], dp.Measure):
        args = measure, *args
    values = {"output_measure": measure, **dict(zip(names, args, strict=False)), **kwargs}
    # by position as far as they go: OpenDP puts the one that is left out behind these
    first = [values.pop(one) for one in takewhile(lambda one: one in values, names)]
    return add(*first, **values)


def concurrent_query(query: dp.Query) -> ConcurrentQuery:
    """Return OpenDP's query as one of this package."""
    return ConcurrentQuery(*query_parts(query))
