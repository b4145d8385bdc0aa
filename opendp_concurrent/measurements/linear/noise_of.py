"""The noise that linear queries have under a measure."""

from __future__ import annotations

from opendp.mod import Domain, Metric

from ...exact.bracket import upper
from ...measures import CompositionMeasure
from ...measures.noise import Noise
from .histogram import records_changed
from .tails import LaplaceTails, NormalTails, Tails


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


def tails_of(measure: CompositionMeasure) -> Tails:
    """Return the tails of the noise under the measure."""
    return LaplaceTails() if has_laplace(measure) else NormalTails()
