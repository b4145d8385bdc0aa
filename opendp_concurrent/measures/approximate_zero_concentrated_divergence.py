"""δ-approximate zCDP: the distance is (ρ, δ). Children are sequential."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from ..arguments import checks
from ..references import cite
from ..types import Loss
from . import opendp as native
from .kinds import APPROXIMATE_ZCDP
from .measure import Composability, only
from .shapes import PairMeasure


@dataclass(frozen=True, slots=True)
class ApproximateZeroConcentratedDivergence(PairMeasure):
    """Approximate zero-concentrated DP."""

    kind = APPROXIMATE_ZCDP
    tag = "approximate-zcdp"
    composability = Composability.SEQUENTIAL
    reason = (
        "concurrent composition of approximate zCDP is an open question, "
        f"see Section 4 of {cite('HSTVVXZ23')}"
    )
    distance_form = "(rho, delta)"
    keywords = MappingProxyType({"delta": checks.probability, "rho": checks.non_negative})

    def opendp(self) -> native.Measure:
        return native.approximate(native.zero_concentrated_divergence())

    @classmethod
    def symbol(cls, loss: Loss, order: float | None) -> str:
        return "ρ"


APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE = only(ApproximateZeroConcentratedDivergence)
