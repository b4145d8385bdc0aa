"""How far one unit moves C x, for a lower triangular Toeplitz matrix C, if it has several items.

A unit has at most k items, at least b steps apart, each of size at most 1. Let the first column c
of C be at least 0 and never rise. Then C x moves by at most || Σ_{j<k} shift^{jb} c ||, cut after
T steps [KL24]: the inner product of columns i < j is Σ_{t < T-j} c_t c_{t+j-i}, is at least 0, and
falls in j and in j - i. The s-th item is at (s-1) b or later, and two of them are at least as far
apart as their numbers tell, so each inner product is largest for items at 0, b, 2b, ... For a
column that rises somewhere this is false: c = 1, 0.2, 0.9 has 5.5 and not 4.46 (k = 2, b = 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..errors import InvalidValueError

SUMMED = 2**21  # steps that are summed one by one


@dataclass(frozen=True)  # without slots: OpenDP sets an attribute on what a metric carries
class Participations:
    """What a unit contributes to a stream.

    :ivar most: largest number of its items
    :ivar apart: least distance of two of them, in steps
    """

    most: int = 1
    apart: int = 1

    def within(self, steps: int) -> int:
        """Return the largest number of its items in so many steps."""
        return min(self.most, -(-steps // self.apart))


ONCE = Participations()


def never_rises(column: Sequence[int]) -> bool:
    """Return whether the formula holds for a column."""
    return all(one >= other for one, other in pairwise((*column, 0)))


def spaced_square(column: Sequence[int], steps: int, unit: Participations) -> int:
    """Return the squared norm of the largest move of C x within ``steps``.

    It is exact, except for more steps than ``SUMMED``: then the last items are not cut.

    :param column: c, integers that never rise; zeros follow
    """
    if not never_rises(column):
        raise InvalidValueError("column must never rise, and be at least 0")
    bands, count = len(column), unit.within(steps)
    if steps <= SUMMED:
        return _summed(column, steps, count, unit.apart)
    apart = min(unit.apart, bands)  # columns farther apart are orthogonal
    few = -(-bands // apart)  # copies of c that overlap; each later one adds the same
    if count <= few:
        return _summed(column, (count - 1) * apart + bands, count, apart)
    least, more = (
        _summed(column, (size - 1) * apart + bands, size, apart) for size in (few, few + 1)
    )
    return least + (count - few) * (more - least)


def _summed(column: Sequence[int], steps: int, count: int, apart: int) -> int:
    """Return the squared norm of the first steps of c + shift^b c + ..., with ``count`` terms."""
    sums, total, span = [0] * steps, 0, count * apart
    for step in range(steps):
        value = column[step] if step < len(column) else 0
        if step >= apart:
            value += sums[step - apart]
        if span <= step < span + len(column):
            value -= column[step - span]
        sums[step] = value
        total += value * value
    return total
