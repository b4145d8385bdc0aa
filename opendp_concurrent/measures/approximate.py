"""Approximate DP: the distance is (ε, δ). Concurrency assumes finite communication."""

from dataclasses import dataclass
from math import inf
from types import MappingProxyType, ModuleType
from typing import Any

from .. import _checks as checks
from ..errors import Argument
from ..numerics import largest_rho
from . import opendp as native
from .conversion import Conversion, Profile, approximate_to_delta, larger_delta
from .max_divergence import MAX_DIVERGENCE
from .measure import Composability, CompositionMeasure, Convertible, singleton
from .shapes import PairMeasure, approximate_group, approximate_member
from .slots import optimal_pair
from .zero_concentrated import ZERO_CONCENTRATED_DIVERGENCE


@dataclass(frozen=True, slots=True)
class ApproximateMaxDivergence(PairMeasure):
    """Approximate DP."""

    kind = native.APPROXIMATE
    tag = "approximate"
    composability = Composability.CONCURRENT
    reason = (
        f"{checks.cite('LW22', 'Theorem 1')} and {checks.cite('VZ23')}, under finite communication"
    )
    assumes_finite = True
    distance_form = "(epsilon, delta)"
    noise = native.Noise.LAPLACE
    keywords = MappingProxyType({"epsilon": checks.non_negative, "delta": checks.probability})
    takes_delta = True
    why_not = "its loss may be infinite with probability delta"
    conversions_to = MappingProxyType(
        {
            native.APPROXIMATE: Conversion(larger_delta),
            native.PROFILE: Conversion(
                lambda d, ends: Profile(lambda e: approximate_to_delta(*d, e))
            ),
        }
    )

    def opendp(self) -> native.Measure:
        return native.approximate(native.max_divergence())

    def optimal(self, shares: tuple[tuple[float, float], ...], delta: float) -> tuple[float, float]:
        return optimal_pair(shares, delta)

    def group_loss(self, loss: tuple[float, float], size: int) -> tuple[float, float]:
        """(k ε, δ (1 + e^ε + ... + e^((k-1) ε)))."""
        return approximate_group(loss, size)

    def member_loss(self, d_out: tuple[float, float], size: int) -> tuple[float, float]:
        """The same, backwards."""
        return approximate_member(d_out, size)

    def event(self, dp_event: ModuleType, d_mid: tuple[float, float]) -> Any:
        """``EpsilonDeltaDpEvent`` where dp-accounting has it; pure DP as without δ."""
        epsilon, delta = d_mid
        if delta == 0.0 or delta >= 1.0:
            return MAX_DIVERGENCE.event(dp_event, epsilon if delta == 0.0 else inf)
        if epsilon == inf:
            return dp_event.NonPrivateDpEvent()
        made = getattr(dp_event, "EpsilonDeltaDpEvent", None)  # after version 0.6
        return made(epsilon=epsilon, delta=delta) if made else dp_event.UnsupportedDpEvent()

    @property
    def is_planned(self) -> bool:
        return True

    def planned_under(
        self, d_out: tuple[float, float]
    ) -> tuple[CompositionMeasure[Any], float, float | None]:
        """Zero-concentrated DP, or pure DP if δ is 0."""
        epsilon, delta = d_out
        if delta == 0.0:
            return MAX_DIVERGENCE, epsilon, None
        return ZERO_CONCENTRATED_DIVERGENCE, largest_rho(epsilon, delta), delta


APPROXIMATE_MAX_DIVERGENCE = singleton(ApproximateMaxDivergence)


# Privacy profiles: OpenDP's smoothed measure, which is converted and not composed.


@dataclass(frozen=True, slots=True)
class SmoothedMaxDivergence(Convertible[Any]):
    """Privacy profiles, δ as a function of ε; a distance is OpenDP's own."""

    kind = native.PROFILE
    why_not = (
        "its loss may be infinite with probability delta; dp.c.make_fix_delta reads it at one delta"
    )

    def opendp(self) -> native.Measure:
        return native.smoothed_max_divergence()

    def validate(self, name: str, value: Argument) -> Any:
        return value
