"""What OpenDP keeps private, what differs between its versions, and what this package replaces.

All that differs between the versions that this package runs on, 0.14.2 to 0.17, is here. What is
different is looked for, not the number of the version: a nightly has that of an earlier release.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature, unwrap
from operator import attrgetter
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from opendp import _convert, domains, measures, metrics, mod
from opendp.context import Context, Query
from opendp.extras._utilities import to_then as _to_then
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.typing import _ELEMENTARY_TYPES

from .._checks import CopiedRecord, Unrecorded
from ..errors import Distance
from . import prelude as dp
from .interrupts import uninterruptible

# since 0.15: before it, two measures of users are equal if their names are
KEEPS_DESCRIPTORS = "identifier" in signature(measures.user_divergence).parameters
HAS_NOISY_TOP_K = hasattr(dp.m, "then_noisy_top_k")  # since 0.15
# 0.17 has another name for it
_PROFILE: Any = mod.PrivacyProfile if hasattr(mod, "PrivacyProfile") else mod.PrivacyGuarantee


def options_of_tree(metric: mod.Metric) -> dict[str, mod.Metric]:
    """Return what ``make_b_ary_tree`` needs beside its sizes: since 0.17 its output metric."""
    names = signature(dp.t.make_b_ary_tree).parameters
    return {"output_metric": metric} if "output_metric" in names else {}


def curve_of(d_out: Any) -> Any:
    """Return the curve of a privacy profile; any other distance as it is."""
    if not isinstance(d_out, _PROFILE):
        return d_out
    return d_out.curve if hasattr(d_out, "curve") else d_out.guarantee


def callback_codes() -> set[CodeType]:
    """Return the code of the functions of OpenDP that native code calls."""
    return {
        _callback("_invoke_py_callback", "_wrap_py_func"),
        _callback("_invoke_py_transition", "_wrap_py_transition"),
    }


def _callback(shared: str, preparing: str) -> CodeType:
    """Return the code of one callback; 0.14 makes one in each function that prepares it."""
    if hasattr(_convert, shared):
        constants = [getattr(_convert, shared).__code__]
    else:
        constants = [*unwrap(getattr(_convert, preparing)).__code__.co_consts]
    codes = [one for one in constants if isinstance(one, CodeType)]
    return next(one for one in codes if one.co_name in (shared, "wrapper_func"))


# Private attributes of queries and frames.

_OF_QUERY = attrgetter("_chain", "_output_measure", "_d_in", "_d_out", "_context", "_wrap_release")
_own = object.__getattribute__  # because a query looks up its attributes in its plan first


class QueryParts(NamedTuple):
    """The arguments that make a query of a context."""

    chain: Any
    output_measure: mod.Measure
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
    return groups._lgb_plan, groups._query


# OpenDP's functions that are handed Python objects, each call of which is a section.
#
# Native code counts its references to a Python object by calling Python, which does not count if an
# interrupt is raised there. The object is then freed while native code still uses it, and the
# process crashes. So no interrupt may arrive in such a call.

make_chain_mt = uninterruptible(dp.c.make_chain_mt)
make_user_measurement = uninterruptible(dp.m.make_user_measurement)
make_user_transformation = uninterruptible(dp.t.make_user_transformation)
new_privacy_profile = uninterruptible(measures.new_privacy_profile)
user_distance = uninterruptible(metrics.user_distance)
user_domain = uninterruptible(domains.user_domain)


@uninterruptible
def descriptor(one: Any) -> Any:
    """Return the Python object that a domain was made with, or None."""
    return getattr(one, "descriptor", None)


# Records of how things were made, and the ``then_`` forms of constructors.

PARTIAL_CONSTRUCTOR: type = mod._PartialConstructor
VERSION: str = mod.__version__


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


# Functions of OpenDP that this package replaces, and the way back.


class Hook:
    """What stands in place of a function of OpenDP, from :meth:`put` until :meth:`undo`."""

    def __init__(self, owner: ModuleType | type, name: str, extend: Callable[[Any], Any]) -> None:
        """Describe the hook.

        :param owner: a module or class of OpenDP
        :param extend: returns the new function, from OpenDP's
        """
        self._owner, self._name, self._extend = owner, name, extend
        self._before: Any = None
        self._after: Any = None

    def __str__(self) -> str:
        return f"{self._owner.__name__}.{self._name}"

    def put(self) -> None:
        """Replace OpenDP's function. Idempotent."""
        if self._after is None:
            self._before = getattr(self._owner, self._name)
            self._after = self._extend(self._before)
            setattr(self._owner, self._name, self._after)

    def undo(self) -> None:
        """Put OpenDP's function back, unless somebody else has replaced it since."""
        if self._after is not None and getattr(self._owner, self._name) is self._after:
            setattr(self._owner, self._name, self._before)
            self._after = None


def take_in_lists(kind: type) -> None:
    """Let OpenDP infer measurements in lists of a kind, of which measurements keep copies."""
    _ELEMENTARY_TYPES[kind] = "AnyMeasurementPtr"
    mod.Measurement.__opendp_dict__ = CopiedRecord()


def chaining(chains: dict[type, Callable[[Any, mod.Transformation], Any]]) -> Hook:
    """Return the hook by which ``transformation >> x`` reaches the chain for the kind of x.

    OpenDP declares ``Transformation >> Odometer`` and does not implement it.
    """

    def extend(original: Callable[..., Any]) -> Any:
        @wraps(original)
        def rshift(self: mod.Transformation, other: Any) -> Any:
            for kind, chain in chains.items():
                if isinstance(other, kind):
                    return chain(other, self)
            if isinstance(
                other, (mod.Measurement, mod.Transformation)
            ):  # made already: a short call
                return uninterruptible(original)(self, other)
            return original(self, other)

        return rshift

    return Hook(mod.Transformation, "__rshift__", extend)


def deserializing(module: str, rebuild: Callable[[dict[str, Any]], Any]) -> Hook:
    """Return the hook by which ``dp.deserialize`` rebuilds what ``module`` has made."""

    def extend(original: Callable[..., Any]) -> Any:
        @wraps(original)
        def hook(record: dict[str, Any]) -> Any:
            ours = "__function__" in record and record.get("__module__") == module
            return rebuild(record) if ours else original(record)

        return hook

    return Hook(mod, "_deserialization_hook", extend)
