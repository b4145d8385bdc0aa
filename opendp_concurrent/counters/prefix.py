"""Noisy prefix sums of a stream: one tree with a horizon, doubling epochs without one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nextafter, sqrt
from typing import Any, Protocol

import numpy as np

from ..queryables.saved import fields, require, rows, whole
from ..types import Item, ItemSequence, Loss
from .dyadic import AllLeaves, Dyadic, Leaves, plain, unplain
from .node_noise import LARGEST_RELEASE, LARGEST_SUM, NodeNoise


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
    def steps(self) -> int | None:
        """Number of steps so far; None if it is not kept."""

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""


def _released(noise: NodeNoise, total: Any) -> Any:
    if isinstance(total, np.ndarray):
        return np.array([noise.release(one) for one in total.tolist()], dtype=object)
    return noise.release(int(total))


class TreePrefix:
    """A prefix from one tree. A node's noise is drawn at first use, and kept with the node."""

    __slots__ = ("_dyadic", "_noise", "_noisy")

    def __init__(self, leaves: Leaves, noise: NodeNoise) -> None:
        self._dyadic, self._noise = Dyadic(leaves), noise
        self._noisy: dict[int, Any] = {}

    def update(self, item: Item) -> None:
        """Take the item of the next step."""
        changed = self._dyadic.add(item)
        if self._noisy:
            self._forget(changed)

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        self._forget(self._dyadic.add_all(items))

    def _forget(self, changed: int) -> None:
        self._noisy = {bit: value for bit, value in self._noisy.items() if bit > changed}

    def total(self) -> Loss:
        """Return the noisy sum so far; the same until the next update."""
        for bit, total in self._dyadic.sums.items():
            if bit not in self._noisy:
                self._noisy[bit] = _released(self._noise, total)
        return sum(self._noisy.values())

    def to_record(self) -> dict[str, Any]:
        """Return sums, and the noise of those in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        noisy = {str(bit): plain(value) for bit, value in self._noisy.items()}
        return {"dyadic": self._dyadic.to_record(), "noisy": noisy}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        dyadic, noisy = fields(record, "dyadic", "noisy")
        self._dyadic.restore(dyadic)
        require(type(noisy) is dict and set(noisy) == set(map(str, self._dyadic.sums)))
        self._noisy = {int(bit): unplain(one, LARGEST_RELEASE) for bit, one in noisy.items()}

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._dyadic.count

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""
        return {np.shape(one) for one in (*self._dyadic.sums.values(), *self._noisy.values())}


class DoublingPrefix:
    """Epochs of 1, 2, 4, ... steps, each with its own tree, and one release of each epoch's total.

    An item is in one epoch. If the epoch has 2^j steps, the item is in the release of its total and
    in at most j nodes of its tree. Each of the two gets half of the loss: j nodes with noise of 2j
    times the unit's variance, and a total with noise of 2 times (Laplace noise: the scale). So an
    item's loss is that of one release with noise of the unit's scale, without a horizon [CSS11].

    :param scale: scale of the unit's noise
    """

    __slots__ = ("_before", "_exact", "_laplace", "_length", "_scale", "_steps", "_totals", "_tree")

    def __init__(self, scale: float, laplace: bool) -> None:
        self._scale, self._laplace = scale, laplace
        self._totals = NodeNoise(self._widened(1), laplace)
        self._before: Any = 0  # sum of the epochs' released totals
        self._exact: list[Any] = []  # totals not released yet, and that of the open epoch
        self._length, self._steps = 1, 0
        self._tree: TreePrefix | None = None

    def _widened(self, nodes: int) -> float:
        """Return the noise scale of each of ``nodes`` nodes with half of the loss; rounded up."""
        factor = 2.0 * nodes if self._laplace else nextafter(sqrt(2.0 * nodes), inf)
        return nextafter(factor * self._scale, inf)

    def update(self, item: Item) -> None:
        """Take the item of the next step."""
        if self._tree is None or self._steps + 1 == self._length:
            self.update_all(np.array([item]))
            return
        self._exact[-1] = self._exact[-1] + item
        self._steps += 1
        self._tree.update(item)

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        while len(items):
            now, items = items[: self._length - self._steps], items[self._length - self._steps :]
            self._exact_add(now)
            if self._steps == self._length:
                self._close()

    def _open(self) -> None:
        """Begin the tree of an epoch; an epoch of a single step has none."""
        bits = self._length.bit_length() - 1
        noise = NodeNoise(self._widened(bits), self._laplace) if bits else None
        self._tree = TreePrefix(AllLeaves(self._length - 1), noise) if noise else None

    def to_record(self) -> dict[str, Any]:
        """Return sums, and the noise of those in use, as a JSON value."""
        self.total()  # draws the noise of all finished epochs
        return {
            "before": plain(self._before),
            "exact": [plain(total) for total in self._exact],
            "length": self._length,
            "steps": self._steps,
            "tree": self._tree.to_record() if self._tree is not None else None,
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        names = "before", "exact", "length", "steps", "tree"
        before, exact, length, steps, tree = fields(record, *names)
        self._length = whole(length, least=1)
        self._steps = whole(steps, most=length - 1)
        self._before = unplain(before, LARGEST_RELEASE * length.bit_length())
        self._exact = [unplain(total, LARGEST_SUM) for total in rows(exact)]
        require(length.bit_count() == 1 and len(exact) == (1 if steps else 0))
        if steps:  # an epoch of one step is never open
            self._open()
            assert self._tree is not None
            self._tree.restore(tree)
            require(self._tree.steps == steps)

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._length - 1 + self._steps

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all sums and noise that it keeps."""
        own = {np.shape(one) for one in (self._before, *self._exact)}
        return own if self._tree is None else own | self._tree.shapes

    def _exact_add(self, items: ItemSequence) -> None:
        if self._steps == 0:
            self._exact.append(0)
            self._open()
        self._exact[-1] = self._exact[-1] + items.sum(axis=0)
        self._steps += len(items)
        if self._tree is not None and self._steps < self._length:
            self._tree.update_all(items)

    def _close(self) -> None:
        self._length, self._steps, self._tree = 2 * self._length, 0, None

    def total(self) -> Loss:
        """Return the noisy sum so far; the same until the next update."""
        open_epoch = self._steps > 0
        whole = self._exact[:-1] if open_epoch else self._exact
        before = self._before
        for total in whole:
            before = before + _released(self._totals, total)
        self._before, self._exact = before, self._exact[-1:] if open_epoch else []
        inside = self._tree.total() if open_epoch and self._tree is not None else 0
        return self._before + inside


def make_prefix(
    leaves: Callable[[int], Leaves], horizon: int | None, scale: float, laplace: bool
) -> Prefix:
    """Return one tree with a horizon, or doubling epochs without one."""
    if horizon is None:
        return DoublingPrefix(scale, laplace)
    return TreePrefix(leaves(horizon), NodeNoise(scale, laplace))
