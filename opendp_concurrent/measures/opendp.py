"""The one file of measures that knows OpenDP: it makes and recognises OpenDP's measures."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from opendp import measures as _measures
from opendp.context import loss_of
from opendp.measures import (
    approximate,
    max_divergence,
    renyi_divergence,
    smoothed_max_divergence,
    zero_concentrated_divergence,
)
from opendp.mod import Measure, OpenDPException

from .._opendp import KEEPS_DESCRIPTORS, uninterruptible
from ..errors import Argument
from ..numerics import from_units_up, to_units

_DESCRIBED: dict[str, Argument] = {}  # descriptors by identifier, for OpenDP that keeps none


@uninterruptible  # as _opendp/private.py says
def user_divergence(kind: str, **parameter: float) -> Measure:
    """Return the measure with a descriptor of its own."""
    described = Described(kind, tuple(parameter.values()), "".join(parameter))
    if KEEPS_DESCRIPTORS:
        return _measures.user_divergence(str(described), described)
    measure = _measures.user_divergence(str(described))
    _DESCRIBED[repr(measure)] = described
    return measure


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Described:
    """What makes two measures that OpenDP lacks equal: their kind and their parameter, if any."""

    kind: str
    parameters: tuple[float, ...] = ()
    key: str = ""

    def __str__(self) -> str:
        return self.kind + "".join(f"({self.key}={one!r})" for one in self.parameters)


def is_measure(value: Argument) -> bool:
    """Whether the value is a measure of OpenDP, and no null pointer."""
    return isinstance(value, Measure) and bool(value)


def of_keywords(**given: Any) -> tuple[Measure, Any]:
    """Return the measure and the distance that OpenDP reads from keywords."""
    pair: tuple[Measure, Any] = loss_of(**given)
    return pair


@uninterruptible
def descriptor(measure: Argument) -> Argument:
    """Return the descriptor of a measure that OpenDP lacks; None for OpenDP's own."""
    if not is_extrinsic(measure):
        return None
    return measure.descriptor if KEEPS_DESCRIPTORS else _DESCRIBED.get(repr(measure))


def is_extrinsic(measure: Argument) -> bool:
    """Whether OpenDP knows the measure by name alone."""
    return isinstance(measure, Measure) and measure.type == "ExtrinsicDivergence"


# What a measure says of noise: which kind is its own, and what a shift of it costs.


class Noise(Enum):
    """The noise with which integers are released."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


@dataclass(frozen=True, slots=True)
class NoiseLoss:
    """Loss of a value v at a noise scale s: factor (|v|/s)^power; exact.

    :ivar power: 1 for Laplace noise, 2 for Gaussian
    :ivar factor: of the measure
    """

    power: int
    factor: Fraction

    @property
    def is_laplace(self) -> bool:
        """Whether the noise is Laplace, and not Gaussian."""
        return self.power == 1

    def of(self, value: Fraction, scale: float) -> Fraction:
        """Loss of one release in which a person has this value."""
        return self.factor * (abs(value) / Fraction(scale)) ** self.power

    def of_group(self, people: int, d_out: float) -> float:
        """Bound on the loss of a group of whom each has the budget ``d_out``; rounded up."""
        return from_units_up(to_units(d_out) * people**self.power)


# Names of the kinds of measures, so that a measure can name another without importing it.

PURE = "MaxDivergence"
APPROXIMATE = "Approximate(MaxDivergence)"
ZCDP = "ZeroConcentratedDivergence"
APPROXIMATE_ZCDP = "Approximate(ZeroConcentratedDivergence)"
RENYI = "RenyiDivergence"
FIXED = "FixedRenyiDivergence"
APPROXIMATE_FIXED = "ApproximateRenyiDivergence"
TRUNCATED = "TruncatedConcentratedDivergence"
GAUSSIAN = "GaussianTradeoff"
TRADEOFF = "Tradeoff"
PROFILE = "SmoothedMaxDivergence"  # a target of conversions only
# known by a descriptor
DESCRIBED = frozenset({FIXED, APPROXIMATE_FIXED, TRUNCATED, GAUSSIAN, TRADEOFF})
