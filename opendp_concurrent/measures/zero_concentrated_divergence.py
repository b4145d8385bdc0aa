"""Zero-concentrated DP: the distance is ρ."""

from __future__ import annotations

from opendp.measures import zero_concentrated_divergence

from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import number_at_most, split_number, validate_finite_number, validate_number

ZERO_CONCENTRATED_DIVERGENCE = CompositionMeasure(
    name="ZeroConcentratedDivergence",
    family="ZeroConcentratedDivergence",
    opendp=zero_concentrated_divergence,
    zero=0.0,
    validate=validate_number,
    validate_budget=validate_finite_number,
    at_most=number_at_most,
    split=split_number,
    composability=Composability.CONCURRENT,
    reason=f"{cite('LW22', 'Corollary 1')} and {cite('HSTVVXZ23', 'Theorem 4.11')}",
    distance_form="rho",
)
