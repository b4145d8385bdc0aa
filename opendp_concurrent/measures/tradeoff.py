"""f-DP: the distance is a trade-off function, and smaller is above it everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opendp.measures import user_divergence
from opendp.mod import Measure

from ..errors import InvalidValueError
from ..fdp.function import TradeoffFunction, check_function
from ..references import cite
from .composition_measure import Composability, CompositionMeasure
from .numbers import split_squares

FAMILY = "Tradeoff"


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class Tradeoff:
    """Descriptor: what makes two of these measures equal."""


def tradeoff() -> Measure:
    """f-DP; the distance is a :class:`.TradeoffFunction`.

    Telling neighbours apart is at least as hard as f says [DRS22, Definition 2.3], for all ordered
    pairs of neighbours. Losses that are fixed up front compose to their tensor product, also for
    concurrent children [VZ23], under finite communication. For losses that are chosen
    on the way that is *not* so: see :func:`.ladder` and :func:`.residue`.

    Required features: `honest-but-curious`

    :return: a measure, whose distances are trade-off functions

    :example:

    >>> oc.tradeoff()
    Tradeoff
    """
    return user_divergence(FAMILY, Tradeoff())


def validate(name: str, value: Any) -> TradeoffFunction:
    """Return a trade-off function, or raise."""
    return check_function(**{name: value})


def validate_budget(name: str, value: Any) -> TradeoffFunction:
    """Return a trade-off function that bounds anything, or raise."""
    function = validate(name, value)
    if function == TradeoffFunction.worst():
        raise InvalidValueError(
            f"{name} ({value}) must bound the loss; the worst function does not"
        )
    if function.upper_only:
        raise InvalidValueError(
            f"{name} ({value}) must be known from both sides, and this is only an upper bound on "
            "what it stands for; pass from_profile() at some points of it, or another function"
        )
    return function


def _split(d_out: TradeoffFunction, weights: list[Fraction]) -> list[Any]:
    """Shares of a power of one function, or of a Gaussian; others are not divisible."""
    whole = sum(weights)
    shares = [d_out.root(weight / whole) for weight in weights]
    if all(share is not None for share in shares):
        return shares
    if d_out.mu is not None:
        return [TradeoffFunction.gaussian(mu) for mu in split_squares(d_out.mu_down, weights)]
    raise InvalidValueError(
        f"d_out ({d_out}) cannot be split in these proportions: "
        "pass a Gaussian trade-off function, or a power that the number of shares divides"
    )


TRADEOFF = CompositionMeasure(
    name=FAMILY,
    family=FAMILY,
    opendp=tradeoff,
    zero=TradeoffFunction.identity(),
    validate=validate,
    validate_budget=validate_budget,
    at_most=TradeoffFunction.__le__,
    split=_split,
    composability=Composability.CONCURRENT,
    reason=f"{cite('VZ23')}, under finite communication",
    distance_form="TradeoffFunction",
)
