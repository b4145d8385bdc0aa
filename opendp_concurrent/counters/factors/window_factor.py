"""Sliding windows by a factorisation: the difference of two of its noisy prefix sums.

The releases C D^-1 x + z are those of a counter without a horizon. The sum of the last W steps is a
difference of two prefix sums, so it is postprocessing of them. The state has W noisy prefix sums.
"""

from __future__ import annotations

from collections import deque

from ...queryables.saved import fields, require, rows
from ...types import Json
from .factor_prefix import FactorPrefix


class FactorWindow:
    """The window by a factorisation."""

    def __init__(self, window: int, prefix: FactorPrefix) -> None:
        self._prefix = prefix
        self._totals: deque[int] = deque([0], window + 1)

    def update(self, item: int) -> None:
        """Take the item of the next step, and release the step."""
        self._prefix.update(item)
        self._totals.append(self._prefix.fine_total)

    def total(self) -> int:
        """Return the noisy sum of the window."""
        return int(self._prefix.nearest(self._totals[-1] - self._totals[0]))

    def to_record(self) -> Json:
        """Return the state as a JSON value."""
        return {"prefix": self._prefix.to_record(), "totals": list(self._totals)}

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        prefix, totals = fields(record, "prefix", "totals")
        most = self._totals.maxlen
        assert most is not None
        for total in rows(totals, 1, most):
            require(type(total) is int)
        self._prefix.restore(prefix)
        require(len(totals) == min(self._prefix.steps + 1, most))
        self._totals = deque(totals, most)
        require(bool(totals[-1] == self._prefix.fine_total))
