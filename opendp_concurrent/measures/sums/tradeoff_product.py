"""The tensor product of trade-off functions, for losses that are fixed up front [VZ23].

Not for losses that are chosen on the way, where it bounds nothing [RHLMTL26], [TKRH26]: the verify
tools have the analyst who gains (``verify/forbidden.py``). Only the compositor uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def start(self, zero: Any) -> TradeoffProduct:
        """Return the identity."""
        return TradeoffProduct(zero)
