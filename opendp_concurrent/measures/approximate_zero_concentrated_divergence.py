"""δ-approximate zCDP: the distance is (ρ, δ). Children are sequential."""

from __future__ import annotations

from opendp.measures import approximate, zero_concentrated_divergence
from opendp.mod import Measure

from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import pair_at_most, split_pair, validate_finite_pair, validate_pair


def _approximate_zero_concentrated_divergence() -> Measure:
    return approximate(zero_concentrated_divergence())


APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE = CompositionMeasure(
    name="Approximate(ZeroConcentratedDivergence)",
    family="Approximate(ZeroConcentratedDivergence)",
    opendp=_approximate_zero_concentrated_divergence,
    zero=(0.0, 0.0),
    validate=validate_pair,
    validate_budget=validate_finite_pair,
    at_most=pair_at_most,
    split=split_pair,
    composability=Composability.SEQUENTIAL,
    reason=(
        "concurrent composition of approximate zCDP is an open question, "
        f"see Section 4 of {cite('HSTVVXZ23')}"
    ),
    distance_form="(rho, delta)",
)
