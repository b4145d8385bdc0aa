"""Privacy profiles: OpenDP's smoothed measure, which is converted and not composed."""

from __future__ import annotations

from dataclasses import dataclass

from ..types import Argument, Loss
from . import opendp as native
from .kinds import PROFILE
from .measure import Convertible


@dataclass(frozen=True, slots=True)
class SmoothedMaxDivergence(Convertible):
    """Privacy profiles, δ as a function of ε; a distance is OpenDP's own."""

    kind = PROFILE
    why_not = (
        "a mechanism that may fail with probability delta bounds no Rényi divergence; "
        "dp.c.make_fix_delta reads it at one delta"
    )

    def opendp(self) -> native.Measure:
        return native.smoothed_max_divergence()

    def validate(self, name: str, value: Argument) -> Loss:
        return value
