"""Totals of blocks as numbers of accumulators, which blocks with equal totals share.

A launch moves all blocks that share an accumulator to the accumulator after it, so it asks each
distinct accumulator once. This is exact for every accumulator, and fast as long as the blocks of a
launch have few distinct totals.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..accounts.rule import Within
from ..errors import BudgetExceededError
from ..measures.sums.accumulator import Accumulator

Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Accumulators of some blocks after a launch. They have no number before they are written.

    So what was only asked, or refused elsewhere, keeps nothing.

    :ivar accumulators: the distinct ones
    :ivar at: for each block, the position of its accumulator
    """

    accumulators: tuple[Accumulator, ...]
    at: Cells


class Shared:
    """The number of an accumulator for each block.

    :param start: the accumulator of no launch, which has the number 0
    :param d_out: the bound of each block
    """

    __slots__ = ("_cells", "_known", "_numbers", "_rule")

    def __init__(self, start: Accumulator, d_out: Any) -> None:
        self._rule = Within(d_out)
        self._known: list[Accumulator] = []
        self._numbers: dict[Any, int] = {}
        self._number(start)
        self._cells = np.zeros((0, 1), dtype=np.int64)

    def _number(self, accumulator: Accumulator) -> int:
        """Return the number of an accumulator, the same for equal ones."""
        key: Any = accumulator
        try:
            number = self._numbers.get(key)
        except TypeError:  # it has no hash
            key = id(accumulator)  # which stays: it is kept below
            number = self._numbers.get(key)
        if number is None:
            number = len(self._known)
            self._known.append(accumulator)
            self._numbers[key] = number
        return number

    def grow(self, size: int) -> None:
        """Make room for ``size`` blocks; new ones have lost nothing."""
        have = len(self._cells)
        if have < size:
            room = np.zeros((max(size, have + have // 2), 1), dtype=np.int64)
            room[:have] = self._cells
            self._cells = room

    @property
    def kept(self) -> int:
        """Number of accumulators, of which a copy has only those that blocks have."""
        return len(self._known)

    def __len__(self) -> int:
        return len(self._cells)

    def copy(self, places: Any, cells: Cells | Moved) -> Shared:
        """Return a copy, with other accumulators at some places, and with new numbers then."""
        found = copy(self)
        numbers, known = self._cells.copy(), self._known
        if isinstance(cells, Moved):
            numbers[places] = len(known) + cells.at
            known = [*known, *cells.accumulators]
        else:
            numbers[places] = cells
        found._known, found._numbers = [], {}
        found._number(known[0])
        distinct, inverse = np.unique(numbers, return_inverse=True)
        new = [found._number(known[one]) for one in distinct.tolist()]
        found._cells = np.array(new, dtype=np.int64)[inverse].reshape(-1, 1)
        return found

    def read(self, places: Any) -> Cells:
        """Return the numbers at some places, as a copy."""
        found: Cells = np.take(self._cells, places, axis=0)
        return found

    def write(self, places: Any, cells: Cells | Moved) -> None:
        """Replace the numbers at some places."""
        if isinstance(cells, Moved):
            numbers = np.array([self._number(one) for one in cells.accumulators], dtype=np.int64)
            cells = numbers[cells.at]
        self._cells[places] = cells

    def after(
        self, cells: Cells, d_mid: Any, count: int = 1
    ) -> Moved | tuple[int, BudgetExceededError]:
        """Return what follows ``count`` launches, or which block refuses and the refusal."""
        numbers = cells[:, 0]
        distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        moved: dict[int, Accumulator] = {}
        for at in np.argsort(first).tolist():  # in the order of blocks
            verdict = self._rule.admits(self._known[int(distinct[at])], d_mid, count)
            if isinstance(verdict, BudgetExceededError):
                return int(first[at]), verdict
            moved[at] = verdict
        accumulators = tuple(moved[at] for at in range(len(distinct)))
        return Moved(accumulators, inverse.reshape(-1, 1))

    def accumulator(self, cells: Cells) -> Accumulator:
        """Return the accumulator of one block."""
        return self._known[int(cells[0])]
