"""Pure-DP counters without a horizon: epochs, each with a tree of signed digits (:mod:`.digits`).

The lengths of the epochs and their trees are fixed. They depend on nothing but the number of the
epoch. An item is in the tree of one epoch, in as many nodes as the tree has levels, and the noise
of a node grows with the levels. So an item's loss is that of one release, in each epoch.

A sum of an epoch's last step is kept with its noise, and no other noise is needed for the epochs
before. So the length is one at which few nodes have noise: a digit of 1, 2 or 3, and zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, nextafter
from typing import Any

import numpy as np

from ..queryables.saved import fields, require, whole
from ..types import Item, ItemSequence, Loss
from .digits import Digits, DigitsPrefix
from .node_noise import NodeNoise
from .prefix import plain, unplain

FIRST, GROWTH = 13, 4  # length of the first epoch, and how much longer the next is, about
NEAR = Fraction(6, 10), Fraction(17, 10)  # of that length
MOST_EPOCHS = 31  # more than 2^61 steps are in as many
MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch.

    :ivar length: number of its steps
    :ivar digits: of its tree
    """

    length: int
    digits: Digits

    @property
    def cost(self) -> Fraction:
        """The mean variance of its sums, and that which it leaves to later ones, in a unit."""
        nodes = Fraction(self.digits.total_nodes(self.length), self.length)
        return self.digits.height**2 * (nodes + self.digits.nodes(self.length))


@cache
def epoch(number: int) -> Epoch:
    """Return the epoch of a number, the one with the least cost among lengths near its own."""
    return min(_near(FIRST * GROWTH**number), key=lambda one: (one.cost, one.length))


def _near(target: int) -> Iterator[Epoch]:
    for height in range(2, MOST_LEVELS):
        middle = _rounded_root(target, height - 1) | 1
        for base in (middle - 2, middle, middle + 2):
            for digit in range(1, min(3, base // 2) + 1):
                length = digit * base ** (height - 1)
                if NEAR[0] * target <= length <= NEAR[1] * target:
                    yield Epoch(length, Digits(base, height))
        if middle <= 3:
            return


def _rounded_root(number: int, degree: int) -> int:
    """Return a root, rounded to an integer. Integers alone decide, on each machine alike."""
    low, high = 0, number + 1
    while high - low > 1:
        middle = (low + high) // 2
        below = (2 * middle - 1) ** degree <= number << degree
        low, high = (middle, high) if below else (low, middle)
    return low


def epochs(steps: int) -> Iterator[tuple[Epoch, int]]:
    """Yield the epochs of the first steps, and how many of these are in each."""
    number = 0
    while steps > 0:
        one = epoch(number)
        yield one, min(one.length, steps)
        steps, number = steps - one.length, number + 1


class EpochsPrefix:
    """A prefix: the last sums of epochs that are over, and the tree of the one that is open.

    :param scale: of the noise of a release whose loss is that of an item; a node of a tree with h
        levels has h times as much
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._before: Any = 0
        self._open(0)

    def _open(self, number: int) -> None:
        height = epoch(number).digits.height
        widened = nextafter(height * self._scale, inf)
        self._number, self._past = number, sum(epoch(one).length for one in range(number))
        self._tree = DigitsPrefix(epoch(number).digits, NodeNoise(widened, True))

    @property
    def _left(self) -> int:
        return epoch(self._number).length - self._tree.steps

    def _next(self) -> None:
        """Begin an epoch before an item, if the last one is over."""
        if not self._left:
            self._before = self.total()
            self._open(self._number + 1)

    def update(self, item: Item) -> None:
        """Take the item of the next step."""
        self._next()
        self._tree.update(item)

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        while len(items):
            self._next()
            now, items = items[: self._left], items[self._left :]
            self._tree.update_all(now)

    def total(self) -> Loss:
        """Return the noisy sum so far; the same until the next update."""
        return self._before + self._tree.total()

    def to_record(self) -> dict[str, Any]:
        """Return the sums, and the noise in use, as a JSON value."""
        tree = self._tree.to_record()
        return {"before": plain(self._before), "epoch": self._number, "tree": tree}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        before, number, tree = fields(record, "before", "epoch", "tree")
        self._open(whole(number, most=MOST_EPOCHS))
        self._before = unplain(before)
        self._tree.restore(tree)
        require(self._left >= 0 and (self._number == 0 or self._tree.steps > 0))
        require(self._number > 0 or before == 0)

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._past + self._tree.steps

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""
        return self._tree.shapes | ({np.shape(self._before)} if self._number else set())
