"""The privacy loss of a parallel composition, from the total distance of the parts.

Let neighbours have parts at distances k_1, k_2, ... that add up to at most k, and let e(j) be the
join of the measurements' losses at j: the least loss that is at least all of them. The parts at
distance 0 answer alike. So the others compose, with losses e(k_1), e(k_2), ..., and the loss is at
most

    F(k) = join of e(k_1) ⊕ e(k_2) ⊕ ...  over all k_1 + k_2 + ... = k, at most one term a part.

A loss at j bounds all distances up to j, so that sums below k need no terms of their own. F(1) is
e(1), the maximum over the parts, and needs no composition theorem.

Numbers and pairs are joined by component, Rényi curves by order, (ρ, ω) with the least ω.
Trade-off functions: if none of them is below all others, by the larger δ at each ε, that is, by
the convex envelope of their minimum, with chords between points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from math import inf, prod
from operator import add
from typing import Any

import numpy as np
from opendp.mod import Measurement

from ..checks import number
from ..errors import InvalidValueError, PrivacyMapError, UnsupportedMeasureError
from ..fdp.bounds import Array
from ..fdp.function import TradeoffFunction
from ..measures import Composability, CompositionMeasure
from ..measures.distances import TruncatedConcentrated
from ..measures.families import GAUSSIAN, TRADEOFF, TRUNCATED
from ..measures.sums.scalar_sum import ScalarSum
from ..measures.sums.square_sum import SquareSum
from ..queryables.offer import MeasurementPrice

MOST, MOST_OF_CURVES, MOST_OF_TRADEOFFS = 256, 64, 4  # total distances
_MOST_PRODUCTS = 64  # of trade-off functions, before those at one distance are joined
_SHOWN = 1 + 2.0**-32  # so far above, that rounding does not hide the order of functions
_LARGEST = 650.0  # e^ε is a double


class ParallelLoss:
    """Losses of a parallel composition by total distance.

    Maps that may change are read again each time.

    :param measurements: the measurement of each part, by its key
    """

    __slots__ = ("_measure", "_parts", "_prices", "_seen")

    def __init__(
        self, measure: CompositionMeasure, measurements: Mapping[Any, Measurement]
    ) -> None:
        self._measure, self._parts = measure, len(measurements)
        distinct: dict[int, tuple[Any, Measurement]] = {}
        for key, one in measurements.items():
            distinct.setdefault(id(one), (key, one))
        self._prices = [(key, MeasurementPrice(one, measure)) for key, one in distinct.values()]
        self._seen: dict[int, Any] = {}

    def at(self, total: int) -> Any:
        """Return the loss for parts whose distances add up to ``total``."""
        known = self._seen.get(total)
        if known is not None:
            return known
        prices = [(key, price.again()) for key, price in self._prices]
        loss = self._loss(total, prices) if total else self._measure.zero
        if all(price.fixed for _, price in prices):
            self._seen[total] = loss
        return loss

    def _loss(self, total: int, prices: list[tuple[Any, MeasurementPrice]]) -> Any:
        measure, parts = self._measure, self._parts
        if measure.composability is Composability.SEQUENTIAL and min(total, parts) > 1:
            raise UnsupportedMeasureError(
                f"up to {min(total, parts)} parts differ between neighbours, and parts are asked "
                f"in any order, which is not known to compose under {measure.name}: "
                f"{measure.reason}; at total distance 1 the loss is the maximum over the parts"
            )
        most = MOST
        if callable(measure.zero) or measure.family == TRADEOFF:
            most = MOST_OF_CURVES if callable(measure.zero) else MOST_OF_TRADEOFFS
        if total > most:
            raise InvalidValueError(
                f"the distances of the parts add up to {total}, which must be at most {most} "
                f"under {measure.name}; pass a smaller d_in"
            )
        # losses[j - 1] are those of the distinct measurements at j
        losses = [[self._read(*price, j) for price in prices] for j in range(1, total + 1)]
        return measure.validate("d_out", _joined(measure, losses, parts))

    def _read(self, key: Any, price: MeasurementPrice, distance: int) -> Any:
        try:
            return price.at(distance)
        except PrivacyMapError as error:
            raise PrivacyMapError(
                distance, f"that of measurements[{key!r}] is needed there, and {error.reason}"
            ) from error


def _joined(measure: CompositionMeasure, losses: list[list[Any]], parts: int) -> Any:
    if measure.family == TRADEOFF:
        return _tradeoff(losses, parts)
    if measure.family == TRUNCATED:
        rho = _number([[loss.rho for loss in row] for row in losses], parts)
        return TruncatedConcentrated(rho, min(loss.omega for row in losses for loss in row))
    if measure.family == GAUSSIAN:
        return _number(losses, parts, SquareSum())
    if callable(measure.zero):
        return _curve(losses, parts)
    if isinstance(measure.zero, tuple):
        first = [[loss[0] for loss in row] for row in losses]
        second = [[loss[1] for loss in row] for row in losses]
        return _number(first, parts), _number(second, parts)
    return _number(losses, parts)


def _number(losses: list[list[float]], parts: int, start: Any = None) -> float:
    """Largest sum of at most ``parts`` losses, exact and then rounded up once.

    Any number of terms is taken in one pass, since a sum is found before it is needed; else a pass
    adds one term.
    """
    total, empty = len(losses), ScalarSum() if start is None else start
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


def _curve(losses: list[list[Callable[[float], float]]], parts: int) -> Callable[[float], float]:
    """The loss at each Rényi order."""

    def curve(alpha: float) -> float:
        if not number(alpha=alpha) > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        return _number([[one(alpha) for one in row] for row in losses], parts)

    return curve


def _tradeoff(losses: list[list[TradeoffFunction]], parts: int) -> TradeoffFunction:
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
