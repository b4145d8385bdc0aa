"""A row of integers for each block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int64]


class Rows:
    """A row of integers for each block; those of new blocks are 0.

    :param width: integers in a row
    """

    def __init__(self, width: int) -> None:
        self._cells: Cells = np.zeros((0, width), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._cells)

    def grow(self, size: int) -> None:
        """Make room for ``size`` blocks; new ones have lost nothing."""
        have, width = self._cells.shape
        if have < size:
            room = np.zeros((max(size, have + have // 2), width), dtype=np.int64)
            room[:have] = self._cells
            self._cells = room

    def read(self, places: Any) -> Cells:
        """Return the rows at some places, as a copy."""
        found: Cells = np.take(self._cells, places, axis=0)
        return found

    def write(self, places: Any, cells: Cells) -> None:
        """Replace the rows at some places."""
        # NumPy copies rows of bytes as they are, ten times faster than rows of numbers
        whole = np.dtype((np.void, self._cells.itemsize * self._cells.shape[1]))
        new = np.ascontiguousarray(cells, dtype=np.int64)
        self._cells.view(whole)[:, 0][places] = new.view(whole)[:, 0]
