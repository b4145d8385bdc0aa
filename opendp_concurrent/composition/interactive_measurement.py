"""How a spawn function becomes a measurement that OpenDP accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.combinators import make_chain_mt
from opendp.measurements import make_user_measurement
from opendp.mod import Domain, Measure, Metric, PrivacyProfile, Transformation

from .. import _native
from ..errors import InvalidTypeError
from ..measures import CompositionMeasure
from ..queryables.data import seal, unseal
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer, Spawn
from .chain import make_chain_ot


def make_interactive_measurement(
    input_domain: Domain,
    input_metric: Metric,
    measure: CompositionMeasure,
    spawn: Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
    odometer: ConcurrentOdometer | None = None,
) -> ConcurrentMeasurement:
    """Make a measurement whose invocation spawns a handle."""
    space = input_domain, input_metric
    return make_measurement(space, measure.opendp(), spawn, privacy_map, summary, odometer)


def make_measurement(
    input_space: tuple[Domain, Metric],
    output_measure: Measure,
    spawn: Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
    odometer: ConcurrentOdometer | None = None,
) -> ConcurrentMeasurement:
    """Make a measurement that is invoked on sealed data.

    :param privacy_map: may return a ``PrivacyProfile``, a new one at each call
    :param odometer: what the measurement is a filter of
    """
    carrier_type = input_space[0].carrier_type

    def native_map(d_in: Any) -> Any:
        d_out = privacy_map(d_in)
        return d_out.curve if isinstance(d_out, PrivacyProfile) else d_out

    measurement = make_user_measurement(
        *input_space,
        output_measure,
        function=_native.carry(lambda data: spawn(seal(_native.to_pointer(data, carrier_type)))),
        privacy_map=_native.carry(native_map),
        TO="ExtrinsicObject",
    )
    return _direct(measurement, spawn, privacy_map, summary, odometer)


def chain(
    measurement: ConcurrentMeasurement, transformation: Transformation
) -> ConcurrentMeasurement:
    """Return ``transformation >> measurement``; OpenDP checks that they fit.

    :raises InvalidTypeError: if the measurement is a filter with a ledger
    """
    spawn, privacy_map = measurement.spawn, measurement.privacy_map
    odometer = measurement.odometer
    if odometer is not None and odometer.record is not None:
        raise InvalidTypeError(
            "a filter with a ledger cannot be chained: its d_in, which the ledger has, would be "
            "that of the transformed data; chain the odometer, and make the filter of that: "
            "make_concurrent_filter(transformation >> odometer, d_in, d_out, ledger=ledger)"
        )
    return _direct(
        make_chain_mt(measurement, transformation),
        lambda token: spawn(seal(_native.transform(transformation, unseal(token)))),
        lambda d_in: privacy_map(transformation.map(d_in)),
        f"{transformation} >> {measurement.summary}",
        None if odometer is None else make_chain_ot(odometer, transformation),
    )


def _direct(
    measurement: Any,
    spawn: Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
    odometer: ConcurrentOdometer | None,
) -> ConcurrentMeasurement:
    measurement.__class__ = ConcurrentMeasurement
    measurement.__opendp_dict__ = {}
    measurement.spawn, measurement.privacy_map = spawn, privacy_map
    measurement.summary, measurement.odometer = summary, odometer
    concurrent: ConcurrentMeasurement = measurement
    return concurrent
