"""Gaussian DP: the distance is μ, and the trade-off function that of N(0, 1) and N(μ, 1)."""

from __future__ import annotations

from dataclasses import dataclass

from opendp.measures import user_divergence
from opendp.mod import Measure

from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import number_at_most, split_squares, validate_finite_number, validate_number

FAMILY = "GaussianTradeoff"


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Gaussian:
    """Descriptor: what makes two of these measures equal."""


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
    return user_divergence(FAMILY, Gaussian())


GAUSSIAN_TRADEOFF = CompositionMeasure(
    name=FAMILY,
    family=FAMILY,
    opendp=gaussian_tradeoff,
    zero=0.0,
    validate=validate_number,
    validate_budget=validate_finite_number,
    at_most=number_at_most,
    split=split_squares,
    composability=Composability.CONCURRENT,
    reason=f"{cite('ST22')}, {cite('KTH22')} and {cite('VZ23')}, under finite communication",
    distance_form="mu",
)
