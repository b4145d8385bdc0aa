"""Pure DP and zero-concentrated DP, and approximate DP of both: the distances are ε, ρ, and pairs.

Concurrency of approximate DP assumes finite communication.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from types import MappingProxyType, ModuleType
from typing import Any

from .. import _checks as checks
from .. import fdp
from ..errors import Argument, InvalidValueError, Loss
from ..numerics import largest_rho, lower, upper, zcdp_to_delta, zcdp_to_epsilon
from . import opendp as native
from .conversion import (
    Conversion,
    KnownCurve,
    approximate_to_delta,
    at_delta,
    at_epsilon,
    larger_delta,
    pure_to_renyi,
    pure_to_zcdp,
    zcdp_to_renyi,
)
from .measure import Composability, CompositionMeasure, Convertible, singleton
from .shapes import NumberMeasure, PairMeasure, approximate_group, approximate_member
from .slots import optimal_pair


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
            native.PROFILE: at_epsilon(lambda d, e, ends: approximate_to_delta(d, 0.0, e)),
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


@dataclass(frozen=True, slots=True)
class ZeroConcentratedDivergence(NumberMeasure):
    """Zero-concentrated DP."""

    kind = native.ZCDP
    tag = "zcdp"
    composability = Composability.CONCURRENT
    reason = f"{checks.cite('LW22', 'Corollary 1')} and {checks.cite('HSTVVXZ23', 'Theorem 4.11')}"
    distance_form = "rho"
    group_power = 2
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"rho": checks.non_negative})
    why_not = (
        "its loss may be unbounded, as that of Gaussian noise is, and no trade-off function of "
        "Gaussian noise is proven for it"
    )
    conversions_to = MappingProxyType(
        {
            native.FIXED: Conversion(lambda d, ends: zcdp_to_renyi(d, ends.target.alpha)),
            native.RENYI: Conversion(lambda d, ends: KnownCurve(zcdp_to_renyi, d)),
            native.APPROXIMATE: at_delta(lambda d, delta, ends: zcdp_to_epsilon(d, delta)),
            native.PROFILE: at_epsilon(lambda d, e, ends: zcdp_to_delta(d, e)),
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

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> Any:
        return dp_event.ZCDpEvent(d_mid)


ZERO_CONCENTRATED_DIVERGENCE = singleton(ZeroConcentratedDivergence)


# δ-approximate zCDP: the distance is (ρ, δ).
#
# A child is uniform if its law is at least (1 - δ) times that of a ρ-zCDP mechanism which does not
# depend on the analyst. Uniform children compose concurrently. A child that is approximate only as
# a whole, against each analyst in another way, does not: it excludes all others while it is open.
# The proof and the counterexample are in docs/proofs/approximate-zcdp.rst.


def mixed(delta: float, profile: float) -> float:
    """Return δ + (1 - δ) times the profile, rounded up: the mixture's share times its profile."""
    if delta == 0.0 or delta >= 1.0:
        return profile if delta == 0.0 else 1.0
    return min(1.0, upper(lambda real: 1 - (1 - real(delta)) * (1 - real(profile))))


def left_of(delta: float, target: float) -> float:
    """Return what a target δ leaves to the mixture's profile, rounded down."""
    if not target >= delta:
        raise InvalidValueError(
            f"delta ({target}) must be at least the delta of the measurement ({delta})"
        )
    if 0.0 < delta < 1.0:
        return max(0.0, lower(lambda real: (real(target) - real(delta)) / (1 - real(delta))))
    return target


@dataclass(frozen=True, slots=True)
class ApproximateZeroConcentratedDivergence(PairMeasure):
    """Approximate zero-concentrated DP."""

    kind = native.APPROXIMATE_ZCDP
    tag = "approximate-zcdp"
    composability = Composability.UNIFORM
    reason = (
        "interactive mechanisms that are approximate zCDP only as a whole do not compose "
        "concurrently, by the counterexample of oc.verify.approximate_zcdp_counterexample(); it "
        f"answers the question of Section 4 of {checks.cite('HSTVVXZ23')}"
    )
    distance_form = "(rho, delta)"
    keywords = MappingProxyType({"delta": checks.probability, "rho": checks.non_negative})
    why_not = (
        "its loss may be infinite with probability delta; a cast to (epsilon, delta) leads to "
        "trade-off functions"
    )
    conversions_to = MappingProxyType(
        {
            native.APPROXIMATE: at_delta(
                lambda d, delta, ends: zcdp_to_epsilon(d[0], left_of(d[1], delta))
            ),
            native.PROFILE: at_epsilon(lambda d, e, ends: mixed(d[1], zcdp_to_delta(d[0], e))),
        }
    )
    conversions_from = MappingProxyType(
        {
            native.ZCDP: Conversion(lambda d, ends: (d, 0.0)),
            native.APPROXIMATE: Conversion(lambda d, ends: (pure_to_zcdp(d[0]), d[1])),
        }
    )

    def opendp(self) -> native.Measure:
        return native.approximate(native.zero_concentrated_divergence())

    def excludes(self, loss: Callable[[], tuple[float, float]]) -> bool:
        return loss()[1] != 0.0

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        return "ρ"


APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE = singleton(ApproximateZeroConcentratedDivergence)


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
            native.PROFILE: at_epsilon(lambda d, e, ends: approximate_to_delta(*d, e)),
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
        worst = fdp.TradeoffFunction.approximate(d_mid[0], min(d_mid[1], 1.0))
        return fdp.function_event(dp_event, worst)

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
