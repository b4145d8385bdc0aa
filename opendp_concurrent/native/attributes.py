"""What OpenDP and Polars keep in private attributes of queries and frames, read in one place."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

from opendp.context import Context, Query
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import Measure

from ..types import Distance, Loss

_OF_QUERY = attrgetter("_chain", "_output_measure", "_d_in", "_d_out", "_context", "_wrap_release")
_OF_GROUPS = attrgetter("_lgb_plan", "_query")
_own = object.__getattribute__  # because a query looks up its attributes in its plan first


class QueryParts(NamedTuple):
    """The arguments that make a query of a context."""

    chain: Any
    output_measure: Measure
    d_in: Distance
    d_out: Loss
    context: Context
    wrap_release: Any


def query_parts(query: Query) -> QueryParts:
    """Return the arguments that make a query like this one."""
    return QueryParts(*_OF_QUERY(query))


def frame_parts(frames: LazyFrameQuery) -> tuple[Any, Query]:
    """Return the plan of a query on a LazyFrame, and the query of the context."""
    return _own(frames, "polars_plan"), _own(frames, "_query")


def group_parts(groups: LazyGroupByQuery) -> tuple[Any, Query]:
    """Return the plan of a query on groups of a LazyFrame, and the query of the context."""
    plan, query = _OF_GROUPS(groups)
    return plan, query


def native_frame(frame: Any) -> Any:
    """Return the object of Polars' own language behind a LazyFrame."""
    return frame._ldf
