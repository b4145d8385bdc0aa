"""Sums over the nodes of a binary tree, of which a prefix needs few: exact, without noise.

Items sit at leaves, in order. The prefix up to leaf m (which is not in it) is the union of one
node for each bit of m: the node of bit p covers the 2^p leaves from m with the bits up to p
cleared. Only these are kept. Two orders of leaves:

* *all*: item t is at leaf t - 1. The prefix of t items has a node for each bit of t.
* *balanced* [AP23]: only leaves whose number has h/2 of h bits set. Every prefix has h/2 nodes, and
  every item is in at most h/2 nodes that are ever asked for, one for each bit that its leaf lacks.

A node without a leaf in use holds nothing, whatever the data: it is left out, and needs no noise.
For balanced leaves these are the bits of m below its lowest bit that is not set: with them the
leaves of such a node have too few bits.
"""

from __future__ import annotations

from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def plain(total: Any) -> Any:
    """An integer, or a list of them, from whatever integers or arrays."""
    return [int(one) for one in total] if isinstance(total, np.ndarray) else int(total)


def unplain(total: Any) -> Any:
    """The inverse of :func:`plain`."""
    return np.array(total, dtype=object) if isinstance(total, list) else total


class Leaves(Protocol):
    """An order of leaves.

    :ivar height: an item is in at most this many nodes that are asked for
    :ivar horizon: how many items there may be
    """

    height: int
    horizon: int

    def leaf(self, count: int) -> int:
        """The leaf after ``count`` items: the prefix of these ends there."""

    def following(self, leaf: int) -> int:
        """The next leaf."""

    def before(self, leaf: int) -> int:
        """How many items are at smaller leaves."""


class AllLeaves:
    """Item t at leaf t - 1."""

    def __init__(self, horizon: int) -> None:
        self.horizon, self.height = horizon, horizon.bit_length()

    def leaf(self, count: int) -> int:
        """The leaf after ``count`` items."""
        return count

    def following(self, leaf: int) -> int:
        """The next leaf."""
        return leaf + 1

    def before(self, leaf: int) -> int:
        """How many items are at smaller leaves."""
        return leaf


class BalancedLeaves:
    """Leaves with half of their bits set."""

    def __init__(self, horizon: int) -> None:
        self.horizon, self.bits = horizon, 2
        while comb(self.bits, self.bits // 2) < horizon + 1:
            self.bits += 2
        self.height = self.bits // 2

    def leaf(self, count: int) -> int:
        """The number with half of its bits set that has ``count`` smaller ones."""
        leaf, left = 0, self.height
        for bit in reversed(range(self.bits)):
            without = comb(bit, left)  # numbers that do not have this bit
            if count >= without and left:
                count -= without
                leaf |= 1 << bit
                left -= 1
        return leaf

    def following(self, leaf: int) -> int:
        """The next number with as many bits set."""
        lowest = leaf & -leaf
        carried = leaf + lowest
        return carried | ((leaf ^ carried) // lowest) >> 2

    def before(self, leaf: int) -> int:
        """How many numbers with half of their bits set are smaller."""
        smaller, left = 0, self.height
        for bit in reversed(range(self.bits)):
            if leaf >> bit & 1:
                smaller += comb(bit, left) if left >= 0 else 0
                left -= 1
        return smaller


class Dyadic:
    """The exact sums of the nodes of the prefix so far.

    :ivar count: how many items there were
    :ivar sums: by bit: the sum of its node, an integer or an array of them
    """

    __slots__ = ("_leaf", "_leaves", "count", "sums")

    def __init__(self, leaves: Leaves) -> None:
        self._leaves, self.count = leaves, 0
        self._leaf = leaves.leaf(0)
        self.sums: dict[int, Any] = {}

    def to_record(self) -> dict[str, Any]:
        """What :meth:`restore` needs, as JSON has it."""
        sums = {str(bit): plain(total) for bit, total in self.sums.items()}
        return {"count": self.count, "sums": sums}

    def restore(self, record: dict[str, Any]) -> None:
        """Go on from a record."""
        self.count, self._leaf = record["count"], self._leaves.leaf(record["count"])
        self.sums = {int(bit): unplain(total) for bit, total in record["sums"].items()}

    def add(self, item: Any) -> int:
        """Take an item; return the bit below which (and at which) nodes are new."""
        after = self._leaves.following(self._leaf)
        changed = (self._leaf ^ after).bit_length() - 1
        for bit in [bit for bit in self.sums if bit < changed]:
            item = item + self.sums.pop(bit)
        self.sums[changed] = item
        self._leaf = after
        self.count += 1
        return changed

    def add_all(self, items: Integers) -> int:
        """Take items at once; return as :meth:`add` does."""
        if not len(items):
            return -1
        reached = self.count + len(items)
        after = self._leaves.leaf(reached)
        changed = (self._leaf ^ after).bit_length() - 1
        kept = {bit: total for bit, total in self.sums.items() if bit > changed}
        common = sum(kept.values())
        running = np.cumsum(items, axis=0)
        start = sum(self.sums.values()) - common  # of the old nodes that are not kept

        def prefix(leaf: int) -> Any:
            """Sum before a leaf at or beyond the old one, less what is kept."""
            new = self._leaves.before(leaf) - self.count
            return start + (running[new - 1] if new else 0)

        low = after >> (changed + 1) << (changed + 1)  # where the nodes that are kept end
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
