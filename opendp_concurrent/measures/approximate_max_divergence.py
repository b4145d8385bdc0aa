"""Approximate DP: the distance is (ε, δ). Concurrency assumes finite communication."""

from __future__ import annotations

from opendp.measures import approximate, max_divergence
from opendp.mod import Measure

from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import pair_at_most, split_pair, validate_finite_pair, validate_pair


def _approximate_max_divergence() -> Measure:
    return approximate(max_divergence())


APPROXIMATE_MAX_DIVERGENCE = CompositionMeasure(
    name="Approximate(MaxDivergence)",
    family="Approximate(MaxDivergence)",
    opendp=_approximate_max_divergence,
    zero=(0.0, 0.0),
    validate=validate_pair,
    validate_budget=validate_finite_pair,
    at_most=pair_at_most,
    split=split_pair,
    composability=Composability.CONCURRENT,
    reason=f"{cite('LW22', 'Theorem 1')} and {cite('VZ23')}, under finite communication",
    distance_form="(epsilon, delta)",
)
