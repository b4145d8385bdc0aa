"""The one hook into OpenDP: it chains, lists and deserialises what this package makes."""

from __future__ import annotations

from .arguments.provenance import MODULE
from .combinators.chain import make_chain_ot
from .combinators.interactive_measurement import chain
from .messages.calls import rebuild
from .native import opendp as _native
from .parallel.analyst_quotas import AnalystQuotas
from .queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer


def install() -> None:
    """Let OpenDP chain, list, deserialise and tell apart what this package makes. Idempotent."""
    _native.extend_rshift(ConcurrentOdometer, make_chain_ot)
    _native.extend_rshift(ConcurrentMeasurement, chain)
    _native.refuse_in_filters(ConcurrentOdometer)
    for kind in (ConcurrentMeasurement, AnalystQuotas):
        _native.infer_as_measurement(kind)
    _native.extend_deserialize(MODULE, rebuild)
