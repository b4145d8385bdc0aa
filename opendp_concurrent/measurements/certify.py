"""Certify a mechanism under a measure: by its own bound there if known, else by a conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opendp.mod import Measure, Measurement

from ..arguments.checks import shown
from ..combinators.cast import conversion
from ..combinators.recertify import recertify
from ..errors import NativeConstructorError
from ..measures import composition_measure
from ..measures.measure import CompositionMeasure
from ..queryables.accuracy import Accuracy
from ..queryables.mechanism import ConcurrentMeasurement

Reading = Callable[[Any], Any]
Losses = Mapping[CompositionMeasure, Callable[[], Reading]]


def built(constructor: Callable[..., Any], **arguments: Any) -> Any:
    """Return the result of an OpenDP constructor, or raise an error that names the arguments."""
    try:
        return constructor(**arguments)
    except Exception as error:
        given = ", ".join(f"{name} ({shown(one)})" for name, one in arguments.items())
        raise NativeConstructorError(constructor.__name__, given, str(error).strip()) from error


def certify(
    measurement: Measurement,
    output_measure: Measure,
    losses: Losses,
    accuracy: Accuracy,
) -> ConcurrentMeasurement:
    """Return the measurement under ``output_measure``.

    :param losses: for each measure with a bound tighter than conversions, a function that returns
        the reading: a map from the loss of ``measurement`` to its loss under that measure
    :param accuracy: the error of its answers
    """
    reading = best_known(output_measure, losses)
    if reading is None:
        reading = conversion(measurement.output_measure, output_measure)
    return recertify(measurement, output_measure, reading, accuracy)


def best_known(output_measure: Measure, losses: Losses) -> Reading | None:
    """Return the reading for ``output_measure``, or one that converts to it; None without any."""
    target = composition_measure(output_measure)
    for kind in (target.kind, *target.read_from):
        for source, make in losses.items():
            if source.kind == kind:
                return _then(make(), conversion(source.opendp(), output_measure))
    return None


def _then(reading: Reading, step: Reading) -> Reading:
    return lambda loss: step(reading(loss))
