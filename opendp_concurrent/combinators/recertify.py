"""A measurement with the same function and a converted guarantee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.mod import Measure, Measurement

from ..measures import convertible_measure
from ..measures.conversion import Profile
from ..native import opendp as _native
from ..queryables.accuracy import Accuracy
from ..queryables.data import run
from ..queryables.mechanism import ConcurrentMeasurement, known_accuracy, read_map
from ..types import Distance, Loss
from .interactive_measurement import make_measurement


def recertify(
    measurement: Measurement,
    to_measure: Measure,
    convert: Callable[[Any], Any],
    accuracy: Accuracy | None = None,
) -> ConcurrentMeasurement:
    """Return ``measurement`` under ``to_measure``, with ``convert`` applied to its privacy map.

    :param convert: from a distance of the measurement's measure to one of ``to_measure``, or to a
        :class:`Profile`
    :param accuracy: the error of its answers; that of ``measurement`` if left out
    """
    validate = convertible_measure(measurement.output_measure).validate

    def privacy_map(d_in: Distance) -> Loss:
        distance = convert(validate("d_mid", read_map(measurement, d_in)))
        return _native.new_privacy_profile(distance) if isinstance(distance, Profile) else distance

    summary = f"Measurement({measurement.output_measure} as {to_measure})"
    return make_measurement(
        measurement.input_space,
        to_measure,
        lambda token: run(measurement, token),
        privacy_map,
        summary,
        around=measurement,
        accuracy=accuracy or known_accuracy(measurement),
        releases=True,
    )
