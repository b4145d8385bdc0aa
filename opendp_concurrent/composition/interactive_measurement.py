"""How a spawn function becomes a measurement that OpenDP accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.combinators import make_chain_mt
from opendp.measurements import make_user_measurement
from opendp.mod import Domain, Metric, Transformation

from .. import _native
from ..measures import CompositionMeasure
from ..queryables.data import seal, unseal
from ..queryables.mechanism import ConcurrentMeasurement, Spawn


def make_interactive_measurement(
    input_domain: Domain,
    input_metric: Metric,
    measure: CompositionMeasure,
    spawn: Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
) -> ConcurrentMeasurement:
    """Make a measurement whose invocation spawns a handle."""
    carrier_type = input_domain.carrier_type
    measurement = make_user_measurement(
        input_domain,
        input_metric,
        measure.opendp(),
        function=_native.carry(lambda data: spawn(seal(_native.to_pointer(data, carrier_type)))),
        privacy_map=_native.carry(privacy_map),
        TO="ExtrinsicObject",
    )
    return _direct(measurement, spawn, privacy_map, summary)


def chain(
    measurement: ConcurrentMeasurement, transformation: Transformation
) -> ConcurrentMeasurement:
    """Return ``transformation >> measurement``; OpenDP checks that they fit."""
    spawn, privacy_map = measurement.spawn, measurement.privacy_map
    return _direct(
        make_chain_mt(measurement, transformation),
        lambda token: spawn(seal(_native.transform(transformation, unseal(token)))),
        lambda d_in: privacy_map(transformation.map(d_in)),
        f"{transformation} >> {measurement.summary}",
    )


def _direct(
    measurement: Any, spawn: Spawn, privacy_map: Callable[[Any], Any], summary: str
) -> ConcurrentMeasurement:
    measurement.__class__ = ConcurrentMeasurement
    measurement.__opendp_dict__ = {}
    measurement.spawn, measurement.privacy_map = spawn, privacy_map
    measurement.summary = summary
    concurrent: ConcurrentMeasurement = measurement
    return concurrent
