"""Noisy prefix sums of a stream: what a counter's state is, and how its integers are written."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..queryables.saved import require
from ..types import Item, ItemSequence, Loss


class Prefix(Protocol):
    """A noisy sum of all items so far, for queries at any time."""

    def update(self, item: Item) -> None:
        """Take the item of the next step."""

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""

    def total(self) -> Loss:
        """Return the noisy sum so far; the same until the next update."""

    def to_record(self) -> dict[str, Any]:
        """Return sums, and the noise of those in use, as a JSON value."""

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""

    @property
    def steps(self) -> int:
        """Number of steps so far."""

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""


def plain(total: Any) -> Any:
    """Return an integer, or an array's integers, as a JSON value."""
    return [int(one) for one in total] if isinstance(total, np.ndarray) else int(total)


def unplain(total: Any, most: int | None = None) -> Any:
    """Return the integer or array of a JSON value, or raise: the inverse of :func:`plain`.

    :param most: largest size of an integer
    """
    for one in total if isinstance(total, list) else [total]:
        require(type(one) is int and (most is None or -most <= one <= most))
    return np.array(total, dtype=object) if isinstance(total, list) else total
