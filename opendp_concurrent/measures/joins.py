"""Joins: the largest composition of the losses of parallel parts, for each kind of distance.

``losses[j - 1]`` are the losses of the distinct parts at distance j. The result is at least every
composition of losses at distances that add up to ``len(losses)``, with at most one term for each of
the ``parts``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
_SHOWN = 1 + 2.0**-32  # so far above, that rounding does not hide the order of functions
_LARGEST = 650.0  # e^ε is a double


def join_numbers(losses: list[list[float]], parts: int, empty: Any = None) -> float:
    """Largest sum of at most ``parts`` losses, exact and then rounded up once.

    Any number of terms is taken in one pass, since a sum is found before it is needed; else a pass
    adds one term.

    :param empty: the accumulator in whose ``units`` losses add up; their plain sum if left out
    """
    total, empty = len(losses), ScalarSum() if empty is None else empty
    # as exact integers, in the units of the accumulator
    units = [empty.after(max(row)).units for row in losses]
    if None in units:
        return inf
    sums = [0] * (total + 1)
    unlimited = parts >= total
    for _ in range(1 if unlimited else parts):
        before = sums if unlimited else list(sums)
        for k in range(1, total + 1):
            sums[k] = max(sums[k], *map(add, reversed(before[:k]), units))
    return float(type(empty)(sums[total]).loss)


def join_curves(
    losses: list[list[Callable[[float], float]]], parts: int
) -> Callable[[float], float]:
    """The loss at each Rényi order."""

    def curve(alpha: float) -> float:
        if not number(alpha=alpha) > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        return join_numbers([[one(alpha) for one in row] for row in losses], parts)

    return curve


def join_tradeoffs(losses: list[list[TradeoffFunction]], parts: int) -> TradeoffFunction:
    """The join of all products."""
    rows = [largest(row) for row in losses]
    distances = list(partitions(len(rows), parts, len(rows)))
    if sum(prod(len(rows[j - 1]) for j in one) for one in distances) > _MOST_PRODUCTS:
        rows = [[join(row)] for row in rows]
    ways = (way for one in distances for way in product(*(rows[j - 1] for j in one)))
    return join([first.compose(*others) for first, *others in ways])


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
