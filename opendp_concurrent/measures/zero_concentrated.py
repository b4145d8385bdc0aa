"""Zero-concentrated DP: the distance is ρ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from types import MappingProxyType, ModuleType

from .. import _checks as checks
from .._checks import cite
from ..errors import DpEvent, Loss
from ..numerics import zcdp_to_delta, zcdp_to_epsilon
from . import opendp as native
from .conversion import Conversion, KnownCurve, Profile, zcdp_to_renyi
from .measure import Composability, singleton
from .shapes import NumberMeasure, PairMeasure, divided_down, times_up


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDivergence(NumberMeasure):
    """Zero-concentrated DP."""

    kind = native.ZCDP
    tag = "zcdp"
    composability = Composability.CONCURRENT
    reason = f"{cite('LW22', 'Corollary 1')} and {cite('HSTVVXZ23', 'Theorem 4.11')}"
    distance_form = "rho"
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"rho": checks.non_negative})
    why_not = "its loss may be unbounded, as that of Gaussian noise is"
    conversions_to = MappingProxyType(
        {
            native.FIXED: Conversion(lambda d, ends: zcdp_to_renyi(d, ends.target.alpha)),
            native.RENYI: Conversion(lambda d, ends: KnownCurve(zcdp_to_renyi, d)),
            native.APPROXIMATE: Conversion(
                lambda d, ends: (zcdp_to_epsilon(d, ends.at_delta), ends.at_delta), needs_delta=True
            ),
            native.PROFILE: Conversion(lambda d, ends: Profile(lambda e: zcdp_to_delta(d, e))),
        }
    )

    def opendp(self) -> native.Measure:
        return native.zero_concentrated_divergence()

    @property
    def noise_loss(self) -> native.NoiseLoss:
        """Gaussian noise: v²/(2 s²) [CKS20, Theorem 14]."""
        return native.NoiseLoss(2, Fraction(1, 2))

    def gaussian_scale(self, sensitivity: float, loss: float) -> float:
        """From ρ = sensitivity² / (2 scale²), in doubles."""
        return sensitivity / sqrt(2 * loss)

    def group_loss(self, loss: float, size: int) -> float:
        """Return k² ρ [BS16, Proposition 27]."""
        return times_up(loss, size**2)

    def member_loss(self, d_out: float, size: int) -> float:
        """The same, backwards."""
        return divided_down(d_out, size**2)

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> DpEvent:
        return dp_event.ZCDpEvent(d_mid)


ZERO_CONCENTRATED_DIVERGENCE = singleton(ZeroConcentratedDivergence)


# δ-approximate zCDP: the distance is (ρ, δ). Children are sequential.


@dataclass(frozen=True, slots=True)
class ApproximateZeroConcentratedDivergence(PairMeasure):
    """Approximate zero-concentrated DP."""

    kind = native.APPROXIMATE_ZCDP
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


APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE = singleton(ApproximateZeroConcentratedDivergence)
