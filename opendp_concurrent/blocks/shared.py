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

from ..accounts.rule import Within
from ..errors import BudgetExceededError
from ..sums.accumulator import Accumulator
from ..types import Key, Loss
from .rows import Cells, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Accumulators of some blocks after a launch. They have no number before they are written.

    So what was only asked, or refused elsewhere, keeps nothing.

    :ivar accumulators: the distinct ones
    :ivar at: for each block, the position of its accumulator
    """

    accumulators: tuple[Accumulator, ...]
    at: Cells


class Shared(Rows):
    """The number of an accumulator for each block.

    :param start: the accumulator of no launch, which has the number 0
    :param d_out: the bound of each block
    """

    def __init__(self, start: Accumulator, d_out: Loss) -> None:
        super().__init__(1)
        self._rule = Within(d_out)
        self._known: list[Accumulator] = []
        self._numbers: dict[Any, int] = {}
        self._number(start)

    def _number(self, accumulator: Accumulator) -> int:
        """Return the number of an accumulator, the same for equal ones."""
        key: Key = accumulator
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

    @property
    def kept(self) -> int:
        """Number of accumulators, of which a copy has only those that blocks have."""
        return len(self._known)

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

    def write(self, places: Any, cells: Cells | Moved) -> None:
        """Replace the numbers at some places."""
        if isinstance(cells, Moved):
            numbers = np.array([self._number(one) for one in cells.accumulators], dtype=np.int64)
            cells = numbers[cells.at]
        super().write(places, cells)

    def after(
        self, cells: Cells, d_mid: Loss, count: int = 1
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
