"""Rényi DP of one order, fixed up front: the distance is the divergence of that order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from ..arguments import checks
from ..arguments.provenance import recorded
from ..errors import InvalidValueError
from ..measures.conversion import Conversion, Ends, Profile
from ..measures.conversions.renyi_to_approximate import renyi_to_delta, renyi_to_epsilon
from ..measures.kinds import APPROXIMATE, FIXED, PROFILE, RENYI
from ..measures.measure import Composability, only, parameter
from ..measures.noise import Noise, NoiseLoss
from ..measures.opendp import Measure, descriptor, user_divergence
from ..measures.shapes import NumberMeasure
from ..references import cite
from ..types import Loss

_WHY_NOT = "one order bounds no higher order"


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class FixedRenyi:
    """Descriptor: what makes two of these measures equal."""

    alpha: float

    def __str__(self) -> str:
        return f"{FIXED}(alpha={self.alpha!r})"


@recorded
def fixed_renyi_divergence(alpha: float) -> Measure:
    """Rényi divergence of the order ``alpha``; the distance is a number.

    Losses add up, for concurrent children with adaptively chosen losses [HSTVVXZ23, Theorem 4.6].
    An order that is chosen after the losses are known is not covered: fix it up front.

    Required features: `honest-but-curious`

    :param alpha: order, finite and above 1
    :return: a measure, whose distances are numbers in [0, inf]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.fixed_renyi_divergence(alpha=8) == oc.fixed_renyi_divergence(alpha=8.0)
    True
    >>> oc.fixed_renyi_divergence(alpha=8) == oc.fixed_renyi_divergence(alpha=9)
    False
    """
    found = FixedRenyi(checks.order(alpha=alpha))
    return user_divergence(str(found), found)


def _lower(ends: Ends) -> None:
    """Raise unless the order of the target is at most that of the source."""
    if not ends.target.alpha <= ends.source.alpha:
        raise InvalidValueError(
            f"alpha ({ends.target.alpha}) must be at most the order of the measurement "
            f"({ends.source.alpha}); {_WHY_NOT}"
        )


@dataclass(frozen=True, slots=True)
class FixedRenyiDivergence(NumberMeasure):
    """Rényi DP of the order ``alpha``."""

    alpha: float

    kind = FIXED
    tag = "fixed-renyi"
    composability = Composability.CONCURRENT
    reason = f"{cite('LW22', 'Theorem 2')} and {cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "epsilon, the divergence of that order"
    noise = Noise.GAUSSIAN
    keywords = MappingProxyType({"epsilon": checks.non_negative, "alpha": checks.order})
    why_not = _WHY_NOT
    read_from = (RENYI,)
    conversions_to = MappingProxyType(
        {
            FIXED: Conversion(lambda d, ends: d, check=_lower),
            APPROXIMATE: Conversion(
                lambda d, ends: (
                    renyi_to_epsilon(ends.source.alpha, d, ends.at_delta),
                    ends.at_delta,
                ),
                needs_delta=True,
            ),
            PROFILE: Conversion(
                lambda d, ends: Profile(lambda e: renyi_to_delta(ends.source.alpha, d, e))
            ),
        }
    )

    @property
    def name(self) -> str:
        return str(FixedRenyi(self.alpha))

    def opendp(self) -> Measure:
        return fixed_renyi_divergence(self.alpha)

    @classmethod
    def find(cls, output_measure: Measure) -> FixedRenyiDivergence | None:
        found = descriptor(output_measure)
        return only(cls, found.alpha) if type(found) is FixedRenyi else None

    @classmethod
    def from_tag(cls, tag: str) -> FixedRenyiDivergence | None:
        alpha = parameter(FIXED, "alpha", tag)
        return None if alpha is None else only(cls, checks.order(alpha=alpha))

    def parameters(self) -> dict[str, float]:
        return {"order": self.alpha}

    @classmethod
    def of_parameters(cls, **given: float) -> FixedRenyiDivergence:
        (alpha,) = given.values()
        return only(cls, checks.order(order=alpha))

    @property
    def noise_loss(self) -> NoiseLoss:
        """Gaussian noise: α v²/(2 s²) [CKS20, Theorem 14]."""
        return NoiseLoss(2, Fraction(self.alpha) / 2)

    @classmethod
    def loss_of(cls, **given: Loss) -> tuple[Measure, Loss]:
        return fixed_renyi_divergence(given["alpha"]), given["epsilon"]
