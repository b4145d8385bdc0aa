"""Joins: the largest composition of the losses of parallel parts, for each kind of distance.

``losses[j - 1]`` are the losses of the distinct parts at distance j. The result is at least every
composition of losses at distances that add up to ``len(losses)``, each of another part. ``parts``
has how many parts lose each element of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import inf, prod
from operator import add
from typing import Any

import numpy as np

from ..checks import number
from ..errors import InvalidValueError
from ..fdp.bounds import Array
from ..fdp.function import TradeoffFunction
from .sums.scalar_sum import ScalarSum

_MOST_PRODUCTS = 64  # of trade-off functions, before those at one distance are joined
_MOST_STEPS = 2**22  # of a knapsack
_SHOWN = 1 + 2.0**-32  # so far above, that rounding does not hide the order of functions
_LARGEST = 650.0  # e^ε is a double


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


def join_tradeoffs(losses: list[list[TradeoffFunction]], parts: Sequence[int]) -> TradeoffFunction:
    """The join of all products of functions of different parts.

    If there are too many, of all products of the functions at each distance, of whatever parts.
    """
    total, places = len(losses), range(len(parts))
    distances = list(partitions(total, sum(parts), total))
    if sum(len(places) ** len(one) for one in distances) <= _MOST_PRODUCTS:
        ways = {
            tuple(sorted(zip(one, choice, strict=True)))
            for one in distances
            for choice in product(places, repeat=len(one))
            if all(choice.count(place) <= parts[place] for place in choice)
        }
        found = [[losses[j - 1][place] for j, place in way] for way in sorted(ways)]
    else:
        rows = [largest(row) for row in losses]
        if sum(prod(len(rows[j - 1]) for j in one) for one in distances) > _MOST_PRODUCTS:
            rows = [[join(row)] for row in rows]
        found = [list(w) for one in distances for w in product(*(rows[j - 1] for j in one))]
    return join([first.compose(*others) for first, *others in found])


def partitions(total: int, terms: int, most: int) -> Iterator[tuple[int, ...]]:
    """Sums of ``total``, of at most ``terms`` positive integers, each at most ``most``, falling."""
    if total == 0:
        yield ()
    elif terms:
        for first in range(min(total, most), 0, -1):
            for rest in partitions(total - first, terms - 1, first):
                yield first, *rest


def largest(functions: Iterable[TradeoffFunction]) -> list[TradeoffFunction]:
    """Those that are not shown to be at most another one."""
    kept: list[TradeoffFunction] = []
    # what costs less affinity is at most the others, or at none
    for one in sorted(dict.fromkeys(functions), key=lambda one: -one.affinity_cost):
        if not any(one <= other for other in kept):
            kept.append(one)
    return kept


def join(functions: Iterable[TradeoffFunction]) -> TradeoffFunction:
    """A trade-off function that is below all, close to the largest convex one that is."""
    kept = largest(functions)
    if len(kept) == 1:
        return kept[0]
    both = list(dict.fromkeys(one for each in kept for one in (each, each.inverse())))

    def delta(points: Array) -> Array:
        above: Array = np.max([one.delta(points) for one in both], axis=0) * _SHOWN
        return np.minimum(1.0, above)

    wide = np.geomspace(2.0**-10, _LARGEST, 120)
    on_wide = delta(wide)
    body, tail = (wide[on_wide <= max(on_wide[-1], rest)][0] for rest in (1e-12, 1e-30))
    kinks = [one.epsilon(0.0) for one in both]  # the largest loss
    grids = (
        np.linspace(0.0, body, 240),
        np.geomspace(body / 1e4, body, 60),
        np.linspace(body, tail, 30),
        [kink for kink in kinks if kink < tail],
    )
    points = np.unique(np.concatenate(grids))
    deltas = np.minimum.accumulate(delta(points))
    return TradeoffFunction.from_profile(points.tolist(), deltas.tolist())
