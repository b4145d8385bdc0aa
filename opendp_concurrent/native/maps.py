"""Privacy and stability maps, read through OpenDP's functions.

An attribute or a subclass could return anything. Maps are read here only, after a look for known
faults of the constructor (:mod:`.advisories`). The value is always OpenDP's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp import core
from opendp.mod import Domain, Measure, Measurement, Metric, Transformation

from ..interrupts import whole
from ..types import Distance, Loss
from .advisories import refuse
from .argtypes import answered
from .calls import call_native, check_stack

_transformation_map = whole(core.transformation_map)


def measurement_map(measurement: Measurement, d_in: Distance) -> Loss:
    """Return the privacy loss at ``d_in``, unless OpenDP's map is known to be wrong.

    :raises AdvisoryError: if it is known to be wrong
    """
    refuse(measurement, d_in)
    return call_native(core.measurement_map, measurement, d_in)


def transformation_map(
    transformation: Transformation, d_in: Distance, *, flows: bool = True
) -> Any:
    """Return the stability at ``d_in``, unless OpenDP's map is known to be wrong.

    :param flows: whether the output becomes the data of measurements
    :raises AdvisoryError: if it is known to be wrong
    """
    check_stack()
    refuse(transformation, d_in, flows=flows)
    return _transformation_map(transformation, d_in)


@whole
def space_of(measurement: Measurement) -> tuple[Domain, Metric, Measure]:
    """Return the domain, metric and measure of a measurement."""
    return (
        core.measurement_input_domain(measurement),
        core.measurement_input_metric(measurement),
        core.measurement_output_measure(measurement),
    )


def native_only(function: Callable[..., Any], *arguments: Any) -> tuple[Any, bool]:
    """Return ``function(*arguments)``, and whether it ran without calling Python.

    If it did not call Python, the result depends only on the arguments of OpenDP's constructors,
    and does not change.
    """
    before = answered()
    answer = function(*arguments)
    return answer, answered() == before
