"""Pure DP: the distance is ε."""

from __future__ import annotations

from opendp.measures import max_divergence

from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import number_at_most, split_number, validate_finite_number, validate_number

MAX_DIVERGENCE = CompositionMeasure(
    name="MaxDivergence",
    family="MaxDivergence",
    opendp=max_divergence,
    zero=0.0,
    validate=validate_number,
    validate_budget=validate_finite_number,
    at_most=number_at_most,
    split=split_number,
    composability=Composability.CONCURRENT,
    reason=cite("VW21", "Theorem 1.5"),
    distance_form="epsilon",
)
