"""The bank: remaining budgets of millions of people, charged for each query.

Each person's remaining budget is one double, a whole number of units below 2^53. So sums,
differences and comparisons are exact. A query makes one pass: it reads the remaining budgets from
one array, and writes those after the charge to a second array. Then the two arrays are swapped. So
a query that fails on the way changes nothing, and a charge is one rebinding.

Every person goes through the same operations, with masks instead of branches. Nothing is skipped
for people without remaining budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ReentrantLaunchError
from .price import UNITS, Price

CHUNK = 2**16  # people at a time: buffers fit in the cache, and few calls of Python are needed


class Bank:
    """Remaining budget of each person. Secret, and not thread-safe.

    :param people: number of people
    """

    def __init__(self, people: int) -> None:
        self._left: NDArray[np.float64] = np.full(people, float(UNITS))
        self._spare: NDArray[np.float64] | None = self._left.copy()

    def charge(self, values: Callable[[slice], NDArray[Any]], price: Price) -> int:
        """Charge each person who can pay for their value; return the exact sum of these, in steps.

        A person whose charge is above their remaining budget is left out and is not charged. A
        remaining budget depends only on the person's own values and on the prices.

        :param values: returns one number per person in a slice; if it raises, nothing is charged
        """
        if self._spare is None:  # called from within ``values``
            raise ReentrantLaunchError
        left, after, total = self._left, self._spare, 0
        try:
            self._spare = None
            buffers = _Buffers(min(CHUNK, len(left)))
            with np.errstate(all="ignore"):  # a warning would reveal a value
                for start in range(
                    0, max(1, len(left)), CHUNK
                ):  # calls per_row even if there is nobody
                    part = slice(start, min(start + CHUNK, len(left)))
                    total += buffers.charge(values(part), left[part], after[part], price)
            self._left = after
        finally:
            self._spare = left if self._left is after else after
        return total


class _Buffers:
    """Reusable arrays for the numbers of one chunk."""

    def __init__(self, size: int) -> None:
        self.steps, self.charges = np.empty(size), np.empty(size)
        self.pays, self.mask = np.empty(size, dtype=np.bool_), np.empty(size, dtype=np.int64)

    def charge(
        self,
        values: NDArray[Any],
        left: NDArray[np.float64],
        after: NDArray[np.float64],
        price: Price,
    ) -> int:
        """Fill ``after``; return the sum of the steps of the people who are charged."""
        size, reach = len(left), float(price.reach)
        steps, charges = self.steps[:size], self.charges[:size]
        pays, mask = self.pays[:size], self.mask[:size]

        np.multiply(values, 2.0**-price.exponent, out=steps, dtype=np.float64, casting="same_kind")
        np.rint(steps, out=steps)
        np.clip(steps, -reach, reach, out=steps)

        if price.power == 1:
            np.absolute(steps, out=charges)
        else:
            np.multiply(steps, steps, out=charges)
        np.multiply(charges, price.rate, out=charges)
        np.ceil(charges, out=charges)
        np.minimum(charges, float(price.most), out=charges)

        np.less_equal(charges, left, out=pays)  # false for NaN, which adds and costs nothing
        mask[...] = pays
        np.negative(mask, out=mask)  # all bits for those who pay, none for others
        for numbers in (steps, charges):
            bits = numbers.view(np.int64)
            np.bitwise_and(bits, mask, out=bits)
        np.subtract(left, charges, out=after)
        return int(np.add.reduce(steps))  # exact: at most 2^16 people of 2^30 steps
