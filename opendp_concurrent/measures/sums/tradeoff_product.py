"""The tensor product of trade-off functions, for losses that are fixed up front [VZ23].

Not for losses that are chosen on the way, where it bounds nothing [RHLMTL26], [TKRH26]: the verify
tools have the analyst who gains (``verify/forbidden.py``). Only the compositor uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InvalidTypeError
from ...fdp.function import TradeoffFunction, check_function
from .accumulator import times


@dataclass(frozen=True, slots=True)
class TradeoffProduct:
    """Product of the functions so far."""

    loss: TradeoffFunction

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Any, count: int = 1) -> TradeoffProduct:
        """Compose with ``count`` times ``d_mid``."""
        return TradeoffProduct(self.loss.compose(check_function(d_mid=d_mid).power(times(count))))

    def within(self, d_out: TradeoffFunction) -> bool:
        """Whether the product is at most ``d_out``, as far as that is shown."""
        return self.loss <= d_out

    def remaining(self, d_out: Any) -> Any:
        """Return None: what is left is no function in general."""
        del d_out

    def to_record(self) -> Any:
        """Return None: a compositor records its shares."""


@dataclass(frozen=True, slots=True)
class Products:
    """Accounting for a compositor under f-DP."""

    def supports(self, measure: Any) -> bool:
        """No measure whose losses are chosen on the way."""
        del measure
        return False

    def start(self, measure: Any = None) -> TradeoffProduct:
        """Return the identity."""
        del measure
        return TradeoffProduct(TradeoffFunction.identity())

    def from_record(self, measure: Any, record: Any) -> TradeoffProduct:
        """Refuse: a compositor records its shares."""
        raise InvalidTypeError("a product of trade-off functions has no record of its own")
