"""Guards that the constructors share: the first word of a message is the argument's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendp.mod import Domain, Measurement, Metric

from .. import checks
from ..accumulators.orders_sum import OnOrders
from ..errors import InvalidTypeError, SpaceMismatchError
from ..measures import CompositionMeasure
from ..queryables.mechanism import CHECKPOINTED, ConcurrentMeasurement, ConcurrentOdometer
from ..queryables.stream import is_stream


def check_space(input_domain: Any, input_metric: Any) -> None:
    """Raise unless both are OpenDP's."""
    if not isinstance(input_domain, Domain):
        raise InvalidTypeError(
            f"input_domain must be a domain, found {type(input_domain).__name__}; "
            "pass for example dp.vector_domain(dp.atom_domain(T=int))"
        )
    if not isinstance(input_metric, Metric):
        raise InvalidTypeError(
            f"input_metric must be a metric, found {type(input_metric).__name__}; "
            "pass for example dp.symmetric_distance()"
        )


def check_measurement(name: str, measurement: Any) -> Measurement:
    """Return the measurement, or raise."""
    if not isinstance(measurement, Measurement):
        raise InvalidTypeError(f"{name} must be a measurement, found {type(measurement).__name__}")
    return measurement


def check_inside(name: str, measurement: Measurement) -> None:
    """Raise for what nothing can be put around: a checkpoint, or a composition on a stream.

    The children of a composition would not be fed by whoever feeds what is around it.
    """
    if not isinstance(measurement, ConcurrentMeasurement):
        return
    if measurement.checkpointed:
        raise InvalidTypeError(f"{name}: {CHECKPOINTED}")
    if measurement.composes and is_stream(measurement.input_domain):
        raise InvalidTypeError(
            f"{name} composes mechanisms on a stream ({measurement.input_domain}), whose updates "
            "would not reach them; put make_concurrent_continual around it first"
        )


def check_measurement_on(
    name: str, measurement: Any, input_domain: Domain, input_metric: Metric
) -> Measurement:
    """Return the measurement if it is on this domain and metric, or raise."""
    one = check_measurement(name, measurement)
    if one.input_domain != input_domain:
        raise SpaceMismatchError(f"{name}.input_domain", input_domain, one.input_domain)
    if one.input_metric != input_metric:
        raise SpaceMismatchError(f"{name}.input_metric", input_metric, one.input_metric)
    return one


def check_odometer(odometer: Any) -> ConcurrentOdometer:
    """Return the odometer if it is one of ours, or raise."""
    if not isinstance(odometer, ConcurrentOdometer):
        raise InvalidTypeError(
            f"odometer must be made by make_concurrent_odometer, found {type(odometer).__name__}"
        )
    return odometer


def check_callable(**argument: Any) -> Callable[..., Any]:
    """Return the argument if it can be called, or raise naming it."""
    ((name, value),) = argument.items()
    if not callable(value):
        raise InvalidTypeError(f"{name} must be callable, found {type(value).__name__}")
    function: Callable[..., Any] = value
    return function


def check_flag(**argument: Any) -> bool:
    """Return the argument if it is True or False, or raise naming it."""
    ((name, value),) = argument.items()
    if not isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be True or False, found {value!r}")
    return value


def check_orders(measure: CompositionMeasure, orders: Sequence[float] | None) -> OnOrders | None:
    """Return the sum on the orders that Rényi curves need; None where there are no curves."""
    if not callable(measure.zero):
        if orders is not None:
            raise InvalidTypeError(f"orders is for Rényi curves; {measure.name} has none")
        return None
    if orders is None:
        raise InvalidTypeError(
            "orders must be given for Rényi curves, which can only be compared on a grid; "
            "pass for example orders=[1.5, 2, 4, 8, 16, 32, 64]"
        )
    return OnOrders(checks.orders(orders=orders))
