"""Queries on LazyFrames: plans of Polars, and the mechanisms of this package on a plan."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any

from opendp.context import constructors
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery, pl

from .._opendp import QueryParts, dp, frame_parts, group_parts, query_parts
from ..composition import cast
from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError
from ..mechanisms import make_frame_count, stable_frame
from ..queryables import AsTransformation
from .accountant import is_native, native_loss, native_measures
from .query import FRAMES, ConcurrentQuery
from .search import nearest_passing, neither_loss_nor_scale

_NO_CENSORING = 2**32 - 1  # the threshold at which OpenDP looks for the scale
_CHILDREN = ("compositor", "block_filter", "parallel_composition")

_own = object.__getattribute__  # because a query looks up its attributes in its plan first


class ConcurrentLazyFrameQuery(AsTransformation, LazyFrameQuery):
    """A query on a LazyFrame. Queries derived from it have this class too.

    It has the methods of Polars, and each constructor that ``context.query().x(...)`` has on
    vectors: ``x`` is applied to the rows of the plan.
    """

    def __init__(
        self, polars_plan: Any, query: ConcurrentQuery, *, untouched: bool = False
    ) -> None:
        super().__init__(polars_plan, query)
        self._start = polars_plan if untouched else None
        self._counted = None

    def __getattribute__(self, name: str) -> Any:
        try:
            found = super().__getattribute__(name)
        except AttributeError:
            if name in FRAMES:
                raise AttributeError(FRAMES[name]) from None
            if name not in _CHILDREN and name not in constructors:
                raise
            return getattr(_on_rows(self), name)
        if name == "select":
            return _counting(self, _ours_again(found))
        return _ours_again(found) if callable(found) else found

    def frame_count(self) -> ConcurrentQuery:
        """Count the rows of the plan; see :func:`.make_frame_count`."""
        plan, query = frame_parts(self)
        domain, metric = query_parts(query).chain
        counted: ConcurrentQuery = query.new_with(chain=make_frame_count(domain, metric, plan))
        return counted

    def with_keys(self, keys: Any, on: list[str] | None = None) -> ConcurrentLazyFrameQuery:
        """Join with public keys, as OpenDP does; there must be at least one."""
        if keys.lazy().head(1).collect().is_empty():
            raise InvalidValueError(
                "keys must have at least one row: without keys nothing would be released"
            )
        made: ConcurrentLazyFrameQuery = LazyFrameQuery.with_keys(self, keys, on)
        return made

    def as_transformation(self) -> dp.Transformation:
        """Return the count of the plan's rows, if the query is one; else raise."""
        counted = _own(self, "_counted")
        if counted is None:
            raise InvalidTypeError(
                "the query must count rows, since OpenDP certifies no sensitivity of other answers "
                "without noise: end the plan with .select(pl.len()) or .frame_count(); pass a "
                "function on the frame for an answer whose sensitivity you promise"
            )
        domain, metric = _asked(self).chain
        return make_frame_count(domain, metric, counted)

    def resolve(self) -> dp.Measurement:
        """Resolve the query into a measurement.

        See :meth:`opendp.extras.polars.LazyFrameQuery.resolve`. There are three differences. This
        method reaches a limit on ε or δ where OpenDP stays below it. It also resolves a query
        without a privacy loss, if the plan has all scales. Under a measure that OpenDP has no noise
        for, it makes the query under pure DP or zCDP, whichever needs less noise, and casts it.
        """
        if _own(self, "_counted") is None:
            return self._resolved()
        with suppress(Exception):  # an invariant number of rows needs no noise
            return self._resolved()
        raise InvalidTypeError(
            "the query is a count without noise: write select(dp.len(signed=True)), or pass it "
            "as a query to a mechanism that adds noise, such as a sparse vector"
        )

    def release(self) -> Any:
        """Release the query, unless its plan fails on each data set.

        OpenDP's ``summarize`` describes such a plan, too, so ``resolve`` does not refuse it.
        """
        made = self.resolve()
        _check_plan(frame_parts(self)[0])
        return _asked(self).context(made)

    def _resolved(self) -> dp.Measurement:
        _, query = frame_parts(self)
        asked = query_parts(query)
        measure, d_out = asked.output_measure, query.target()
        if is_native(measure):
            return _resolved(self, measure, d_out)
        for native in native_measures(measure):
            try:  # all scales are in the plan
                return cast(_resolved(self, native, None), measure)
            except ConcurrentError as error:
                refusal = error
        if d_out is None:
            raise refusal
        native, loss = native_loss(measure, d_out)
        return cast(_resolved(self, native, loss), measure)


def _check_plan(plan: pl.LazyFrame) -> None:
    """Raise if columns or types of a plan do not fit, whatever the data: else a launch would fail.

    The plan is on an empty frame with the columns of the data. Nothing runs.
    """
    try:
        plan.clone().collect_schema()  # of a copy: OpenDP does not read what was resolved
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InvalidValueError(
            f"the query fails on each data set with these columns: {reason}; spell columns and "
            "keys as in the data, in the same types. Nothing was charged"
        ) from error


def _asked(frames: ConcurrentLazyFrameQuery) -> QueryParts:
    _, query = frame_parts(frames)
    return query_parts(query)


def _resolved(frames: ConcurrentLazyFrameQuery, measure: dp.Measure, d_out: Any) -> dp.Measurement:
    """Return the measurement of a plan under a measure that OpenDP has noise for."""
    plan, query = frame_parts(frames)
    asked = query_parts(query)
    d_in = asked.d_in

    def make(scale: float | None, threshold: int | None = None) -> dp.Measurement:
        return dp.m.make_private_lazyframe(*asked.chain, measure, plan, scale, threshold)

    pairs = isinstance(measure, dp.ApproximateDivergence)

    def at(scale: float) -> dp.Measurement:
        return make(scale, _NO_CENSORING if pairs else None)

    if d_out is None:
        try:
            return make(None)  # all scales are in the plan
        except dp.OpenDPException as error:
            at(1.0)  # raises if OpenDP refuses the plan at each scale, as for a misspelt column
            raise neither_loss_nor_scale() from error
    try:
        exact = make(0.0)
        if exact.check(d_in, d_out):
            return exact
    except dp.OpenDPException:
        pass  # it needs noise
    most, delta = d_out if pairs else (d_out, None)

    @cache
    def lost(scale: float) -> Any:
        loss = at(scale).map(d_in)
        return loss[0] if pairs else loss

    lost(1.0)  # raises if OpenDP refuses the plan, since it would at each scale
    scale = nearest_passing([lambda s: lost(s) <= most], T=float, share=lambda s: lost(s) / most)
    try:
        return make(scale)
    except dp.OpenDPException:
        if not pairs:
            raise
    # it needs a threshold; keys below the threshold are omitted
    threshold = nearest_passing([lambda t: make(scale, t).map(d_in)[1] <= delta], T=int)
    return make(scale, threshold)


class ConcurrentLazyGroupByQuery(LazyGroupByQuery):
    """A query on the groups of a LazyFrame."""

    def agg(self, *aggs: Any, **named_aggs: Any) -> ConcurrentLazyFrameQuery:
        """Compute aggregations for each group, as OpenDP does."""
        made: ConcurrentLazyFrameQuery = concurrent_frames(super().agg(*aggs, **named_aggs))
        return made


def concurrent_frames(made: Any) -> Any:
    """Convert OpenDP's query on a LazyFrame to this package's; return anything else unchanged."""
    if type(made) is LazyFrameQuery:
        return ConcurrentLazyFrameQuery(*frame_parts(made))
    if type(made) is LazyGroupByQuery:
        return ConcurrentLazyGroupByQuery(*group_parts(made))
    return made


def _ours_again(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return concurrent_frames(method(*args, **kwargs))

    return call


def _counting(frames: ConcurrentLazyFrameQuery, select: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``select``, which marks the result of ``select(pl.len())`` as a count of the plan."""
    plan, _ = frame_parts(frames)

    @wraps(select)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = select(*args, **kwargs)
        if len(args) == 1 and not kwargs and _is_len(args[0]):
            made._counted = plan
        return made

    return call


def _is_len(expression: Any) -> bool:
    return isinstance(expression, pl.Expr) and bool(
        expression.meta.undo_aliases().meta.eq(pl.len())
    )


def _on_rows(frames: ConcurrentLazyFrameQuery) -> ConcurrentQuery:
    """Return the query for the rows of the plan, to which a constructor can be added."""
    plan, query = frame_parts(frames)
    made: ConcurrentQuery = query
    if plan is not _own(frames, "_start"):
        domain, metric = query_parts(query).chain
        made = query.new_with(chain=stable_frame(domain, metric, plan))
    return made
