"""The join of trade-off functions: the largest loss of the parallel parts of a composition.

``losses`` and ``parts`` are those of ``measures/joins.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from ..fdp.bounds import Array
from ..fdp.function import TradeoffFunction

_MOST_PRODUCTS = 64  # of trade-off functions, before those at one distance are joined
_SHOWN = 1 + 2.0**-32  # so far above, that rounding does not hide the order of functions
_LARGEST = 650.0  # e^ε is a double


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
