"""Noisy prefix sums of a stream by a factorisation: each step is released once, with noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...queryables.saved import fields, require
from ...types import Item, ItemSequence, Loss
from ..dyadic import plain, unplain
from ..node_noise import NodeNoise
from .factor import Coder, Factor


class FactorPrefix:
    """A prefix by a factor C. Noise is drawn at each step.

    :param bits: of the grid
    :param noise: of one release, in steps of the grid
    """

    __slots__ = ("_bits", "_data", "_decoded", "_noise", "_sum")

    def __init__(self, factor: Factor, bits: int, noise: NodeNoise) -> None:
        self._bits, self._noise = bits, noise
        self._data: Coder = factor.coder(bits)  # what is known of the items
        self._decoded: Coder = factor.coder(bits)  # what follows from the releases
        self._sum: Any = 0

    def update(self, item: Item) -> None:
        """Take the item of the next step, and release the step."""
        if isinstance(item, np.ndarray):
            item = item.astype(object)  # 64 bits may be too few
        exact = self._data.encode(item << self._bits)
        self._sum = self._sum + self._decoded.decode(self._release(exact))

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
        return nearest(self._sum, self._bits)

    def to_record(self) -> dict[str, Any]:
        """Return sums, and what was released, as a JSON value."""
        return {
            "data": self._data.to_record(),
            "decoded": self._decoded.to_record(),
            "sum": plain(self._sum),
        }

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        data, decoded, total = fields(record, "data", "decoded", "sum")
        self._data.restore(data)
        self._decoded.restore(decoded)
        require(self._data.steps == self._decoded.steps)
        self._sum = unplain(total)
        require(self.shapes == {np.shape(self._sum)})

    @property
    def steps(self) -> int | None:
        """Number of steps so far; None if it is not kept."""
        return self._data.steps

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of all that it keeps."""
        return {np.shape(self._sum)} | self._data.shapes | self._decoded.shapes

    @property
    def fine_total(self) -> Any:
        """The noisy sum so far, in steps of the grid."""
        return self._sum


def nearest(total: Any, bits: int) -> Any:
    """Return ``total`` times 2^-bits, rounded to the nearest integers."""
    return total + (1 << bits - 1) >> bits
