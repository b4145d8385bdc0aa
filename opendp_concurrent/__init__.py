"""Concurrent composition of interactive differential privacy mechanisms, for OpenDP.

Constructors stand in groups, as OpenDP's do:

* ``oc.c`` has combinators, ``oc.m`` measurements, ``oc.t`` transformations;
* ``oc.accumulators`` has the theorems that add privacy losses up;
* ``oc.fdp`` has trade-off functions; ``oc.measures``, ``oc.mechanisms`` and ``oc.streams`` have
  calculators of losses, errors and scales;
* ``oc.tables`` has tables that stay in a database engine;
* ``oc.handles`` has the classes of what is queried, for annotations;
* ``oc.extend`` is for those who write measures, accumulators, mechanisms, kinds of data;
* ``oc.ledger``, ``oc.plot`` and ``oc.verify`` are imported when they are first used.
"""

from importlib import import_module
from types import ModuleType

from . import c, fdp, m, measures, mechanisms, streams, t, tables
from ._hooks import install, put_hooks, uninstall
from ._opendp import accept_advisories
from .accounting import accumulators, labelled
from .composition import (
    loss_of,
    make_concurrent_composition,
    make_concurrent_filter,
    make_concurrent_odometer,
    then_concurrent_composition,
    then_concurrent_odometer,
)
from .context import concurrent_context, swapped_in
from .data import uncollected
from .fdp import TradeoffFunction
from .measures import (
    TruncatedConcentrated,
    approximate_renyi_divergence,
    fixed_renyi_divergence,
    gaussian_tradeoff,
    tradeoff,
    truncated_concentrated_divergence,
)
from .queryables import Description
from .serving import deserialize, extend, handles, serialize
from .streams import (
    category_stream,
    event_change,
    event_presence,
    integer_stream,
    record_stream,
    user_presence,
)

__version__ = "0.3.0"
_LATER = ("ledger", "plot", "serving", "verify")  # each needs an extra, or much time to import

__all__ = [
    "Description",
    "TradeoffFunction",
    "TruncatedConcentrated",
    "accept_advisories",
    "accumulators",
    "approximate_renyi_divergence",
    "c",
    "category_stream",
    "concurrent_context",
    "deserialize",
    "event_change",
    "event_presence",
    "extend",
    "fdp",
    "fixed_renyi_divergence",
    "gaussian_tradeoff",
    "handles",
    "install",
    "integer_stream",
    "labelled",
    "ledger",
    "loss_of",
    "m",
    "make_concurrent_composition",
    "make_concurrent_filter",
    "make_concurrent_odometer",
    "measures",
    "mechanisms",
    "plot",
    "record_stream",
    "serialize",
    "serving",
    "streams",
    "swapped_in",
    "t",
    "tables",
    "then_concurrent_composition",
    "then_concurrent_odometer",
    "tradeoff",
    "truncated_concentrated_divergence",
    "uncollected",
    "uninstall",
    "user_presence",
    "verify",
]


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


put_hooks()
