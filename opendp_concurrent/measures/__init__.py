"""The privacy measures that are composed here, one file each."""

from __future__ import annotations

from typing import Any

from opendp.mod import Measure

from ..errors import InvalidTypeError, UnsupportedMeasureError
from .approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from .approximate_zero_concentrated_divergence import APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE
from .composition_measure import Composability, CompositionMeasure
from .max_divergence import MAX_DIVERGENCE
from .renyi_divergence import RENYI_DIVERGENCE
from .zero_concentrated_divergence import ZERO_CONCENTRATED_DIVERGENCE

KNOWN: tuple[CompositionMeasure, ...] = (
    MAX_DIVERGENCE,
    APPROXIMATE_MAX_DIVERGENCE,
    ZERO_CONCENTRATED_DIVERGENCE,
    APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE,
    RENYI_DIVERGENCE,
)


def composition_measure(output_measure: Any) -> CompositionMeasure:
    """Find what is known about OpenDP's measure object.

    :raises UnsupportedMeasureError: with the list of those that are known
    """
    if not isinstance(output_measure, Measure):
        raise InvalidTypeError(
            f"output_measure must be a measure, found {type(output_measure).__name__}; "
            "pass for example dp.max_divergence()"
        )
    for known in KNOWN:
        if known.opendp() == output_measure:
            return known
    names = ", ".join(known.name for known in KNOWN)
    raise UnsupportedMeasureError(
        f"output_measure ({output_measure}) has no composition rule here; known are: {names}"
    )


__all__ = ["KNOWN", "Composability", "CompositionMeasure", "composition_measure"]
