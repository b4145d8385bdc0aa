"""The tensor product of trade-off functions, for losses that are fixed up front [VZ23].

It is no bound for adaptively chosen losses [RHLMTL26], [TKRH26]: ``verify/forbidden.py`` has an
analyst who exceeds it. Only the compositor uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..fdp.function import TradeoffFunction, check_function
from ..fdp.optimal_composition import optimal_composition
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import Divided, times
from ..types import Json, Loss


@dataclass(frozen=True, slots=True)
class TradeoffProduct:
    """The product of the functions so far."""

    loss: TradeoffFunction

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> TradeoffProduct:
        """Compose with ``count`` times ``d_mid``."""
        return TradeoffProduct(self.loss.compose(check_function(d_mid=d_mid).power(times(count))))

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether the product is certified to be at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: Loss) -> Loss:
        """Return None: the remainder is in general not a trade-off function."""
        del d_out

    def to_record(self) -> Json:
        """Return None: a compositor records its shares."""


@dataclass(frozen=True, slots=True)
class Products(Divided):
    """The accumulator of a compositor under f-DP."""

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return False: no measure with adaptively chosen losses is supported."""
        del measure
        return False

    def start(self, measure: CompositionMeasure | None = None) -> TradeoffProduct:
        """Return the identity."""
        del measure
        return TradeoffProduct(TradeoffFunction.identity())

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> TradeoffProduct:
        """Refuse: a compositor records its shares."""
        raise InvalidTypeError("a product of trade-off functions has no record of its own")


def optimal_pair(shares: tuple[tuple[float, float], ...], delta: Any) -> tuple[float, float]:
    """Return the optimal composition of (ε, δ) losses that are fixed up front, at one δ.

    It is that of [KOV15] and [MV16], which [LW22, Theorem 1] carries over to concurrent children.
    """
    failure = checks.probability(delta=delta)
    epsilon = optimal_composition(shares).epsilon(failure)
    if not epsilon < inf:
        raise InvalidValueError(
            f"delta ({delta}) must be above the total failure probability of the d_mids"
        )
    return epsilon, failure
