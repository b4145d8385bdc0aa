"""Exact sums, without noise, of the few nodes of a binary tree that form a prefix.

Items sit at leaves, in order. The prefix before leaf m is the union of one node for each set bit
of m. The node of bit p covers 2^p leaves, beginning at m with the bits up to p cleared. Only these
nodes are kept. There are two orders of leaves:

* *all*: item t is at leaf t - 1. The prefix of t items has one node for each set bit of t.
* *balanced* [AP23]: items are only at leaves whose number has b/2 of b bits set. Every prefix has
  b/2 nodes. An item is in at most b/2 nodes that are ever used, one for each unset bit of its leaf.

A node without a leaf in use is empty, whatever the data. It is left out, and needs no noise. For
balanced leaves, these are the nodes of the bits of m below its lowest unset bit, since the leaves
of such a node have too few set bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..queryables.saved import fields, require, whole
from ..types import Item
from .node_noise import LARGEST_SUM

Integers = NDArray[np.int64]


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


class Leaves(Protocol):
    """An order of leaves.

    :ivar height: largest number of used nodes that contain one item
    :ivar horizon: largest number of items
    """

    height: int
    horizon: int

    def leaf(self, count: int) -> int:
        """Return the leaf after ``count`` items; the prefix of these items ends before it."""

    def following(self, leaf: int) -> int:
        """Return the next leaf."""

    def before(self, leaf: int) -> int:
        """Return how many items are at smaller leaves."""


class AllLeaves:
    """Item t at leaf t - 1."""

    def __init__(self, horizon: int) -> None:
        self.horizon, self.height = horizon, horizon.bit_length()

    def leaf(self, count: int) -> int:
        """Return the leaf after ``count`` items."""
        return count

    def following(self, leaf: int) -> int:
        """Return the next leaf."""
        return leaf + 1

    def before(self, leaf: int) -> int:
        """Return how many items are at smaller leaves."""
        return leaf


class BalancedLeaves:
    """Leaves with half of their bits set."""

    def __init__(self, horizon: int) -> None:
        self.horizon, self.bits = horizon, 2
        while comb(self.bits, self.bits // 2) < horizon + 1:
            self.bits += 2
        self.height = self.bits // 2

    def leaf(self, count: int) -> int:
        """Return the number with half of its bits set that has ``count`` smaller such numbers."""
        leaf, left = 0, self.height
        for bit in reversed(range(self.bits)):
            without = comb(bit, left)  # numbers in which this bit is not set
            if count >= without and left:
                count -= without
                leaf |= 1 << bit
                left -= 1
        return leaf

    def following(self, leaf: int) -> int:
        """Return the next number with the same number of set bits."""
        lowest = leaf & -leaf
        carried = leaf + lowest
        return carried | ((leaf ^ carried) // lowest) >> 2

    def before(self, leaf: int) -> int:
        """Return how many smaller numbers have half of their bits set."""
        smaller, left = 0, self.height
        for bit in reversed(range(self.bits)):
            if leaf >> bit & 1:
                smaller += comb(bit, left) if left >= 0 else 0
                left -= 1
        return smaller


class Dyadic:
    """Exact sums of the nodes of the prefix so far.

    :ivar count: number of items so far
    :ivar sums: from a bit to the sum of its node, an integer or an array of integers
    """

    __slots__ = ("_leaf", "_leaves", "count", "sums")

    def __init__(self, leaves: Leaves) -> None:
        self._leaves, self.count = leaves, 0
        self._leaf = leaves.leaf(0)
        self.sums: dict[int, Any] = {}

    def to_record(self) -> dict[str, Any]:
        """Return the state for :meth:`restore`, as a JSON value."""
        sums = {str(bit): plain(total) for bit, total in self.sums.items()}
        return {"count": self.count, "sums": sums}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        count, sums = fields(record, "count", "sums")
        self.count = whole(count, most=self._leaves.horizon)
        self._leaf = self._leaves.leaf(count)
        require(type(sums) is dict and set(sums) == set(map(str, self._bits())))
        self.sums = {int(bit): unplain(total, LARGEST_SUM) for bit, total in sums.items()}

    def _bits(self) -> Iterator[int]:
        """Yield the bits of the nodes of the prefix that are not empty."""
        for bit in range(self._leaf.bit_length()):
            start = self._leaf >> bit + 1 << bit + 1
            ends = self._leaves.before(start), self._leaves.before(start + (1 << bit))
            if self._leaf >> bit & 1 and ends[0] < ends[1]:
                yield bit

    def add(self, item: Item) -> int:
        """Take an item; return a bit such that the nodes at it and below it are new."""
        after = self._leaves.following(self._leaf)
        changed = (self._leaf ^ after).bit_length() - 1
        for bit in [bit for bit in self.sums if bit < changed]:
            item = item + self.sums.pop(bit)
        self.sums[changed] = item
        self._leaf = after
        self.count += 1
        return changed

    def add_all(self, items: Integers) -> int:
        """Take items at once; return the same bit as :meth:`add`."""
        if not len(items):
            return -1
        reached = self.count + len(items)
        after = self._leaves.leaf(reached)
        changed = (self._leaf ^ after).bit_length() - 1
        kept = {bit: total for bit, total in self.sums.items() if bit > changed}
        common = sum(kept.values())
        running = np.cumsum(items, axis=0)
        start = sum(self.sums.values()) - common  # sum of the old nodes that are not kept

        def prefix(leaf: int) -> Any:
            """Return the sum before a leaf at or after the old one, minus the kept nodes."""
            new = self._leaves.before(leaf) - self.count
            return start + (running[new - 1] if new else 0)

        low = after >> (changed + 1) << (changed + 1)  # the first leaf after the kept nodes
        below: Any = 0
        sums = kept
        for bit in reversed(range(changed + 1)):
            if after >> bit & 1:
                low += 1 << bit
                total = prefix(low)
                if self._leaves.before(low) > self._leaves.before(low - (1 << bit)):
                    sums[bit] = total - below
                below = total
        self.sums, self._leaf, self.count = sums, after, reached
        return changed
