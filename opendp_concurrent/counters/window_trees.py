"""Sliding windows by two binary trees for each block of steps.

Time is cut into blocks of W steps. The last W steps are the end of the previous block and the
beginning of the current one. The current block gives a prefix of its tree. The previous block gives
a prefix of its mirrored tree, which loses one item per step. An item is in nodes of both trees.
The state has the last W items, and the noise of O(log W) nodes.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from ..queryables.saved import fields, require, rows
from ..types import Json
from .dyadic import AllLeaves
from .node_noise import NodeNoise
from .prefix import TreePrefix

MOST_PLACES = 2**18  # up to this window, nodes_of examines every position


class Shrinking:
    """Noisy sums of the last items of a finished block; the number of items shrinks."""

    __slots__ = ("_noise", "_noisy", "_suffix", "length")

    def __init__(self, items: list[int], noise: NodeNoise) -> None:
        self._suffix = [0, *accumulate(items[::-1])]
        self._noise, self.length = noise, len(items)
        self._noisy: dict[tuple[int, int], int] = {}

    def total(self, left: int) -> int:
        """Return the noisy sum of the last ``left`` items."""
        nodes = {}
        low = 0
        for bit in reversed(range(left.bit_length())):
            if left >> bit & 1:
                node = (low, bit)
                known = self._noisy.get(node)
                if known is None:
                    exact = self._suffix[low + (1 << bit)] - self._suffix[low]
                    known = self._noise.release(exact)
                nodes[node] = known
                low += 1 << bit
        self._noisy = nodes
        return sum(nodes.values())

    def to_record(self) -> Json:
        """Return the sums, and the noise in use, as a JSON value."""
        noisy = [[low, bit, value] for (low, bit), value in self._noisy.items()]
        return {"suffix": self._suffix, "noisy": noisy}

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        suffix, noisy = fields(record, "suffix", "noisy")
        empty = len(rows(suffix, 1)) == 1 and suffix[0] == 0  # version 2 wrote it as 0.0
        for row in [[] if empty else suffix, *rows(noisy)]:
            for one in row:
                require(type(one) is int)
        self._suffix, self.length = suffix, len(suffix) - 1
        self._noisy = {(low, bit): value for low, bit, value in noisy}


class TreesWindow:
    """The window by two trees."""

    __slots__ = ("_before", "_block", "_noise", "_now", "_window")

    def __init__(self, window: int, noise: NodeNoise) -> None:
        self._window, self._noise = window, noise
        self._before = Shrinking([], noise)
        self._block: list[int] = []
        self._now = TreePrefix(AllLeaves(window), noise)

    def update(self, item: int) -> None:
        """Take the item of the next step."""
        if len(self._block) == self._window:
            self._before = Shrinking(self._block, self._noise)
            self._block, self._now = [], TreePrefix(AllLeaves(self._window), self._noise)
        self._block.append(item)
        self._now.update(item)

    def total(self) -> int:
        """Return the noisy sum of the window."""
        left = max(0, self._before.length - len(self._block))
        return int(self._now.total()) + self._before.total(left)

    def to_record(self) -> Json:
        """Return items, and the noise in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        parts = self._before.to_record(), self._now.to_record()
        return {"before": parts[0], "now": parts[1], "block": [int(one) for one in self._block]}

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        before, now, block = fields(record, "before", "now", "block")
        self._before.restore(before)
        self._now.restore(now)
        self._block = rows(block, most=self._window)
        for item in block:
            require(type(item) is int)
        require(self._before.length in (0, self._window) and self._now.steps == len(block))


def nodes_of(window: int) -> int:
    """Return the largest number of nodes that an item is in, over its places in a block.

    At level p, an item is in a node of its own tree if bit p of its place is not set and the node
    is within the block. The same holds in the mirrored tree, of which queries use one leaf less.
    """
    if window > MOST_PLACES:
        return window.bit_length() + (window - 1).bit_length()
    forward = np.arange(window)
    nodes = np.zeros(window, dtype=np.int64)
    for place, leaves in ((forward, window), (forward[::-1], window - 1)):
        for bit in range(window.bit_length()):
            low = place >> bit << bit
            nodes += ((place >> bit & 1) == 0) & (low + (1 << bit) <= leaves)
    return int(nodes.max())
