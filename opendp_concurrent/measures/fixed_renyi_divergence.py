"""Rényi DP of one order, fixed up front: the distance is the divergence of that order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from opendp.measures import user_divergence
from opendp.mod import Measure

from .. import checks
from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import number_at_most, split_number, validate_finite_number, validate_number

FAMILY = "FixedRenyiDivergence"


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class FixedRenyi:
    """Descriptor: what makes two of these measures equal."""

    alpha: float

    def __str__(self) -> str:
        return f"{FAMILY}(alpha={self.alpha!r})"


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
    descriptor = FixedRenyi(checks.order(alpha=alpha))
    return user_divergence(str(descriptor), descriptor)


@lru_cache(maxsize=1024)
def from_descriptor(descriptor: FixedRenyi) -> CompositionMeasure:
    """What is known about the measure with this descriptor."""
    return CompositionMeasure(
        name=str(descriptor),
        family=FAMILY,
        opendp=lambda: fixed_renyi_divergence(descriptor.alpha),
        zero=0.0,
        validate=validate_number,
        validate_budget=validate_finite_number,
        at_most=number_at_most,
        split=split_number,
        composability=Composability.CONCURRENT,
        reason=f"{cite('LW22', 'Theorem 2')} and {cite('HSTVVXZ23', 'Theorem 4.6')}",
        distance_form="epsilon, the divergence of that order",
    )
