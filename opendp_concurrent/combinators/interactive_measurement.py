"""Builds a measurement that OpenDP accepts from a spawn function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from opendp.mod import Domain, Measure, Measurement, Metric, OpenDPException, Transformation

from ..accounts.price import same_distance
from ..arguments.provenance import Unrecorded, recorded
from ..errors import ConcurrentError, InvalidTypeError, InvalidValueError, PrivacyMapError
from ..native import opendp as _native
from ..queryables.accuracy import Accuracy
from ..queryables.data import seal, unseal
from ..queryables.mechanism import (
    ConcurrentMeasurement,
    ConcurrentOdometer,
    Inside,
    Spawn,
    interactive,
    may_feed_many,
    takes_stream,
)
from ..queryables.session import validate_d_in
from ..queryables.stream_domain import is_stream
from ..types import Distance, Loss
from .chain import check_no_stream, make_chain_ot


def make_measurement(
    input_space: tuple[Domain, Metric],
    output_measure: Measure,
    spawn: Spawn,
    privacy_map: Callable[[Any], Any],
    summary: str,
    odometer: ConcurrentOdometer | None = None,
    *,
    around: Measurement | None = None,
    takes_updates: bool = False,
    composes: bool | None = None,
    accuracy: Accuracy | None = None,
    releases: bool = False,
) -> ConcurrentMeasurement:
    """Make a measurement that is invoked on sealed data.

    :param spawn: returns a handle, or a release
    :param privacy_map: may return a ``PrivacyProfile``, a new one at each call
    :param odometer: the odometer, if the measurement is a filter
    :param around: the wrapped measurement; the result has its properties unless others are given
    :param takes_updates: whether it is a continual mechanism
    :param composes: whether it launches mechanisms; as ``around`` if left out
    :param accuracy: the error of its answers; None if it is not known
    :param releases: whether ``spawn`` returns what ``around`` returns, or a release without it
    """
    if odometer is not None:
        carrier_type, distance_type = odometer.carrier_type, odometer.distance_type
    else:
        carrier_type = str(input_space[0].carrier_type)
        distance_type = str(input_space[1].distance_type)

    def checked_map(d_in: Distance) -> Any:
        d_in = validate_d_in(input_space[1], d_in, distance_type)
        try:
            return privacy_map(d_in)
        except ConcurrentError:
            raise
        except OpenDPException as error:  # from a map inside
            raise PrivacyMapError(d_in, str(error).strip()) from error

    def native_map(d_in: Distance) -> Any:
        return _native.curve_of(checked_map(d_in))

    measurement: Any = _native.make_user_measurement(
        *input_space,
        output_measure,
        function=_native.carry(lambda data: spawn(seal(_native.to_pointer(data, carrier_type)))),
        privacy_map=_native.carry(native_map),
        TO="ExtrinsicObject",
    )
    many = False
    if isinstance(around, ConcurrentMeasurement):
        other = around.inside
        takes_updates |= other.takes_updates
        composes = other.composes if composes is None else composes
        many = may_feed_many(around)
    elif around is not None and is_stream(input_space[0]):
        takes_updates |= takes_stream(around)
    what = Inside(
        spawn,
        checked_map,
        odometer,
        carrier_type,
        takes_updates,
        bool(composes),
        many,
        accuracy,
        interactive=not releases if around is None or not releases else interactive(around),
    )
    measurement.__class__ = ConcurrentMeasurement
    measurement.__opendp_dict__ = Unrecorded()
    measurement.made_on, measurement.summary = (*input_space, output_measure), summary
    measurement.inside = what
    return cast(ConcurrentMeasurement, measurement)


def constant_map(
    input_metric: Metric, bound_d_in: Any, d_out: Loss, distance_type: str = ""
) -> Callable[[Any], Any]:
    """Return the privacy map that is ``d_out`` for every d_in up to ``bound_d_in``.

    Numbers of one type have an order. OpenDP's own metrics convert numbers to one type, and a
    user's metric does not. Any other distance must be the one that was bounded, compared as
    accounts compare distances.
    """
    distance_type = distance_type or str(input_metric.distance_type)
    converted = distance_type != "ExtrinsicObject"

    def privacy_map(d_in: Distance) -> Loss:
        d_in = validate_d_in(input_metric, d_in, distance_type)
        kinds = {type(d_in), type(bound_d_in)}
        numbers = kinds <= {int, float} and (converted or len(kinds) == 1)
        if (d_in <= bound_d_in) if numbers else same_distance(d_in, bound_d_in):
            return d_out
        raise InvalidValueError(
            f"d_in ({d_in}) must be at most {bound_d_in}, the d_in that this was built for; "
            "build the measurement for a larger one"
        )

    return privacy_map


@recorded
def chain(
    measurement: ConcurrentMeasurement, transformation: Transformation
) -> ConcurrentMeasurement:
    """Return ``transformation >> measurement``; OpenDP checks that domains and metrics match.

    The chain has the measurement's other properties, such as its plan.

    :raises InvalidTypeError: if the measurement is a filter with a ledger, or on a stream
    """
    what = measurement.inside
    spawn, privacy_map, odometer = what.spawn, what.privacy_map, what.odometer
    check_no_stream(transformation)
    if odometer is not None and odometer.record is not None:
        raise InvalidTypeError(
            "a filter with a ledger cannot be chained: the d_in in its ledger would be "
            "measured on the transformed data; chain the odometer instead: "
            "make_concurrent_filter(transformation >> odometer, d_in, d_out, ledger=ledger)"
        )
    _native.make_chain_mt(measurement, transformation)  # OpenDP checks that they fit
    _native.refuse(transformation, flows=True)  # a root reads no map before it runs
    # not OpenDP's own chain: what is around it would read the stability map and refuse nothing
    chained = make_measurement(
        (transformation.input_domain, transformation.input_metric),
        measurement.output_measure,
        lambda token: spawn(seal(_native.transform(transformation, unseal(token)), token)),
        lambda d_in: privacy_map(_native.transformation_map(transformation, d_in)),
        f"{transformation} >> {measurement.summary}",
        None if odometer is None else make_chain_ot(odometer, transformation),
        around=measurement,
        accuracy=what.accuracy,
        releases=True,
    )
    chained.__dict__.update({**vars(measurement), **vars(chained)})
    chained.__class__ = type(measurement)
    return chained
