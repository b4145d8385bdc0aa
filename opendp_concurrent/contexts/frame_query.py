"""Queries on LazyFrames, which find the scale and the threshold from the privacy loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.measurements import make_private_lazyframe
from opendp.mod import ApproximateDivergence, Measurement, OpenDPException

from .fitted import neither_loss_nor_scale
from .search import nearest_passing

_NO_CENSORING = 2**32 - 1  # the threshold at which OpenDP looks for the scale

_part = object.__getattribute__  # because a query looks up its attributes in its plan first


class ConcurrentLazyFrameQuery(LazyFrameQuery):
    """A query on a LazyFrame. Queries derived from it have this class too."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return _ours_again(found) if callable(found) else found

    def resolve(self) -> Measurement:
        """Resolve the query into a measurement.

        See :meth:`opendp.extras.polars.LazyFrameQuery.resolve`. There are two differences. This
        method reaches a limit on ε or δ where OpenDP stays below it. It also resolves a query
        without a privacy loss, if the plan has all scales.
        """
        query, plan = _part(self, "_query"), _part(self, "polars_plan")
        d_in, d_out, measure = query._d_in, query._d_out, query._output_measure

        def make(scale: float | None, threshold: int | None = None) -> Measurement:
            return make_private_lazyframe(*query._chain, measure, plan, scale, threshold)

        if d_out is None:
            try:
                return make(None)  # all scales are in the plan
            except OpenDPException as error:
                raise neither_loss_nor_scale() from error
        try:
            exact = make(0.0)
            if exact.check(d_in, d_out):
                return exact
        except OpenDPException:
            pass  # it needs noise
        if not isinstance(measure, ApproximateDivergence):
            return make(nearest_passing([lambda scale: make(scale).check(d_in, d_out)], T=float))
        epsilon, delta = d_out
        scale = nearest_passing([lambda s: make(s, _NO_CENSORING).map(d_in)[0] <= epsilon], T=float)
        try:
            return make(scale)
        except OpenDPException:
            pass  # it needs a threshold; keys below the threshold are omitted
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
        return ConcurrentLazyFrameQuery(_part(made, "polars_plan"), _part(made, "_query"))
    if type(made) is LazyGroupByQuery:
        return ConcurrentLazyGroupByQuery(made._lgb_plan, made._query)
    return made


def _ours_again(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return concurrent_frames(method(*args, **kwargs))

    return call
