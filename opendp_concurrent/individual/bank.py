"""Ten million budgets: who can pay for a query, and what is left to them.

One double for each person holds a whole number of units below 2^53, so that sums, differences and
comparisons are exact. A pass over all of them reads what is left, and writes what is left after the
query to a second array; when it is over the two change places. So a query that fails on the way
changes nothing, and a charge is one rebinding.

Every person goes through the same operations, with masks instead of branches: nothing is skipped
for those who have nothing left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ReentrantLaunchError
from .price import UNITS, Price

CHUNK = 2**16  # people at a time: buffers stay in the cache, and Python is called seldom


class Bank:
    """What is left to each person. Secret, and not thread-safe.

    :param people: how many
    """

    __slots__ = ("_left", "_spare")

    def __init__(self, people: int) -> None:
        self._left: NDArray[np.float64] = np.full(people, float(UNITS))
        self._spare: NDArray[np.float64] | None = self._left.copy()

    def charge(self, values: Callable[[slice], NDArray[Any]], price: Price) -> int:
        """Charge those who can pay for their value; return the exact sum of theirs, in steps.

        Those whose charge is more than they have left are left out and keep what they have. What is
        left to a person depends on their own values and on the prices only.

        :param values: of the people in a slice, one number each; if it raises nothing is charged
        """
        if self._spare is None:  # asked by ``values``
            raise ReentrantLaunchError
        left, after, total = self._left, self._spare, 0
        try:
            self._spare = None
            buffers = _Buffers(min(CHUNK, len(left)))
            with np.errstate(all="ignore"):  # a warning would tell of a value
                for start in range(0, max(1, len(left)), CHUNK):  # asks even if there is nobody
                    part = slice(start, min(start + CHUNK, len(left)))
                    total += buffers.charge(values(part), left[part], after[part], price)
            self._left = after
        finally:
            self._spare = left if self._left is after else after
        return total


class _Buffers:
    """Room for one chunk's numbers."""

    __slots__ = ("charges", "mask", "pays", "steps")

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
        """Fill ``after``; return the sum of the steps of those who pay."""
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

        np.less_equal(charges, left, out=pays)  # false for NaN, who adds and pays nothing
        mask[...] = pays
        np.negative(mask, out=mask)  # all bits for those who pay, none for others
        for numbers in (steps, charges):
            bits = numbers.view(np.int64)
            np.bitwise_and(bits, mask, out=bits)
        np.subtract(left, charges, out=after)
        return int(np.add.reduce(steps))  # exact: at most 2^16 people of 2^30 steps
