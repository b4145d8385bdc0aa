"""What may stand inside of another measurement, and on which data."""

from __future__ import annotations

from opendp.mod import Domain, Measurement, Metric

from ..errors import InvalidTypeError, SpaceMismatchError
from ..native.opendp import refuse
from ..queryables.mechanism import ConcurrentMeasurement, takes_stream
from ..queryables.stream_domain import NOT_CONTINUAL, is_stream, same_domain
from ..types import Argument
from . import guards


def check_measurement(name: str, value: Argument) -> Measurement:
    """Return the measurement, or raise: also for a known fault of OpenDP."""
    found: Measurement = guards.measurement.check(name, value)
    refuse(found)
    return found


def check_static(input_domain: Domain) -> None:
    """Raise for a stream: what comes later would never reach a mechanism on data as they are."""
    if is_stream(input_domain):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) is a stream, whose items come later and would never "
            "reach this mechanism; use a continual one, such as make_counter or make_alarm"
        )


def check_inside(name: str, measurement: Measurement) -> None:
    """Raise for measurements that cannot be wrapped.

    These are those with a known fault of OpenDP, and on a stream what does not receive its updates:
    updates to the wrapper would not reach the children of a wrapped composition.
    """
    refuse(measurement)
    if is_stream(measurement.input_domain) and not takes_stream(measurement):
        raise InvalidTypeError(f"{name} {NOT_CONTINUAL}")
    if not isinstance(measurement, ConcurrentMeasurement):
        return
    if measurement.composes and is_stream(measurement.input_domain):
        raise InvalidTypeError(
            f"{name} composes mechanisms on a stream ({measurement.input_domain}), whose "
            "updates would not reach them; wrap it in make_concurrent_continual first"
        )


def check_measurement_on(
    name: str, measurement: Measurement, input_domain: Domain, input_metric: Metric
) -> Measurement:
    """Return the measurement if it has this domain and metric, or raise."""
    one = check_measurement(name, measurement)
    if not same_domain(one.input_domain, input_domain):
        raise SpaceMismatchError(f"{name}.input_domain", input_domain, one.input_domain)
    if one.input_metric != input_metric:
        raise SpaceMismatchError(f"{name}.input_metric", input_metric, one.input_metric)
    return one
