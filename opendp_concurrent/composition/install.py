"""The one hook into OpenDP: ``>>`` and lists know what this package makes."""

from __future__ import annotations

from .. import _native
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer
from .analyst_quotas import AnalystQuotas
from .chain import make_chain_ot
from .interactive_measurement import chain


def install() -> None:
    """Let OpenDP chain and list what this package makes. Idempotent."""
    _native.extend_rshift(ConcurrentOdometer, make_chain_ot)
    _native.extend_rshift(ConcurrentMeasurement, chain)
    for kind in (ConcurrentMeasurement, AnalystQuotas):
        _native.infer_as_measurement(kind)
