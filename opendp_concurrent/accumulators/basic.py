"""Basic accounting: plain sums, whatever the distance is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InvalidTypeError
from ..measures.sums.accumulator import Accumulator
from ..measures.sums.curve_sum import CurveSum
from ..measures.sums.pair_sum import PairSum
from ..measures.sums.scalar_sum import ScalarSum


@dataclass(frozen=True, slots=True)
class Basic:
    """Add up the d_mids."""

    def start(self, zero: Any) -> Accumulator:
        """Return the empty sum of distances like ``zero``: a number, a pair or a curve."""
        if isinstance(zero, tuple):
            return PairSum()
        return CurveSum() if callable(zero) else ScalarSum()

    def from_record(self, zero: Any, record: Any) -> Accumulator:
        """Return the sum that ``to_record`` described."""
        if callable(zero):
            raise InvalidTypeError("a Rényi curve has no exact record; account on a grid of orders")
        return (PairSum if isinstance(zero, tuple) else ScalarSum).from_record(record)

    def __repr__(self) -> str:
        return "basic()"


def basic() -> Basic:
    """Account by the plain sum of the privacy losses: basic composition.

    Valid for every measure of this package, against any adaptive analyst, with children queried
    concurrently where the measure allows it [HSTVVXZ23, Theorems 1.20, 1.21 and 4.6].

    :return: an accounting, for the ``accumulator`` argument of ``make_concurrent_odometer``

    :example:

    >>> oc.accumulators.basic()
    basic()
    """
    return Basic()
