"""Conversion of μ-Gaussian DP to (ε, δ(ε))-DP for every ε, exactly [DRS22, Corollary 1].

δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2). With a, b = ε/μ -+ μ/2 and Mills' ratio R this is
φ(a) (R(a) - R(b)), since e^ε φ(b) = φ(a).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf, log, sqrt
from types import MappingProxyType, ModuleType
from typing import Any

from .. import _checks as checks
from .. import numerics
from . import opendp as native
from .conversion import Conversion, Profile, gaussian_to_zcdp
from .measure import Composability, singleton
from .shapes import NumberMeasure
from .sums import SquareSum

FAR = 40.0  # 1 - Φ(40) is less than 1e-349


@lru_cache(maxsize=65536)
def gaussian_to_delta(mu: float, epsilon: float) -> float:
    """Return the least double at or above δ(ε).

    :param mu: at least 0
    :param epsilon: at least 0
    """
    if mu == 0.0 or epsilon == inf:
        return 0.0
    if mu == inf:
        return 1.0

    def threshold(real: numerics.Digits) -> numerics.Bracket:
        return real(epsilon) / real(mu) - real(mu) / 2

    if numerics.upper(threshold) < -FAR:
        return 1.0
    if numerics.lower(threshold) > FAR:
        return 5e-324

    def delta(real: numerics.Digits) -> numerics.Bracket:
        m = real(mu)
        centre, half = real(epsilon) / m, m / 2
        a = centre - half
        return numerics.density(a) * (numerics.mills(a) - numerics.mills(centre + half))

    return min(1.0, numerics.upper(delta))


@lru_cache(maxsize=65536)
def gaussian_to_epsilon(mu: float, delta: float) -> float:
    """Return the least double ε with ``gaussian_to_delta(mu, ε) <= delta``, or infinity."""
    if mu == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or mu == inf:
        return inf
    if gaussian_to_delta(mu, 0.0) <= delta:
        return 0.0
    near = mu * mu / 2 + mu * sqrt(-2 * log(delta))
    return numerics.least_double(lambda epsilon: gaussian_to_delta(mu, epsilon) <= delta, near)


# Conversion of ε-DP to μ-Gaussian DP: Φ(μ/2) = e^ε / (1 + e^ε), the μ of randomized response.
#
# The trade-off function of ε-DP is linear between (0, 1), (v, v) and (1, 0), v = 1 / (1 + e^ε). G_μ
# is convex, so it lies below this function exactly when it does at these three points. G_μ(v) <= v
# holds exactly when v >= Φ(-μ/2). μ = ε is not valid.


def pure_to_gaussian(epsilon: float) -> float:
    """Return an upper bound on μ = 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; for large ones the relative error of the bound is at most 1e-12
    """
    return numerics.twice_quantile(epsilon)


# Gaussian DP: the distance is μ, and the trade-off function that of N(0, 1) and N(μ, 1).


@checks.recorded
def gaussian_tradeoff() -> native.Measure:
    """Gaussian differential privacy; the distance is a number μ.

    Telling neighbours apart is at least as hard as telling N(0, 1) from N(μ, 1) [DRS22, Definition
    2.6]. The squares of losses add up, for concurrent children with adaptively chosen losses
    [ST22, KTH22], [VZ23] and [HSTVVXZ23, Theorem 1.21], under finite communication.

    Required features: `honest-but-curious`

    :return: a measure, whose distances are numbers in [0, inf]

    :example:

    >>> oc.gaussian_tradeoff()
    GaussianTradeoff
    """
    return native.user_divergence(native.GAUSSIAN)


@dataclass(frozen=True, slots=True)
class GaussianTradeoff(NumberMeasure):
    """Gaussian DP: squares of losses add up."""

    kind = native.GAUSSIAN
    tag = "gdp"
    composability = Composability.CONCURRENT
    reason = (
        f"{checks.cite('ST22')}, {checks.cite('KTH22')} and {checks.cite('VZ23')}, under finite "
        "communication"
    )
    assumes_finite = True
    distance_form = "mu"
    total = SquareSum
    group_power = 1
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"mu": checks.non_negative})
    why_not = "its loss may be unbounded, as that of Gaussian noise is"
    conversions_from = MappingProxyType(
        {native.PURE: Conversion(lambda d, ends: pure_to_gaussian(d))}
    )
    conversions_to = MappingProxyType(
        {
            native.ZCDP: Conversion(lambda d, ends: gaussian_to_zcdp(d)),
            native.APPROXIMATE: Conversion(
                lambda d, ends: (gaussian_to_epsilon(d, ends.at_delta), ends.at_delta),
                needs_delta=True,
            ),
            native.PROFILE: Conversion(lambda d, ends: Profile(lambda e: gaussian_to_delta(d, e))),
        }
    )

    def opendp(self) -> native.Measure:
        return gaussian_tradeoff()

    def split(self, d_out: float, weights: list[Fraction]) -> list[float]:
        """Shares whose squares add up to at most that of ``d_out``."""
        return list(numerics.split_squares(d_out, weights))

    def gaussian_scale(self, sensitivity: float, loss: float) -> float:
        """Sensitivity over μ, in doubles."""
        return sensitivity / loss

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, float]:
        return gaussian_tradeoff(), given["mu"]

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> Any:
        return dp_event.GaussianDpEvent(numerics.reciprocal_down(d_mid))


GAUSSIAN_TRADEOFF = singleton(GaussianTradeoff)
