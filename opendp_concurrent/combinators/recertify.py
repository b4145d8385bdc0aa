"""The same function under another guarantee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.measures import new_privacy_profile, smoothed_max_divergence
from opendp.mod import Measure, Measurement

from .. import checks
from ..measures import composition_measure
from ..queryables.mechanism import ConcurrentMeasurement, pinned, read_map, run
from .interactive_measurement import make_measurement


class Profile:
    """δ as a function of ε, to become OpenDP's ``PrivacyProfile``."""

    def __init__(self, delta: Callable[[float], float]) -> None:
        self._delta = delta

    def __call__(self, epsilon: float) -> float:
        """Return δ at ``epsilon`` >= 0."""
        return self._delta(checks.non_negative(epsilon=epsilon))


def recertify(
    measurement: Measurement, to_measure: Measure, convert: Callable[[Any], Any]
) -> ConcurrentMeasurement:
    """Return ``measurement`` under ``to_measure``, with ``convert`` applied to its privacy map.

    :param convert: from a distance of the measurement's measure to one of ``to_measure``, or to a
        :class:`Profile`
    """
    measurement = pinned(measurement)
    validate = _validator(measurement.output_measure)

    def privacy_map(d_in: Any) -> Any:
        distance = convert(validate("d_mid", read_map(measurement, d_in)))
        return new_privacy_profile(distance) if isinstance(distance, Profile) else distance

    summary = f"Measurement({measurement.output_measure} as {to_measure})"
    return make_measurement(
        measurement.input_space,
        to_measure,
        lambda token: run(measurement, token),
        privacy_map,
        summary,
        around=measurement,
    )


def _validator(measure: Measure) -> Callable[[str, Any], Any]:
    """What checks a distance of ``measure``; a privacy profile is OpenDP's own."""
    if measure == smoothed_max_divergence():
        return lambda name, value: value
    return composition_measure(measure).validate
