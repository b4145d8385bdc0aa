"""What OpenDP and Polars keep in private attributes of queries and frames, read in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, NamedTuple

from opendp import combinators, domains, measurements, measures, metrics, transformations
from opendp._lib import AnyMeasurement, AnyOdometer, AnyTransformation
from opendp.context import Context, Query
from opendp.extras._utilities import to_then as _to_then
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import Measure, __version__, _PartialConstructor

from .._checks import Unrecorded
from ..errors import Distance
from .interrupts import uninterruptible

_OF_QUERY = attrgetter("_chain", "_output_measure", "_d_in", "_d_out", "_context", "_wrap_release")
_OF_GROUPS = attrgetter("_lgb_plan", "_query")
_own = object.__getattribute__  # because a query looks up its attributes in its plan first


class QueryParts(NamedTuple):
    """The arguments that make a query of a context."""

    chain: Any
    output_measure: Measure
    d_in: Distance
    d_out: Any
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


# OpenDP's functions that are handed Python objects, each call of which is a section.
#
# Native code counts its references to a Python object by calling Python, which does not count if an
# interrupt is raised there. The object is then freed while native code still uses it, and the
# process crashes. So no interrupt may arrive in such a call.

make_chain_mt = uninterruptible(combinators.make_chain_mt)
make_user_measurement = uninterruptible(measurements.make_user_measurement)
make_user_transformation = uninterruptible(transformations.make_user_transformation)
new_privacy_profile = uninterruptible(measures.new_privacy_profile)
user_distance = uninterruptible(metrics.user_distance)
user_domain = uninterruptible(domains.user_domain)


@uninterruptible
def descriptor(one: Any) -> Any:
    """Return the Python object that a domain was made with, or None."""
    return getattr(one, "descriptor", None)


# Records of how things were made, and the ``then_`` forms of constructors.

PARTIAL_CONSTRUCTOR: type = _PartialConstructor
VERSION: str = __version__
MEASUREMENT, ODOMETER, TRANSFORMATION = AnyMeasurement, AnyOdometer, AnyTransformation


def to_then(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``then_`` form of a ``make_`` constructor, whose results cannot be serialised."""
    make = _to_then(constructor)

    @wraps(make)
    def then(*args: Any, **kwargs: Any) -> Any:
        partial = make(*args, **kwargs)
        partial.__opendp_dict__ = Unrecorded()
        return partial

    return then


def unchained(name: str) -> str:
    """Return the message for a ``then_`` constructor where its result is needed."""
    return (
        f"{name} is a then_ constructor, which makes nothing before it is chained; chain it: "
        "input_space >> then_..., or transformation >> then_..."
    )


def made_as(one: Any, original: Any) -> Any:
    """Return ``one``, which equals ``original``, with the record of how ``original`` was made.

    The native object is unchanged; only ``dp.serialize`` reads the record.
    """
    record = getattr(original, "__opendp_dict__", None)
    if record is not None:
        one.__opendp_dict__ = record
    return one
