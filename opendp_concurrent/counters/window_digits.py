"""Sliding windows by a tree of odd degree with signed digits for each block of steps.

Time is cut into blocks of W steps. After r steps of a block, the last W steps are these, and the
previous block without its first r steps. So the noise is that of the sum of r items in the current
block, plus that of W items in the previous one, minus that of r items in the previous one. An item
is in the tree of its block only. The state has the last W items, and the noise of both trees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import lru_cache

from ..queryables.saved import fields, require, rows, whole
from ..types import Json
from .digits import DigitNoise, Digits, least_base
from .node_noise import NodeNoise

MOST_HEIGHT = 64


@lru_cache(maxsize=64)
def best_window_digits(window: int) -> Digits:
    """Return the digits with the smallest error, except for nodes that cancel."""
    fitting = []
    for height in range(1, MOST_HEIGHT):
        digits = Digits(least_base(window, height), height)
        nodes = 2 * digits.total_nodes(window) + window * digits.nodes(window)
        fitting.append((height * height * nodes, height, digits))
        if digits.base == 3:
            break
    return min(fitting, key=lambda one: one[:2])[2]


class DigitsWindow:
    """The window by a tree for each block."""

    def __init__(self, window: int, digits: Digits, noise: NodeNoise) -> None:
        self._window, self._digits, self._noise = window, digits, noise
        self._items: deque[int] = deque()
        self._sum, self._steps = 0, 0  # steps of the current block
        self._now = self._table()
        self._before: DigitNoise | None = None

    def _table(self) -> DigitNoise:
        return DigitNoise(self._digits, self._noise, passing=False)

    def update(self, item: int) -> None:
        """Take the item of the next step."""
        if self._steps == self._window:
            self._before, self._steps = self._now, 0
            self._now = self._table()
        if len(self._items) == self._window:
            self._sum -= self._items.popleft()
        self._items.append(item)
        self._sum += item
        self._steps += 1

    def _noises(self) -> Iterator[int]:
        yield self._now.total(self._steps)
        if self._before is not None and self._steps < self._window:
            yield self._before.total(self._window)
            yield -self._before.total(self._steps)

    def total(self) -> int:
        """Return the noisy sum of the window."""
        return self._sum + sum(self._noises())

    def to_record(self) -> Json:
        """Return items, and the noise in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        return {
            "items": [int(one) for one in self._items],
            "steps": self._steps,
            "now": self._now.to_record(),
            "before": None if self._before is None else self._before.to_record(),
        }

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        items, steps, now, before = fields(record, "items", "steps", "now", "before")
        for item in rows(items, most=self._window):
            require(type(item) is int)
        self._items, self._steps = deque(items), whole(steps, most=self._window)
        require(len(items) == (steps if before is None else self._window))
        self._sum = sum(self._items)
        self._now.restore(now)
        self._before = None
        if before is not None:
            self._before = self._table()
            self._before.restore(before)
        require(self._now.shapes | (self._before.shapes if self._before else set()) <= {()})
