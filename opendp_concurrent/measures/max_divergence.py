"""Pure DP: the distance is ε."""

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType, ModuleType
from typing import Any

from .. import _checks as checks
from . import opendp as native
from .conversion import (
    Conversion,
    KnownCurve,
    Profile,
    approximate_to_delta,
    larger_delta,
    pure_to_renyi,
    pure_to_zcdp,
)
from .measure import Composability, singleton
from .shapes import NumberMeasure


@dataclass(frozen=True, slots=True)
class MaxDivergence(NumberMeasure):
    """Pure DP."""

    kind = native.PURE
    tag = "pure"
    composability = Composability.CONCURRENT
    reason = checks.cite("VW21", "Theorem 1.5")
    distance_form = "epsilon"
    adaptive_updates = True
    group_power = 1
    noise = native.Noise.LAPLACE
    keywords = MappingProxyType({"epsilon": checks.non_negative})
    conversions_to = MappingProxyType(
        {
            native.ZCDP: Conversion(lambda d, ends: pure_to_zcdp(d)),
            native.FIXED: Conversion(lambda d, ends: pure_to_renyi(d, ends.target.alpha)),
            native.RENYI: Conversion(lambda d, ends: KnownCurve(pure_to_renyi, d)),
            native.APPROXIMATE: Conversion(lambda d, ends: larger_delta((d, 0.0), ends)),
            native.PROFILE: Conversion(
                lambda d, ends: Profile(lambda e: approximate_to_delta(d, 0.0, e))
            ),
        }
    )

    def opendp(self) -> native.Measure:
        return native.max_divergence()

    @property
    def noise_loss(self) -> native.NoiseLoss:
        """Laplace noise: |v|/s."""
        return native.NoiseLoss(1, Fraction(1))

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> Any:
        """Randomized response [KOV15], which the discrete Laplace mechanism at distance 1 is.

        The continuous Laplace mechanism loses less, and would be too small for the noise on
        integers that OpenDP draws.
        """
        return dp_event.DiscreteLaplaceDpEvent(d_mid, 1)


MAX_DIVERGENCE = singleton(MaxDivergence)
