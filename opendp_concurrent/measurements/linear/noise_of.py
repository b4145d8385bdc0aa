"""The noise that linear queries have under a measure."""

from __future__ import annotations

from typing import Any

from opendp.mod import Domain, Metric

from ...errors import InvalidValueError
from ...exact.bracket import upper
from ...measures import CompositionMeasure
from ...measures.noise import Noise
from ..gaussian import make_certified_gaussian
from ..laplace import make_certified_laplace
from .histogram import records_changed

_ATTEMPTS = 40  # to enlarge a scale, by 2^-40 first and by half last


def column_norm(
    space: tuple[Domain, Metric], measure: CompositionMeasure, longest: float, distance: float
) -> float:
    """Return how far a product with columns of this norm moves at a distance; rounded up."""
    if longest == 0.0:
        return 0.0
    changed, laplace = space[1] == records_changed(), has_laplace(measure)
    square = (4 if laplace else 2) if changed else 1
    return upper(lambda real: real(square).sqrt() * real(longest) * real(distance))


def has_laplace(measure: CompositionMeasure) -> bool:
    """Whether noise under the measure is Laplace, and not Gaussian."""
    return measure.noise is Noise.LAPLACE


def scale_for(measure: CompositionMeasure, sensitivity: float, d_mid: float) -> float:
    """Return about the scale of the noise whose loss is ``d_mid``."""
    if has_laplace(measure):
        return sensitivity / d_mid
    scale = measure.gaussian_scale(sensitivity, d_mid)
    assert scale is not None  # the constructor has checked this
    return scale


def noisy_vector(
    transformation: Any, d_in: float, measure: CompositionMeasure, d_mid: float
) -> tuple[Any, float]:
    """Return a measurement that adds noise to a vector, and the noise's scale.

    Its loss at ``d_in`` is at most ``d_mid``, by its own map.

    :param transformation: to vectors, with the L1 distance for Laplace noise, else the L2 distance
    :param measure: pure DP, for Laplace noise; or one that Gaussian noise has
    """
    # what never changes is constant, so any noise will do
    sensitivity = float(transformation.map(d_in)) or 1.0
    scale = scale_for(measure, sensitivity, d_mid)
    make = make_certified_laplace if has_laplace(measure) else make_certified_gaussian
    for attempt in range(_ATTEMPTS):
        domain, metric = transformation.output_domain, transformation.output_metric
        noisy = transformation >> make(domain, metric, scale, measure.opendp())
        if noisy.map(d_in) <= d_mid:
            return noisy, scale
        scale *= 1 + 2.0 ** (attempt - _ATTEMPTS)
    raise InvalidValueError(
        f"d_mid ({d_mid}) must be larger: no scale of the noise is found for sensitivity "
        f"{sensitivity}"
    )
