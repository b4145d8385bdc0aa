"""Gaussian DP: the distance is μ, and the trade-off function that of N(0, 1) and N(μ, 1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType, ModuleType
from typing import Any

from ..arguments import checks
from ..arguments.provenance import recorded
from ..exact.doubles import reciprocal_down, split_squares
from ..measures.conversion import Conversion, Profile
from ..measures.conversions.products import gaussian_to_zcdp
from ..measures.groups import divided_down, times_up
from ..measures.kinds import APPROXIMATE, GAUSSIAN, PROFILE, PURE, ZCDP
from ..measures.measure import Composability, only
from ..measures.noise import Noise
from ..measures.opendp import Measure, descriptor, user_divergence
from ..measures.shapes import NumberMeasure
from ..references import cite
from ..sums.accumulator import Accounting, Accumulator
from ..sums.square_sum import Squares, SquareSum
from ..types import DpEvent, Json, Loss
from .gaussian_to_approximate import gaussian_to_delta, gaussian_to_epsilon
from .pure_to_gaussian import pure_to_gaussian


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Gaussian:
    """Descriptor: what makes two of these measures equal."""


@recorded
def gaussian_tradeoff() -> Measure:
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
    return user_divergence(GAUSSIAN, Gaussian())


@dataclass(frozen=True, slots=True)
class GaussianTradeoff(NumberMeasure):
    """Gaussian DP: squares of losses add up."""

    kind = GAUSSIAN
    tag = "gdp"
    composability = Composability.CONCURRENT
    reason = f"{cite('ST22')}, {cite('KTH22')} and {cite('VZ23')}, under finite communication"
    distance_form = "mu"
    noise = Noise.GAUSSIAN
    keywords = MappingProxyType({"mu": checks.non_negative})
    why_not = "its loss may be unbounded, as that of Gaussian noise is"
    conversions_from = MappingProxyType({PURE: Conversion(lambda d, ends: pure_to_gaussian(d))})
    conversions_to = MappingProxyType(
        {
            ZCDP: Conversion(lambda d, ends: gaussian_to_zcdp(d)),
            APPROXIMATE: Conversion(
                lambda d, ends: (gaussian_to_epsilon(d, ends.at_delta), ends.at_delta),
                needs_delta=True,
            ),
            PROFILE: Conversion(lambda d, ends: Profile(lambda e: gaussian_to_delta(d, e))),
        }
    )

    def opendp(self) -> Measure:
        return gaussian_tradeoff()

    @classmethod
    def find(cls, output_measure: Measure) -> GaussianTradeoff | None:
        return only(cls) if type(descriptor(output_measure)) is Gaussian else None

    def split(self, d_out: float, weights: list[Fraction]) -> list[Loss]:
        """Shares whose squares add up to at most that of ``d_out``."""
        return list(split_squares(d_out, weights))

    def sum(self) -> Accounting:
        """The root of the sum of squares."""
        return Squares()

    def empty(self) -> Accumulator:
        return SquareSum()

    def read_sum(self, record: Json) -> Accumulator:
        return Squares().from_record(self, record)

    def group_loss(self, loss: float, size: int) -> float:
        """Return k μ [DRS22, Theorem 2.14]."""
        return times_up(loss, size)

    def member_loss(self, d_out: float, size: int) -> float:
        """The same, backwards."""
        return divided_down(d_out, size)

    def gaussian_scale(self, sensitivity: float, loss: float) -> float:
        """Sensitivity over μ, in doubles."""
        return sensitivity / loss

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[Measure, Loss]:
        return gaussian_tradeoff(), given["mu"]

    def finite_event(self, dp_event: ModuleType, d_mid: float) -> DpEvent:
        return dp_event.GaussianDpEvent(reciprocal_down(d_mid))


GAUSSIAN_TRADEOFF = only(GaussianTradeoff)
