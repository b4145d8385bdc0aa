"""A ``dp.Context`` that uses this package's compositor, odometer and filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from opendp.extras.polars import LazyFrameQuery

from .. import _checks as checks
from .. import accounting, errors, numerics
from .._opendp import dp, uninterruptible
from ..composition import guarded, loss_of, make_concurrent_odometer, make_limited, privacy_unit
from ..composition import privacy_loss as pairs_privacy_loss
from ..data import kind_of_data
from ..measures import Accumulator, Risk, composition_measure, is_extrinsic, risk
from ..queryables import ConcurrentCompositionQueryable
from .accountant import accountant_of, shares
from .frame_query import ConcurrentLazyFrameQuery
from .query import concurrent_query
from .table_query import table_query

if TYPE_CHECKING:
    from polars import LazyFrame
    from typing_extensions import Self

    from ..tables import Table
    from .names import ListQuery  # a stub: a list's query with the constructors that it has
    from .table_query import TableQuery

Q = TypeVar("Q")  # its queries
_FILES = (".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".arrow", ".json", ".xlsx", ".db")


@overload
def concurrent_context(
    data: Table,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    domain: dp.Domain | None = None,
    margins: Sequence[Any] | None = None,
    *,
    orders: Sequence[float] | None = None,
    accumulator: Accumulator | None = None,
    ledger: accounting.Ledger | None = None,
    opaque_errors: bool = False,
) -> ConcurrentContext[TableQuery]: ...
@overload
def concurrent_context(
    data: LazyFrame,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    domain: dp.Domain | None = None,
    margins: Sequence[Any] | None = None,
    *,
    orders: Sequence[float] | None = None,
    accumulator: Accumulator | None = None,
    ledger: accounting.Ledger | None = None,
    opaque_errors: bool = False,
) -> ConcurrentContext[ConcurrentLazyFrameQuery]: ...
@overload
def concurrent_context(
    data: errors.Data,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    domain: dp.Domain | None = None,
    margins: Sequence[Any] | None = None,
    *,
    orders: Sequence[float] | None = None,
    accumulator: Accumulator | None = None,
    ledger: accounting.Ledger | None = None,
    opaque_errors: bool = False,
) -> ConcurrentContext[ListQuery]: ...
@checks.checked(
    privacy_unit=privacy_unit,
    privacy_loss=pairs_privacy_loss,
    split_evenly_over=checks.optional(shares),
)
def concurrent_context(
    data: errors.Data,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    domain: dp.Domain | None = None,
    margins: Sequence[Any] | None = None,
    *,
    orders: Sequence[float] | None = None,
    accumulator: Accumulator | None = None,
    ledger: accounting.Ledger | None = None,
    opaque_errors: bool = False,
) -> ConcurrentContext[Any]:
    """Build a ``dp.Context`` whose queries compose concurrently.

    The arguments are those of :meth:`opendp.context.Context.compositor`. ``split_evenly_over`` and
    ``split_by_weights`` fix the losses of the queries up front. The exact sum of these shares is at
    most the privacy loss, so every share can be spent. Without a split, losses are chosen
    adaptively: under a filter, or under an odometer if the privacy loss is infinite.

    Required features: `contrib`, `honest-but-curious`

    :param data: the data to be analysed; a Polars LazyFrame works as in OpenDP. On a table of
        :func:`.scan`, queries are those of :class:`.TableQuery`
    :param privacy_unit: a metric and a distance, such as ``dp.unit_of(contributions=1)``; for a
        table ``oc.tables.unit_of(units=1)``
    :param privacy_loss: a measure and a loss, such as ``dp.loss_of(epsilon=1.0)``. Numbers are read
        as the decimals that you type: ten queries of 0.1 fit in 1.0, and 0.7 and 0.1 in 0.8. They
        may be a ``Decimal``, a ``Fraction`` or a text such as ``"0.1"``
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
    dp.assert_features("contrib", "honest-but-curious")
    metric, d_in = privacy_unit
    output_measure, bound = privacy_loss
    if isinstance(bound, (int, float)):
        checks.non_negative(**{"privacy_loss[1]": bound})
    d_in = checks.plain(accounting.own_distance(d_in))
    if domain is None:
        _check_no_file(data)
    kind = kind_of_data(data)
    metric, d_in = kind.unit(data, metric, d_in)
    if domain is None:
        data, domain = kind.inferred(data)
    domain = _with_margins(domain, margins)
    accountant, d_mids, d_out = accountant_of(
        domain,
        (metric, d_in),
        (output_measure, numerics.to_enforce(bound)),
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
            raise errors.InvalidTypeError(
                f"domain ({domain}) does not fit the data: {error}; "
                "to fix, wrap it with dp.vector_domain()"
            ) from error
        raise
    return ConcurrentContext(accountant, queryable, d_in, d_mids, None if d_out is None else bound)


def _check_no_file(data: errors.Data) -> None:
    """Raise if data are the name of a file: as a text, it would be the data of one person."""
    if isinstance(data, PurePath) or (isinstance(data, str) and data.lower().endswith(_FILES)):
        name = checks.shown(str(data))
        raise errors.InvalidTypeError(
            f"data ({name}) must be data, found the name of a file. Scan the file, and say whose "
            f"rows it has: data=oc.tables.scan({name}, schema, unit='person'); "
            f"oc.tables.describe_schema({name}) proposes a schema"
        )


def _with_margins(domain: dp.Domain, margins: Any) -> dp.Domain:
    """Return the domain with the descriptors for grouped data, or raise."""
    if margins is None:
        return domain
    try:
        for margin in checks.read("a list of dp.polars.Margin", margins=margins):
            domain = dp.with_margin(domain, margin)
    except errors.ConcurrentError:
        raise
    except ValueError as error:  # OpenDP says which margin, and what was meant
        raise errors.InvalidValueError(
            f"margins: {error}; pass a list of dp.polars.Margin"
        ) from error
    except Exception as error:
        raise errors.InvalidTypeError(
            f"margins ({checks.shown(margins)}) must be a list of dp.polars.Margin, for LazyFrames"
        ) from error
    return domain


def _is_of_one(domain: dp.Domain, data: errors.Data) -> bool:
    """Return whether ``domain`` is the domain of one element of the data."""
    try:
        return bool(dp.vector_domain(domain) == dp.domain_of(data, infer=True))
    except Exception:  # OpenDP has no vectors of this domain
        return False


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """What :meth:`ConcurrentContext.summarize` returns.

    :ivar spent: upper bound on the loss so far
    :ivar remaining: the largest loss that can still be spent, the d_mids that are left of a split,
        or None without a bound
    :ivar risk: what an attacker can do at most with all that was released so far
    """

    spent: errors.Loss
    remaining: Any
    risk: Risk

    def __str__(self) -> str:
        if self.remaining is None:
            left = "no bound"
        elif isinstance(self.remaining, list):
            left = f"shares left: {len(self.remaining)}"
        else:
            left = f"remaining {errors.rounded(self.remaining)}"
        return f"spent {errors.rounded(self.spent)}, {left}; {self.risk}"


class ConcurrentContext(dp.Context, Generic[Q]):
    """A context with exact sums, whose children are contexts of this package."""

    @uninterruptible
    def __call__(self, query: dp.Measurement | dp.Odometer) -> errors.Answer:
        """Launch the query."""
        if isinstance(query, dp.Odometer):
            return self.queryable(query)
        try:
            return super().__call__(query)
        except BaseException:
            self._drop_used()
            raise

    def _drop_used(self) -> None:
        """Drop the share of a launch that was charged and has failed."""
        if self.d_mids is not None and isinstance(self.queryable, ConcurrentCompositionQueryable):
            left = len(self.queryable.remaining())
            while len(self.d_mids) > left:
                self.d_mids_consumed.append(self.d_mids.pop(0))

    @uninterruptible
    def query(self, **kwargs: Any) -> Q:
        """Start a query; see :meth:`opendp.context.Context.query`.

        On a LazyFrame, the query also has the mechanisms of this package: ``query.x(...)`` is
        ``oc.m.make_x`` on the rows of the plan so far.

        :param kwargs: the privacy loss of the query, as for :func:`.loss_of`
        """
        kwargs = guarded(**kwargs)
        if self.d_mids is not None and not self.d_mids:
            raise errors.SharesUsedError
        if self.d_mids is not None and kwargs:
            raise errors.InvalidValueError(
                f"Expected no privacy arguments but got {', '.join(kwargs)}: the context is split, "
                "and each query takes the next share; call context.query()"
            )
        measure, d_out = self.accountant.output_measure, None
        if self.d_mids is None and kwargs:
            found, d_out = loss_of(**kwargs)
            d_out = numerics.down(d_out)
            if found != measure and is_extrinsic(measure):
                raise errors.SpaceMismatchError("output_measure", measure, found)
            if found != measure:
                words = ", ".join(f"{one}=..." for one in composition_measure(measure).keywords)
                zero = " Consider setting `delta=0.0` in your query." if "delta" in words else ""
                raise errors.InvalidValueError(
                    f"Expected output measure {measure} but got {found}.{zero} This context takes "
                    f"context.query({words}), found {', '.join(kwargs)}"
                )
            kwargs = {}
        made = super().query(**kwargs)
        frames = type(made) is LazyFrameQuery
        query: dp.Query = object.__getattribute__(made, "_query") if frames else made
        concurrent = concurrent_query(query)
        concurrent._d_out = query._d_out if d_out is None else d_out
        if not frames:
            return cast("Q", table_query(concurrent))
        plan = object.__getattribute__(made, "polars_plan")
        return cast("Q", ConcurrentLazyFrameQuery(plan, concurrent, untouched=True))

    def remaining_privacy_loss(self) -> Any:
        """Return the largest loss that can still be spent, or the d_mids that are left."""
        if self.d_out is None or self.d_mids is not None:
            return super().remaining_privacy_loss()
        return self.queryable.remaining()

    def limited(
        self,
        label: str,
        privacy_loss: tuple[Any, Any],
        *,
        accumulator: Accumulator | None = None,
        orders: Sequence[float] | None = None,
    ) -> ConcurrentContext[Q]:
        """Return a context with its own limit below this one; see :func:`.make_limited`.

        This costs nothing. Its queries are charged there and here, and refused by whichever has no
        loss left. The same label gives a context on the same limit.

        :param label: names the limit, such as an analyst's name
        :param privacy_loss: a measure and a loss, such as ``dp.loss_of(epsilon=0.5)``
        :param accumulator: how the losses below the limit add up
        :param orders: for Rényi curves only: the orders at which the limit is enforced
        :raises InvalidTypeError, InvalidValueError: naming the argument
        :raises SpaceMismatchError: if the measure is not that of this context

        :example:

        >>> context = oc.concurrent_context(
        ...     data=[1, 2, 3],
        ...     privacy_unit=dp.unit_of(contributions=1),
        ...     privacy_loss=dp.loss_of(epsilon=1.0),
        ... )
        >>> alice = context.limited("alice", dp.loss_of(epsilon=0.5))
        >>> release = alice.query(epsilon=0.125).count().laplace().release()
        >>> alice.remaining_privacy_loss(), context.remaining_privacy_loss()
        (0.375, 0.875)
        """
        if self.d_mids is not None:
            raise errors.InvalidTypeError(
                "the privacy loss of this context is split, and a limit would use its shares out "
                "of order; make the limit below a context without a split"
            )
        measure, d_out = pairs_privacy_loss(privacy_loss=privacy_loss)
        if measure != self.accountant.output_measure:
            raise errors.SpaceMismatchError(
                "output_measure", self.accountant.output_measure, measure
            )
        accountant = self.accountant
        space = self.query_space or (accountant.input_domain, accountant.input_metric)
        domain, metric = space
        odometer = make_concurrent_odometer(domain, metric, measure, accumulator=accumulator)
        made = make_limited(odometer, self.d_in, d_out, label=label, orders=orders)
        return self.nested(made, self.queryable(made), self.d_in, None, d_out, space)

    def summarize(self, *, prior: float = 0.5) -> ContextSummary:
        """Return what is spent, what is left, and what an attacker can do at most.

        :param prior: probability, before the attacker saw anything, that the person is in the data;
            see :func:`opendp_concurrent.measures.risk`
        :raises InvalidTypeError, InvalidValueError: naming the argument

        :example:

        >>> context = oc.concurrent_context(
        ...     data=[1, 2, 3],
        ...     privacy_unit=dp.unit_of(contributions=1),
        ...     privacy_loss=dp.loss_of(epsilon=1.0),
        ... )
        >>> release = context.query(epsilon=0.25).count().laplace().release()
        >>> print(context.summarize())
        spent 0.25, remaining 0.75; a guess is right with probability at most 0.5622...
        """
        spent = self.queryable.privacy_loss(self.d_in)  # read once, so that the risk is of it
        found = risk(self.accountant.output_measure, spent, prior=prior)
        bounded = self.d_out is not None or self.d_mids is not None
        left = self.remaining_privacy_loss() if bounded else None
        return ContextSummary(spent, left, found)

    def close(self) -> None:
        """Close the context, and what was launched in it, for good; a ``with`` block does the same.

        What was spent stays spent: :meth:`remaining_privacy_loss` still returns what was left.
        """
        self.queryable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def nested(
        self,
        accountant: Any,
        queryable: dp.Queryable,
        d_in: errors.Distance,
        d_mids: Any,
        d_out: errors.Loss,
        space: tuple[Any, Any],
    ) -> ConcurrentContext[Q]:
        """Return the context of a child."""
        return ConcurrentContext(accountant, queryable, d_in, d_mids, d_out, space)
