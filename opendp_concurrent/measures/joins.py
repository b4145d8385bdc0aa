"""Joins: the largest composition of the losses of parallel parts, for each kind of distance.

``losses[j - 1]`` are the losses of the distinct parts at distance j. The result is at least every
composition of losses at distances that add up to ``len(losses)``, each of another part. ``parts``
has how many parts lose each element of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import add
from typing import Any

from ..arguments.checks import number
from ..errors import InvalidValueError
from ..sums.scalar_sum import ScalarSum

_MOST_STEPS = 2**22  # of a knapsack


def join_numbers(losses: list[list[float]], parts: Sequence[int], empty: Any = None) -> float:
    """Largest sum of losses of different parts, exact and then rounded up once.

    This is a knapsack: each part has at most one distance. If it were too much work, each part has
    the largest loss at each distance, which is an upper bound.

    :param empty: the accumulator in whose ``units`` losses add up; their plain sum if left out
    """
    total, empty = len(losses), ScalarSum() if empty is None else empty
    # as exact integers, in the units of the accumulator
    units = [[empty.after(loss).units for loss in row] for row in losses]
    if any(None in row for row in units):
        return inf
    copies = _copies(units, parts)
    if len(copies) * total**2 > _MOST_STEPS:
        units, copies = [[max(row)] for row in units], [0] * min(sum(parts), total)
    if len(set(copies)) == 1 and len(copies) >= total:  # one kind of part, enough of them
        found = _unlimited([row[copies[0]] for row in units])
    else:
        found = _knapsack(units, copies)
    return float(type(empty)(found).loss)


def _copies(units: list[list[int]], parts: Sequence[int]) -> list[int]:
    """Return the parts that count, each by the place of its losses in a row.

    At most as many parts as the distance have a loss. So a part that is not among that many with
    the largest losses at its distance can be exchanged for one of these that has none.
    """
    total, counted = len(units), set[int]()
    for row in units:
        left = total
        for place in sorted(range(len(row)), key=row.__getitem__, reverse=True):
            if left <= 0:
                break
            counted.add(place)
            left -= parts[place]
    return [place for place in sorted(counted) for _ in range(min(parts[place], total))]


def _unlimited(losses: list[int]) -> int:
    """Return the largest sum, with any number of parts: a sum is found before it is needed."""
    sums = [0]
    for k in range(1, len(losses) + 1):
        sums.append(max(map(add, reversed(sums), losses[:k])))
        sums[k] = max(sums[k], sums[k - 1])
    return sums[-1]


def _knapsack(units: list[list[int]], copies: list[int]) -> int:
    """Return the largest sum, with one distance for each of the parts."""
    sums = [0] * (len(units) + 1)
    for place in copies:
        own = [row[place] for row in units]
        before = list(sums)
        for k in range(1, len(sums)):
            sums[k] = max(sums[k], *map(add, reversed(before[:k]), own))
    return sums[-1]


def join_curves(
    losses: list[list[Callable[[float], float]]], parts: Sequence[int]
) -> Callable[[float], float]:
    """The loss at each Rényi order."""

    def curve(alpha: float) -> float:
        if not number(alpha=alpha) > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        return join_numbers([[one(alpha) for one in row] for row in losses], parts)

    return curve
