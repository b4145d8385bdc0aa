"""Concurrent composition of interactive differential privacy mechanisms, for OpenDP.

Constructors stand in groups, as OpenDP's do:

* ``oc.c`` has combinators, ``oc.m`` measurements, ``oc.t`` transformations;
* ``oc.accumulators`` has the theorems that add privacy losses up;
* ``oc.fdp`` has trade-off functions, ``oc.measures`` calculators for privacy measures;
* ``oc.tables`` has tables that stay in a database engine;
* ``oc.handles`` has the classes of what is queried, for annotations;
* ``oc.ledger``, ``oc.plot`` and ``oc.verify`` are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from opendp.context import constructors, register

from . import accumulators, c, fdp, handles, m, measures, t, tables, tradeoffs  # noqa: F401
from .accounts.label import labelled
from .combinators.concurrent_composition import (
    make_concurrent_composition,
    then_concurrent_composition,
)
from .combinators.concurrent_filter import make_concurrent_filter
from .combinators.concurrent_odometer import make_concurrent_odometer, then_concurrent_odometer
from .combinators.loss_of import loss_of
from .contexts.context import concurrent_context
from .continual.stream import (
    category_stream,
    event_change,
    event_presence,
    integer_stream,
    record_stream,
    user_presence,
)
from .data import known as _kinds  # noqa: F401 - each kind is registered
from .errors import every as _every  # noqa: F401
from .fdp.function import TradeoffFunction
from .install import install
from .measures.fixed_renyi_divergence import fixed_renyi_divergence
from .messages.serialization import deserialize, serialize
from .native.advisories.known import accept_advisories
from .queryables.description import Description
from .tradeoffs.gaussian_tradeoff import gaussian_tradeoff
from .tradeoffs.tradeoff import tradeoff
from .truncated.distances import TruncatedConcentrated
from .truncated.truncated_concentrated_divergence import truncated_concentrated_divergence

_WITHOUT_THEN = ("concurrent_filter", "analyst_quotas", "block_filter")  # they are not on a space
_LATER = ("ledger", "plot", "serving", "verify")  # each needs an extra, or much time to import

__all__ = [
    "Description",
    "TradeoffFunction",
    "TruncatedConcentrated",
    "accept_advisories",
    "accumulators",
    "c",
    "category_stream",
    "concurrent_context",
    "deserialize",
    "event_change",
    "event_presence",
    "fdp",
    "fixed_renyi_divergence",
    "gaussian_tradeoff",
    "handles",
    "integer_stream",
    "labelled",
    "ledger",
    "loss_of",
    "m",
    "make_concurrent_composition",
    "make_concurrent_filter",
    "make_concurrent_odometer",
    "measures",
    "plot",
    "record_stream",
    "serialize",
    "serving",
    "t",
    "tables",
    "then_concurrent_composition",
    "then_concurrent_odometer",
    "tradeoff",
    "truncated_concentrated_divergence",
    "user_presence",
    "verify",
]


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    group = next((one.__name__ for one in (c, m, t, accumulators) if name in one.__all__), None)
    hint = f"; it is {group}.{name}" if group else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return __all__


install()
for _group in (c, m, t):
    for _name in _group.__all__:
        _own = _name.removeprefix("make_")
        if (f"then_{_own}" in _group.__all__ or _own in _WITHOUT_THEN) and _own not in constructors:
            register(vars(_group)[_name], _own)
del _group, _name, _own
