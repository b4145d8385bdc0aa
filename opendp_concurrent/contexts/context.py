"""A ``dp.Context`` that uses this package's compositor, odometer and filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import inf
from typing import Any

from opendp.context import Context, PartialChain, Query, domain_of
from opendp.domains import vector_domain, with_margin
from opendp.mod import (
    Domain,
    ExtrinsicDivergence,
    Measurement,
    Odometer,
    Transformation,
    assert_features,
)

from .. import checks
from ..accounts.charge import Ledger
from ..accounts.price import own_distance
from ..checks import at_most, checked, optional
from ..combinators import guards
from ..combinators.cast import cast
from ..combinators.concurrent_composition import MOST_LAUNCHES, make_concurrent_composition
from ..combinators.concurrent_filter import make_concurrent_filter
from ..combinators.concurrent_odometer import make_concurrent_odometer
from ..combinators.loss_of import guarded, loss_of
from ..errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    SharesUsedError,
    SpaceMismatchError,
)
from ..measures import composition_measure
from ..measures.sums.accumulator import Accounting
from ..owned import plain
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer
from .fitted import fitted
from .frame_query import concurrent_frames
from .summary import Summary, summarize

_SHARES = at_most(MOST_LAUNCHES, "each query has a share of its own")


@checked(
    privacy_unit=guards.privacy_unit,
    privacy_loss=guards.privacy_loss,
    split_evenly_over=optional(_SHARES),
    domain=optional(guards.domain),
)
def concurrent_context(
    data: Any,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    domain: Domain | None = None,
    margins: Sequence[Any] | Mapping[Any, Any] | None = None,
    *,
    orders: Sequence[float] | None = None,
    accumulator: Accounting | None = None,
    ledger: Ledger | None = None,
    opaque_errors: bool = False,
) -> Context:
    """Build a ``dp.Context`` whose queries compose concurrently.

    The arguments are those of :meth:`opendp.context.Context.compositor`. ``split_evenly_over`` and
    ``split_by_weights`` fix the losses of the queries up front. The exact sum of these shares is at
    most the privacy loss, so every share can be spent. Without a split, losses are chosen
    adaptively: under a filter, or under an odometer if the privacy loss is infinite.

    Required features: `contrib`, `honest-but-curious`

    :param data: the data to be analysed; a Polars LazyFrame works as in OpenDP
    :param privacy_unit: a metric and a distance, such as ``dp.unit_of(contributions=1)``
    :param privacy_loss: a measure and a loss, such as ``dp.loss_of(epsilon=1.0)``
    :param split_evenly_over: number of queries that share the privacy loss evenly, at most 10^5
    :param split_by_weights: the proportions in which queries share the privacy loss
    :param domain: domain of the data; inferred if left out, which makes the data's structure public
    :param margins: descriptors for grouped Polars data
    :param orders: for Rényi curves only: the orders at which the loss is enforced
    :param accumulator: how adaptively chosen losses add up, as in ``make_concurrent_odometer``;
        not with a split
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge durably before its
        mechanism runs; not with a split
    :param opaque_errors: hide errors of mechanisms from the analyst: each raises the same
        :class:`.MechanismError`, and the logger ``opendp_concurrent.measurements`` logs the
        original error
    :return: a context
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if no composition rule is known for the measure
    :raises LedgerError: if the ledger cannot be read, or was made under other terms

    :example:

    >>> context = oc.concurrent_context(
    ...     data=[1, 2, 3],
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ...     split_evenly_over=3,
    ... )
    >>> releases = [context.query().count().laplace().release() for _ in range(3)]
    >>> context.remaining_privacy_loss()
    []
    """
    assert_features("contrib", "honest-but-curious")
    metric, d_in = privacy_unit
    d_in = plain(own_distance(d_in))
    if domain is None:
        domain = _inferred(data)
    domain = _with_margins(domain, margins)
    accountant, d_mids, d_out = _accountant(
        domain,
        (metric, d_in),
        privacy_loss,
        split_evenly_over,
        split_by_weights,
        orders,
        accumulator,
        ledger,
        opaque_errors,
    )
    try:
        queryable = accountant(data)
    except TypeError as error:
        if _is_of_one(domain, data):
            raise InvalidTypeError(
                f"domain ({domain}) does not fit the data: {error}; "
                "to fix, wrap it with dp.vector_domain()"
            ) from error
        raise
    return ConcurrentContext(accountant, queryable, d_in, d_mids, d_out)


def _inferred(data: Any) -> Domain:
    """Return the domain of the data. The error has no row of them, nor OpenDP's error, if any."""
    try:
        return domain_of(data, infer=True)
    except Exception:  # what it says may depend on rows
        pass
    hint = ""
    if type(data).__module__.partition(".")[0] == "pandas":
        hint = "; of a pandas frame, pass a column's .tolist(), or pl.from_pandas(frame).lazy()"
    raise InvalidTypeError(
        f"data ({type(data).__name__}) must be one value, a list or array of values of one type, "
        f"or a Polars LazyFrame, for their domain to be inferred; or pass domain{hint}"
    )


def _with_margins(domain: Domain, margins: Any) -> Domain:
    """Return the domain with the descriptors for grouped data, or raise."""
    if margins is None:
        return domain
    try:
        if checks.is_a(margins, Mapping):  # OpenDP's older form, {by: margin}
            margins = [replace(margin, by=by) for by, margin in margins.items()]
        for margin in checks.read("descriptors of groups", margins=margins):
            domain = with_margin(domain, margin)
    except ConcurrentError:
        raise
    except Exception as error:
        raise InvalidTypeError(
            f"margins ({checks.shown(margins)}) must be a list of dp.polars.Margin, for LazyFrames"
        ) from error
    return domain


def _is_of_one(domain: Domain, data: Any) -> bool:
    """Return whether ``domain`` is the domain of one element of the data."""
    try:
        return bool(vector_domain(domain) == domain_of(data, infer=True))
    except Exception:  # OpenDP has no vectors of this domain
        return False


class ConcurrentContext(Context):
    """A context with exact sums, whose nested compositors are concurrent too."""

    def __call__(self, query: Measurement | Odometer) -> Any:
        """Launch the query."""
        if isinstance(query, Odometer):
            return self.queryable(query)
        return super().__call__(query)

    def query(self, **kwargs: Any) -> Any:
        """Start a query; see :meth:`opendp.context.Context.query`.

        :param kwargs: the privacy loss of the query, as for :func:`.loss_of`
        """
        kwargs = guarded(**kwargs)
        if self.d_mids is not None and not self.d_mids:
            raise SharesUsedError
        measure, d_out = self.accountant.output_measure, None
        if self.d_mids is None and kwargs and isinstance(measure, ExtrinsicDivergence):
            found, d_out = loss_of(**kwargs)
            if found != measure:
                raise SpaceMismatchError("output_measure", measure, found)
            kwargs = {}
        query = concurrent_frames(super().query(**kwargs))
        if type(query) is not Query:
            return query
        concurrent = _concurrent(query)
        concurrent._d_out = query._d_out if d_out is None else d_out
        return concurrent

    def remaining_privacy_loss(self) -> Any:
        """Return the largest loss that can still be spent, or the d_mids that are left."""
        if self.d_out is None:
            return super().remaining_privacy_loss()
        return self.queryable.remaining()


class ConcurrentQuery(Query):
    """A query whose ``compositor`` method returns a compositor of this package."""

    def new_with(self, *, chain: Any, wrap_release: Any = None) -> ConcurrentQuery:
        """Return the query with another chain."""
        return _concurrent(super().new_with(chain=chain, wrap_release=wrap_release))

    def __getattr__(self, name: str) -> Any:
        """Add a constructor; under this package's measures, noise is certified for the measure."""
        measure = self.__dict__.get("_output_measure")
        if name in ("laplace", "gaussian") and isinstance(measure, ExtrinsicDivergence):
            return partial(super().__getattr__(f"certified_{name}"), output_measure=measure)
        return super().__getattr__(name)

    def resolve(
        self,
        allow_transformations: bool = False,
        bounds: tuple[float | None, float | None] | None = None,
        T: Any = None,  # noqa: N803 - OpenDP's name
    ) -> Any:
        """Find the missing parameter of the query and cast the result to the context's measure.

        See :meth:`opendp.context.Query.resolve`. OpenDP casts between its own measures.
        """
        measure, chain = self._output_measure, self._chain

        def under(made: Any) -> Any:
            if isinstance(measure, ExtrinsicDivergence) and isinstance(made, Measurement):
                made = made if made.output_measure == measure else cast(made, measure)
            return super(ConcurrentQuery, self).new_with(chain=made).resolve(allow_transformations)

        if not isinstance(chain, PartialChain):
            return under(chain)
        return fitted(
            lambda number: under(chain(number)), measure, self._d_in, self._d_out, bounds, T
        )

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
        d_out: Any = None,
        output_measure: Any = None,
        alpha: float | None = None,
    ) -> Query:
        """Nest a context; see :meth:`opendp.context.Query.compositor`.

        OpenDP handles a change of ``output_measure``, because it needs OpenDP's casts.
        """
        d_out = self._d_out if d_out is None else d_out
        if output_measure is not None or d_out is None or self._d_in is None:
            return super().compositor(
                split_evenly_over, split_by_weights, d_out, output_measure, alpha
            )
        chain, d_in = self._chain, self._d_in
        space = chain
        if isinstance(chain, Transformation):
            space, d_in = chain.output_space, chain.map(d_in)
        domain, metric = space
        accountant, d_mids, budget = _accountant(
            domain,
            (metric, d_in),
            (self._output_measure, d_out),
            split_evenly_over,
            split_by_weights,
            None,
            None,
            None,
            False,  # a nested context belongs to the lineage of this one
        )

        def wrap_release(queryable: Any) -> Context:
            return ConcurrentContext(accountant, queryable, d_in, d_mids, budget, space)

        launched = chain >> accountant if isinstance(chain, Transformation) else accountant
        return self.new_with(chain=launched, wrap_release=wrap_release)


def _concurrent(query: Query) -> ConcurrentQuery:
    return ConcurrentQuery(
        query._chain,
        query._output_measure,
        query._d_in,
        query._d_out,
        query._context,
        query._wrap_release,
    )


def _accountant(
    domain: Domain,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None,
    split_by_weights: Sequence[float] | None,
    orders: Sequence[float] | None,
    accumulator: Accounting | None,
    ledger: Ledger | None,
    opaque_errors: bool,
) -> tuple[ConcurrentMeasurement | ConcurrentOdometer, list[Any] | None, Any]:
    """Return the mechanism that spawns the queryable, its d_mids if fixed, and its bound if any."""
    metric, d_in = privacy_unit
    output_measure, d_out = privacy_loss
    weights = _weights(split_evenly_over, split_by_weights)
    if weights is not None:
        if accumulator is not None:
            raise InvalidTypeError(
                f"accumulator ({accumulator!r}) is for losses that are chosen adaptively; "
                "pass either accumulator or a split"
            )
        if ledger is not None:
            raise InvalidTypeError(
                "ledger is for losses that are chosen adaptively; pass either ledger or a split"
            )
        measure = composition_measure(output_measure)
        d_mids = measure.split(measure.validate_budget("d_out", d_out), weights)
        compositor = make_concurrent_composition(
            domain,
            metric,
            output_measure,
            d_in,
            d_mids,
            orders=orders,
            opaque_errors=opaque_errors,
        )
        return compositor, d_mids, None
    unbounded = d_out in (inf, (inf, inf), (inf, 1.0)) or getattr(d_out, "rho", None) == inf
    kept = {"ledger": ledger, "d_in": d_in} if unbounded and ledger is not None else {}
    odometer = make_concurrent_odometer(
        domain,
        metric,
        output_measure,
        accumulator=accumulator,
        opaque_errors=opaque_errors,
        **kept,
    )
    if unbounded:
        return odometer, None, None
    limit = make_concurrent_filter(odometer, d_in, d_out, orders=orders, ledger=ledger)
    return limit, None, d_out


def _weights(evenly: int | None, weights: Sequence[float] | None) -> list[Fraction] | None:
    if evenly is not None and weights is not None:
        raise InvalidValueError(
            "split_evenly_over and split_by_weights exclude each other; pass one of them"
        )
    if evenly is not None:
        return [Fraction(1)] * _SHARES(split_evenly_over=evenly)
    if weights is None:
        return None
    return checks.weights(split_by_weights=weights)
