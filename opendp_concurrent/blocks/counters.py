"""Totals of blocks as integers in two limbs, for accumulators that are exact sums.

A total counts quanta. A quantum is 2^-121 of the bound, rounded up to a power of two. A total is at
most 2^121 quanta, so two limbs of 61 bits in integers of 64 bits are enough. A loss that is a
multiple of the quantum is added exactly; any other loss is rounded up to the next one. A double has
53 bits, so a loss of at least 2^-68 of the bound is a multiple; where squares add up, of Gaussian
DP, a loss of at least 2^-7 of the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np

from ..errors import BudgetExceededError
from ..sums.accumulator import Accumulator
from ..types import Loss
from .rows import Cells, Rows

BITS = 121  # of the bound, in quanta
LIMB = 61
MASK = 2**LIMB - 1


class Additive(Accumulator, Protocol):
    """An accumulator that is one or more exact sums of integers, each with a bound of its own.

    These numbers can be kept in an array for many accumulators at once.
    """

    def amounts(self, d_mid: Loss) -> tuple[int | None, ...]:
        """Return what a launch adds to each sum; None for what is infinite."""

    def limits(self, d_out: Loss) -> tuple[int, ...]:
        """Return what each sum must be at most, exactly if the loss is within ``d_out``."""

    def of_amounts(self, totals: Sequence[int]) -> Accumulator:
        """Return the accumulator with these sums."""


class Counters(Rows):
    """One integer for each block and each sum of the accumulator.

    :param start: the accumulator of no launch, whose sums are counted
    :param d_out: the bound of each block
    """

    def __init__(self, start: Additive, d_out: Loss) -> None:
        self._start, self._d_out = start, d_out
        limits = start.limits(d_out)
        self._shifts = [max(0, one.bit_length() - BITS) for one in limits]
        # a bound has at most 106 bits, so nothing is cut off here
        self._limits = [one >> shift for one, shift in zip(limits, self._shifts, strict=True)]
        super().__init__(2 * len(limits))

    kept = 0  # apart from the cells

    def copy(self, places: Any, cells: Cells) -> Counters:
        """Return a copy, with other totals at some places."""
        found = copy(self)
        found._cells = self._cells.copy()
        found.write(places, cells)
        return found

    def after(
        self, cells: Cells, d_mid: Loss, count: int = 1
    ) -> Cells | tuple[int, BudgetExceededError]:
        """Return the totals after ``count`` launches, or which one refuses and the refusal."""
        amounts = self._start.amounts(d_mid)
        added: list[int] = []
        for amount, limit, shift in zip(amounts, self._limits, self._shifts, strict=True):
            if amount is None or (quanta := -(-amount >> shift) * count) > limit:  # rounded up
                return 0, self._refusal(cells[0], d_mid)
            added.append(quanta)
        after = np.empty_like(cells)
        admitted: Any = None
        for sum_, (quanta, limit) in enumerate(zip(added, self._limits, strict=True)):
            high, low = after[:, 2 * sum_], after[:, 2 * sum_ + 1]
            np.add(cells[:, 2 * sum_ + 1], quanta & MASK, out=low)  # below 2^62
            np.right_shift(low, LIMB, out=high)  # the carry
            high += cells[:, 2 * sum_]
            high += quanta >> LIMB
            low &= MASK
            most_high, most_low = limit >> LIMB, limit & MASK
            if high.max() < most_high:
                continue
            within = (high < most_high) | ((high == most_high) & (low <= most_low))
            admitted = within if admitted is None else admitted & within
        if admitted is not None and not admitted.all():
            position = int(np.argmin(admitted))
            return position, self._refusal(cells[position], d_mid)
        return after

    def accumulator(self, cells: Cells) -> Accumulator:
        """Return the totals of one block as the accumulator."""
        totals = [
            ((int(cells[2 * sum_]) << LIMB) + int(cells[2 * sum_ + 1])) << shift
            for sum_, shift in enumerate(self._shifts)
        ]
        return self._start.of_amounts(totals)

    def _refusal(self, cells: Cells, d_mid: Loss) -> BudgetExceededError:
        now = self.accumulator(cells)
        left = now.remaining(self._d_out)
        return BudgetExceededError(now.loss, d_mid, left, d_out=self._d_out)
