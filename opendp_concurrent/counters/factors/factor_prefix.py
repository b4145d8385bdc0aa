"""Noisy prefix sums of a stream by a factorisation: each step is released once, with noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...queryables.saved import fields, require, whole
from ...types import Item, ItemSequence, Loss
from ..node_noise import NodeNoise
from ..prefix import plain, unplain
from .buffered import BufferedFactor, inverse_norm

MORE = 96  # bits of sums, besides those of the grid: an item is off by less than 2^-96 of itself


class FactorPrefix:
    """A prefix by a factor. Noise is drawn at each step.

    :param bits: of the grid
    :param noise: of one release, in steps of the grid
    """

    def __init__(self, factor: BufferedFactor, bits: int, noise: NodeNoise) -> None:
        self._factor, self._bits, self._noise = factor, bits, noise
        self._data = factor.coder()  # what is known of the items
        self._decoded = factor.coder()  # what follows from the releases
        self.fine_total: Any = 0
        self._begin(0)

    def _begin(self, steps: int) -> None:
        """Go to the block of a step."""
        self._blocks, self.steps, self._left = self._factor.blocks(), steps, 0
        while steps >= 0:
            length, column = next(self._blocks, (0, 0))
            if steps < length:
                self._open(length - steps, column)
                return
            if not length:  # the horizon is reached
                return
            steps -= length

    def _open(self, left: int, column: int) -> None:
        self._left, self._entry = left, inverse_norm(self._factor, self._bits, column)
        self._weight = (1 << self._bits + MORE) // self._entry

    def update(self, item: Item) -> None:
        """Take the item of the next step, and release the step."""
        if isinstance(item, np.ndarray):
            item = item.astype(object)  # 64 bits may be too few
        if not self._left:
            self._open(*next(self._blocks))
        self._left, self.steps = self._left - 1, self.steps + 1
        exact = self._data.encode(item * self._entry)
        self.fine_total = (
            self.fine_total + self._decoded.decode(self._release(exact)) * self._weight
        )

    def _release(self, exact: Any) -> Any:
        if isinstance(exact, np.ndarray):
            return np.array([self._noise.release(one) for one in exact.tolist()], dtype=object)
        return self._noise.release(exact)

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps."""
        for item in items.tolist() if items.ndim == 1 else items:
            self.update(item)

    def total(self) -> Loss:
        """Return the noisy sum so far, rounded to integers."""
        return self.nearest(self.fine_total)

    def nearest(self, total: Any) -> Any:
        """Return a sum or difference of :attr:`fine_total`, rounded to integers."""
        fine = self._bits + MORE
        return total + (1 << fine - 1) >> fine

    def to_record(self) -> dict[str, Any]:
        """Return sums, and what was released, as a JSON value."""
        return {
            "data": self._data.to_record(),
            "decoded": self._decoded.to_record(),
            "steps": self.steps,
            "sum": plain(self.fine_total),
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        data, decoded, steps, total = fields(record, "data", "decoded", "steps", "sum")
        self._data.restore(data)
        self._decoded.restore(decoded)
        self._begin(whole(steps, most=self._factor.horizon))
        self.fine_total = unplain(total)
        require(self.shapes == {np.shape(self.fine_total)})

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all that it keeps."""
        return {np.shape(self.fine_total)} | self._data.shapes | self._decoded.shapes
