"""Truncated concentrated DP: the distance is (ρ, ω), and smaller is a smaller ρ or a larger ω."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from types import MappingProxyType
from typing import Any

from ..arguments import checks
from ..arguments.abilities import instance
from ..arguments.provenance import recorded
from ..errors import InvalidTypeError, InvalidValueError
from ..exact.rounding import split
from ..exact.zcdp import zcdp_to_delta, zcdp_to_epsilon
from ..measures.conversion import Conversion, Ends, Profile
from ..measures.conversions.products import zcdp_to_renyi
from ..measures.conversions.pure_to_zcdp import pure_to_zcdp
from ..measures.joins import join_numbers
from ..measures.kinds import APPROXIMATE, FIXED, PROFILE, PURE, TRUNCATED, ZCDP
from ..measures.measure import Composability, CompositionMeasure, only, parameter
from ..measures.noise import Noise
from ..measures.opendp import Measure, descriptor, user_divergence
from ..references import cite
from ..sums.accumulator import Accounting, Accumulator
from ..types import Argument, Json, Loss
from .distances import TruncatedConcentrated, omega_above_one
from .truncated_sum import LeastOmega, TruncatedSum


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Truncated:
    """Descriptor: what makes two of these measures equal."""

    omega: float

    def __str__(self) -> str:
        return f"{TRUNCATED}(omega={self.omega!r})"


@recorded
def truncated_concentrated_divergence(omega: float) -> Measure:
    """Truncated concentrated DP for orders up to ``omega`` at least; distances have ρ and their ω.

    A distance is a :class:`.TruncatedConcentrated`; a number ρ stands for (ρ, ``omega``). The ρ of
    launches add up, and the least of their ω counts [BDRS18, Lemma 8], [LW22, Corollary 1]; for
    adaptively chosen losses by [HSTVVXZ23, Theorem 4.6] at every order.

    Required features: `honest-but-curious`

    :param omega: above 1; infinite for zero-concentrated DP
    :return: a measure
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.TruncatedConcentrated(rho=0.1, omega=20.0) <= oc.TruncatedConcentrated(0.2, omega=10.0)
    True
    >>> oc.truncated_concentrated_divergence(omega=10.0)
    TruncatedConcentratedDivergence(omega=10.0)
    """
    found = Truncated(omega_above_one(omega=omega))
    return user_divergence(str(found), found)


def _below(omega: float, ends: Ends) -> float:
    alpha: float = ends.target.alpha
    if not alpha < omega:
        raise InvalidValueError(f"alpha ({alpha}) must be below omega ({omega})")
    return alpha


def _truncate(loss: TruncatedConcentrated, ends: Ends) -> TruncatedConcentrated:
    if not loss.omega >= ends.target.omega:
        raise InvalidValueError(
            f"omega ({ends.target.omega}) must be at most the omega of the measurement "
            f"({loss.omega})"
        )
    return TruncatedConcentrated(loss.rho, ends.target.omega)


@dataclass(frozen=True, slots=True)
class TruncatedConcentratedDivergence(CompositionMeasure):
    """Truncated concentrated DP: ρ adds up, and the least ω counts."""

    omega: float

    kind = TRUNCATED
    tag = "tcdp"
    zero = TruncatedConcentrated(0.0, inf)
    composability = Composability.CONCURRENT
    reason = f"{cite('LW22', 'Corollary 1')} and {cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "TruncatedConcentrated(rho, omega)"
    noise = Noise.GAUSSIAN
    keywords = MappingProxyType({"rho": checks.non_negative, "omega": omega_above_one})
    why_not = "its orders end at omega"
    read_from = (ZCDP,)
    conversions_from = MappingProxyType(
        {
            PURE: Conversion(
                lambda d, ends: TruncatedConcentrated(pure_to_zcdp(d), ends.target.omega)
            ),
            ZCDP: Conversion(lambda d, ends: TruncatedConcentrated(d, ends.target.omega)),
        }
    )
    conversions_to = MappingProxyType(
        {
            TRUNCATED: Conversion(_truncate),
            FIXED: Conversion(lambda d, ends: zcdp_to_renyi(d.rho, _below(d.omega, ends))),
            APPROXIMATE: Conversion(
                lambda d, ends: (zcdp_to_epsilon(d.rho, ends.at_delta, d.omega), ends.at_delta),
                needs_delta=True,
            ),
            PROFILE: Conversion(
                lambda d, ends: Profile(lambda e: zcdp_to_delta(d.rho, e, d.omega))
            ),
        }
    )

    @property
    def name(self) -> str:
        return str(Truncated(self.omega))

    def opendp(self) -> Measure:
        return truncated_concentrated_divergence(self.omega)

    @classmethod
    def find(cls, output_measure: Measure) -> TruncatedConcentratedDivergence | None:
        found = descriptor(output_measure)
        return only(cls, found.omega) if type(found) is Truncated else None

    @classmethod
    def from_tag(cls, tag: str) -> TruncatedConcentratedDivergence | None:
        omega = parameter(TRUNCATED, "omega", tag)
        return None if omega is None else only(cls, omega_above_one(omega=omega))

    def parameters(self) -> dict[str, float]:
        return {"omega": self.omega}

    @classmethod
    def of_parameters(cls, **given: float) -> TruncatedConcentratedDivergence:
        (omega,) = given.values()
        return only(cls, omega_above_one(omega=omega))

    def validate(self, name: str, value: Argument) -> TruncatedConcentrated:
        """Return a distance whose ω is large enough; a number is a ρ."""
        if isinstance(value, (int, float)):
            return TruncatedConcentrated(checks.non_negative(**{name: value}), self.omega)
        if not isinstance(value, TruncatedConcentrated):
            raise InvalidTypeError(
                f"{name} must be a number rho or TruncatedConcentrated(rho, omega), "
                f"found {type(value).__name__}"
            )
        if not value.omega >= self.omega:
            raise InvalidValueError(
                f"{name}.omega ({value.omega}) must be at least the {self.omega} of the measure"
            )
        return TruncatedConcentrated(value.rho, value.omega)  # a copy that nobody else can change

    def validate_budget(self, name: str, value: Argument) -> TruncatedConcentrated:
        """As ``validate``, with a finite ρ."""
        distance = self.validate(name, value)
        checks.finite(**{f"{name}.rho": distance.rho})
        return distance

    def at_most(self, left: TruncatedConcentrated, right: TruncatedConcentrated) -> bool:
        """A smaller ρ and a larger ω."""
        return left <= right

    def split(self, d_out: TruncatedConcentrated, weights: list[Fraction]) -> list[Any]:
        """Shares of ρ."""
        return [TruncatedConcentrated(rho, d_out.omega) for rho in split(d_out.rho, weights)]

    def sum(self) -> Accounting:
        """The sum of ρ, with the least ω."""
        return LeastOmega()

    def empty(self) -> Accumulator:
        """The sum of ρ, with the least ω."""
        return TruncatedSum()

    def read_sum(self, record: Json) -> Accumulator:
        """The sum of ρ, with the least ω."""
        return LeastOmega().from_record(self, record)

    def join(
        self, losses: list[list[TruncatedConcentrated]], parts: Sequence[int]
    ) -> TruncatedConcentrated:
        """The largest sum of ρ, with the least ω."""
        rho = join_numbers([[loss.rho for loss in row] for row in losses], parts)
        return TruncatedConcentrated(rho, min(loss.omega for row in losses for loss in row))

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[Measure, Any]:
        measure = truncated_concentrated_divergence(given["omega"])
        return measure, TruncatedConcentrated(given["rho"], given["omega"])

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return isinstance(value, TruncatedConcentrated)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        rho: float = instance(TruncatedConcentrated)(**{of: loss}).rho
        return rho

    @classmethod
    def symbol(cls, loss: Loss, order: float | None) -> str:
        return "ρ"
