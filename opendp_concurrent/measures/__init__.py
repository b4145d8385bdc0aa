"""The privacy measures that are composed here, one file each."""

from __future__ import annotations

from typing import Any

from opendp.mod import ExtrinsicDivergence, Measure

from ..checks import is_a
from ..errors import InvalidTypeError, UnsupportedMeasureError
from .approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE
from .approximate_zero_concentrated_divergence import APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE
from .composition_measure import Composability as Composability
from .composition_measure import CompositionMeasure as CompositionMeasure
from .conversions.truncated_tools import (
    bad_event_probability,
    group_tcdp,
    mutual_information,
    subsampled_tcdp,
)
from .families import OURS
from .fixed_renyi_divergence import FixedRenyi
from .fixed_renyi_divergence import from_descriptor as fixed_renyi
from .gaussian_tradeoff import GAUSSIAN_TRADEOFF, Gaussian
from .max_divergence import MAX_DIVERGENCE
from .renyi_divergence import RENYI_DIVERGENCE
from .tradeoff import TRADEOFF, Tradeoff
from .truncated_concentrated_divergence import Truncated
from .truncated_concentrated_divergence import from_descriptor as truncated
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
    if not is_a(output_measure, Measure) or not output_measure:
        raise InvalidTypeError(
            f"output_measure must be a measure, found {type(output_measure).__name__}; "
            "pass for example dp.max_divergence()"
        )
    if isinstance(output_measure, ExtrinsicDivergence):
        match output_measure.descriptor:
            case FixedRenyi() as descriptor:
                return fixed_renyi(descriptor)
            case Truncated() as descriptor:
                return truncated(descriptor)
            case Gaussian():
                return GAUSSIAN_TRADEOFF
            case Tradeoff():
                return TRADEOFF
    else:
        for known in KNOWN:
            if known.opendp() == output_measure:
                return known
    families = *(known.family for known in KNOWN), *OURS
    names = ", ".join(families)
    raise UnsupportedMeasureError(
        f"output_measure ({output_measure}) has no composition rule here; known are: {names}"
    )


__all__ = ["bad_event_probability", "group_tcdp", "mutual_information", "subsampled_tcdp"]
