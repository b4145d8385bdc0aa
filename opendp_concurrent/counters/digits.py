"""Pure-DP counters: trees of odd degree, whose nodes have noise with signed digits [APT24].

A tree of degree k and height h covers the steps of a horizon T if (k^h - 1)/2 >= T. Then a number t
of steps has h balanced digits, from -(k-1)/2 to (k-1)/2, in base k. The noise of the sum of t items
is a signed sum over nodes: level i adds the noise of d nodes if digit i is d > 0, and subtracts
that of -d nodes if it is negative. The latter nodes are to the right of t: their noise is in use
before their items arrive. An item is in one node of each level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..queryables.saved import MOST, fields, require, rows, whole
from ..types import Item, ItemSequence, Json, Loss
from .node_noise import LARGEST_SUM, NodeNoise
from .prefix import plain, unplain

MOST_HEIGHT = 64
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Digits:
    """Balanced digits in an odd base.

    :ivar base: k, the degree of the tree
    :ivar height: h, the number of digits; an item is in h nodes
    """

    base: int
    height: int

    def of(self, count: int) -> Iterator[tuple[int, int, int]]:
        """Yield (level, start, digit) for each level, from the lowest.

        The nodes of level i cover base^i steps each. Those of a positive digit are ``start``,
        ``start`` + 1, ...; those of a negative digit end before ``start``.
        """
        half = self.base // 2
        for level in range(self.height):
            above = (count + half) // self.base
            yield level, above * self.base, count - above * self.base
            count = above

    def nodes(self, count: int) -> int:
        """Return how many nodes have noise in the sum of ``count`` items."""
        return sum(abs(digit) for _, _, digit in self.of(count))

    def window_nodes(
        self, places: Integers, window: int, before: bool = True
    ) -> tuple[Integers, Integers]:
        """Return how many nodes have noise in a window that ends at a place of a block, and twice.

        It has the sum of ``place`` items, and that of the block before without as many. Nodes that
        are in both of its prefixes with one sign cancel; with two, they count twice.

        :param before: whether there is a block before
        """
        once, twice = np.zeros_like(places), np.zeros_like(places)
        half, counts, whole = self.base // 2, places, window
        for _ in range(self.height):
            above, whole_above = (counts + half) // self.base, (whole + half) // self.base
            start, digit = above * self.base, counts - above * self.base
            once += np.abs(digit)
            if before:
                first, last = whole_above * self.base, whole
                low = np.maximum(np.minimum(start, counts), min(first, last))
                high = np.minimum(np.maximum(start, counts), max(first, last))
                both = np.maximum(high - low, 0)
                twice += np.where((digit > 0) != (last > first), both, 0)
                once += np.abs(digit) + abs(last - first) - 2 * both
            counts, whole = above, whole_above
        return once, twice

    def sums(self, horizon: int) -> NDArray[np.float64]:
        """Return how many of the sums of 1 to T items have 0, 1, 2, ... nodes with noise."""
        found = self._sums(horizon, self.height)
        found[0] -= 1
        return found

    def _sums(self, last: int, levels: int) -> NDArray[np.float64]:
        """Return how many of the numbers from 0 to ``last`` have 0, 1, 2, ... nodes."""
        half = self.base // 2
        found = np.zeros(levels * half + 1)
        above = (last + half) // self.base
        if above == 0:  # of 0 or more, one digit each
            found[: last + 1] = 1.0
            return found
        each = np.full(half + 1, 2.0)
        each[0] = 1.0
        below = self._sums(above - 1, levels - 1)
        below[0] -= 1
        found += np.convolve(below, each)
        found[: half + 1] += 1.0
        highest, digit = Digits(self.base, levels - 1).nodes(above), last - above * self.base
        for one in range(-half, digit + 1):
            found[highest + abs(one)] += 1.0
        return found

    def total_nodes(self, horizon: int) -> int:
        """Return the sum of :meth:`nodes` over the steps 1 to T."""
        units = (self.base**level for level in range(self.height))
        return sum(absolute_digits(horizon, unit, self.base) for unit in units)


def absolute_digits(horizon: int, unit: int, base: int) -> int:
    """Return the sum over t = 0, ..., T of the absolute value of the digit of weight ``unit``.

    The digit is that of (t + (unit-1)/2) // unit: equal for ``unit`` numbers in a row.
    """
    half = base // 2
    whole, rest = divmod(horizon + unit // 2 + 1, unit)  # numbers from -(unit-1)/2 to T
    periods, places = divmod(whole, base)
    cycle = half * (half + 1)  # sum over one period of digits

    def first(count: int) -> int:
        """Return the sum of |digit| over the first digits 0, 1, ..., half, -half, ..., -1."""
        up = min(count, half + 1)
        down = count - up
        return up * (up - 1) // 2 + down * half - down * (down - 1) // 2

    digit = places if places <= half else base - places
    return unit * (periods * cycle + first(places)) + rest * digit


@lru_cache(maxsize=64)
def best_digits(horizon: int) -> Digits:
    """Return the digits with the smallest error over the steps 1 to T: least h² mean nodes."""
    fitting = []
    for height in range(1, MOST_HEIGHT):
        base = least_base(horizon, height)
        digits = Digits(base, height)
        fitting.append((height * height * digits.total_nodes(horizon), height, digits))
        if base == 3:
            break
    return min(fitting, key=lambda one: one[:2])[2]


def least_base(horizon: int, height: int) -> int:
    """Return the least odd k >= 3 with (k^h - 1)/2 >= T."""
    low, high = 1, horizon + 1  # 2 low + 1 is too small, 2 high + 1 is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if (2 * middle + 1) ** height > 2 * horizon else (middle, high)
    return 3 if 3**height > 2 * horizon else 2 * high + 1


class DigitNoise:
    """The noise of the nodes that sums of items need, drawn when a sum needs it.

    :param passing: keep only the nodes of the last sum, of a number of items that only grows. Each
        node is then in the sums of numbers in a row, so one that was dropped is never needed again
    """

    def __init__(self, digits: Digits, noise: NodeNoise, *, passing: bool = True) -> None:
        self._digits, self._draw, self._passing = digits, noise.whole, passing
        self._known: dict[tuple[int, int], Any] = {}

    def total(self, count: int, size: int | None = None) -> Any:
        """Return the noise of the sum of ``count`` items.

        :param size: number of entries of the noise; None for an integer
        """
        total: Any = 0
        known, used = self._known, {} if self._passing else self._known
        for node, positive in self._nodes(count):
            value = known[node] if node in known else self._new(size)
            used[node] = value
            total = total + value if positive else total - value
        self._known = used
        return total

    def _nodes(self, count: int) -> Iterator[tuple[tuple[int, int], bool]]:
        for level, start, digit in self._digits.of(count):
            for place in range(min(start, start + digit), max(start, start + digit)):
                yield (level, place), digit > 0

    @property
    def most(self) -> int:
        """Largest number of items whose sum has these digits."""
        return int((self._digits.base**self._digits.height - 1) // 2)

    def _new(self, size: int | None) -> Any:
        if size is None:
            return self._draw()
        return np.array([self._draw() for _ in range(size)], dtype=object)

    def to_record(self) -> Json:
        """Return the noise as a JSON value."""
        return [[level, place, plain(value)] for (level, place), value in self._known.items()]

    def restore(self, record: Json) -> None:
        """Restore the noise from a record."""
        self._known = {
            (whole(level), whole(place, least=-MOST)): unplain(value)
            for level, place, value in rows(record)
        }

    def fits(self, count: int) -> bool:
        """Return whether it has the noise of the sum of ``count`` items, and no other."""
        return self._known.keys() == {node for node, _ in self._nodes(count)}

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of the noise."""
        return {np.shape(value) for value in self._known.values()}


class DigitsPrefix:
    """A prefix: the exact sum, and the noise of nodes. Noise is drawn when a query needs it."""

    def __init__(self, digits: Digits, noise: NodeNoise) -> None:
        self._noise = DigitNoise(digits, noise)
        self.steps = 0
        self._sum: Any = 0

    def update(self, item: Item) -> None:
        """Take the item of the next step."""
        self._sum = self._sum + item
        self.steps += 1

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        if len(items):
            total = items.sum(axis=0)  # Python's integers hold noise of any size
            self._sum = self._sum + (total if items.ndim > 1 else int(total))
            self.steps += len(items)

    def total(self) -> Loss:
        """Return the noisy sum so far; the same until the next update."""
        if not self.steps:
            return 0
        size = len(self._sum) if isinstance(self._sum, np.ndarray) else None
        return self._sum + self._noise.total(self.steps, size)

    def to_record(self) -> dict[str, Any]:
        """Return the sum, and the noise in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        return {"count": self.steps, "sum": plain(self._sum), "noise": self._noise.to_record()}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        count, total, noise = fields(record, "count", "sum", "noise")
        self.steps = whole(count, most=self._noise.most)
        self._sum = unplain(total, LARGEST_SUM)
        self._noise.restore(noise)
        require(self._noise.fits(count))

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""
        return {np.shape(self._sum)} | self._noise.shapes
