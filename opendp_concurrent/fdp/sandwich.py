"""Bounds on the profile of a product by two pairs with few losses: one below it, and one above.

A pair is a measure: P-masses at losses l, and at an infinite loss. Beside anything else that is
independent, its δ is the sum of the masses times G(e^-l), for some G >= 0 that is convex and falls.
So δ rises with each mass and with each loss; and by Jensen's inequality

* it rises if a mass is *spread* to two losses, such that Q-mass is kept, which is the sum of
  mass times e^-l: so the chords of a profile are above it;
* it falls if masses are *merged* at the loss that keeps their Q-mass;
* it rises if a mass becomes an infinite loss, and falls if a mass is dropped.

Products have all sums of losses. They are spread, or merged, to few losses; these are at s sinh(hk)
for whole k, so that cells are narrow near 0, and as wide as a part of the loss far out. What is
spread or merged in a cell moves the variance of the loss by at most the square of half its width.

Equal factors are multiplied by squaring, and the products of unequal ones form a tree. Rounding is
outward at each step: what is above only gets larger masses and losses, what is below smaller ones.
No sum has terms of different sign, so that small numbers keep their relative accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from math import asinh, floor, frexp, ldexp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .atoms import Atoms
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds
from .cells import Measure, measure
from .factor import Factor
from .search import certify

FINE, FINEST = 0.02, 0.0125  # h
_STEPS = (
    (0.4, 0.12),
    (0.05, 0.06),
    (0.01, 0.03),
)  # widths of δ, and the h with which they are about reached
_MANY, _QUICK = 32, 0.06  # factors from which on each product counts, and h for them
_FINER = 2.0**-0.25  # h of a product, over that of its parts
_FEW = 16  # products
_MOST_LOSSES = 2**12  # of a pair
_ALIGNED = 16  # ends of grids are multiples of this, so that few are different
_KEPT = 2**17  # sums of losses whose places are remembered
_LARGEST = 1e100  # loss
_SPARE = 1e-6  # part of δ that may be moved by cutting the ends
_LOST = 2.0**-1060  # what a product of masses may lose by underflow

Counted = Sequence[tuple[Factor, int]]


@dataclass(frozen=True)
class Grid:
    """The losses 2**exponent * sinh(step * k) for whole k from first to last."""

    step: float
    exponent: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class State:
    """A pair with few losses, increasing.

    :ivar grid: where the losses are, if it is above; else what has cells for them
    :ivar infinite: mass of an infinite loss
    :ivar variance: of the loss, about: a scale
    """

    grid: Grid
    losses: Array
    masses: Array
    infinite: float
    variance: float = 0.0


@dataclass(frozen=True, eq=False)
class Sandwich:
    """A pair that loses at most as much as a product, and one that loses at least as much."""

    below: Atoms
    above: Atoms

    def profile(self, epsilon: Array) -> Bounds:
        """Bounds on δ at each real ε."""
        return Bounds(self.below.profile(epsilon).lower, self.above.profile(epsilon).upper)

    def epsilon(self, delta: float, scale: float) -> Bounds:
        """Bounds on the least ε >= 0 with δ(ε) <= delta."""
        found = [
            certify(partial(_at, one), delta, one.epsilon_near(delta), scale)
            for one in (self.below, self.above)
        ]
        return Bounds(found[0].lower, found[1].upper)


def step_for(width: float, factors: Counted) -> float:
    """The step for bounds on δ of some relative width; a finer one where products are few."""
    if len(factors) > _MANY:
        return _QUICK
    few = sum(2 * n.bit_length() for _, n in factors) <= _FEW
    return next((step for least, step in _STEPS if width >= least), FINEST if few else FINE)


def _at(atoms: Atoms, epsilon: float) -> Bounds:
    bounds = atoms.profile(np.array([epsilon]))
    return Bounds(float(bounds.lower[0]), float(bounds.upper[0]))


def sandwich(factors: Counted, delta: float, step: float = FINE) -> Sandwich | None:
    """Pairs below and above a product, for δ near ``delta``; None if there are none.

    :param delta: above 0; has no influence on whether the bounds hold
    :param step: h of the losses; the width of the bounds is about its square
    """
    number = sum(n for _, n in factors)
    spare = _SPARE * delta / 16.0 ** (number.bit_length() // 4 + 1)  # the same for many numbers
    found = []
    for above in (False, True):
        whole = _multiplied(factors, step, spare, above)
        if whole is None:
            return None
        found.append(Atoms(whole.losses, whole.masses, whole.infinite))
    return Sandwich(*found)


def _multiplied(factors: Counted, step: float, spare: float, above: bool) -> State | None:
    """The product of powers: always the two with the least variance."""
    parts: list[tuple[float, int, State, int, float]] = []
    for factor, count in factors:
        for bit in range(count.bit_length()):
            power = _power(factor, bit, step, spare, above)
            if power is None:
                return None
            if count >> bit & 1:
                parts.append((power.variance, len(parts), power, 2**bit, step))
    heapify(parts)
    index = len(parts)
    while len(parts) > 1:
        (_, _, one, m, fine), (_, _, other, n, finer) = heappop(parts), heappop(parts)
        # few products are of many factors: there, small cells cost little
        fine = max(min(fine, finer) * _FINER, min(step, FINE))
        both = _times(one, other, fine, spare * (m + n), above)
        if both is None:
            return None
        index += 1
        heappush(parts, (both.variance, index, both, m + n, fine))
    return parts[0][2]


@lru_cache(maxsize=2**12)
def _power(factor: Factor, bit: int, step: float, spare: float, above: bool) -> State | None:
    """The product of 2^bit equal factors, by squaring; it has few losses, and is remembered."""
    if bit:
        half = _power(factor, bit - 1, step, spare, above)
        return None if half is None else _times(half, half, step, spare * 2.0**bit, above)
    one = measure(factor, spare, above)
    return None if one is None else _made(one, step, spare, above)


def _made(given: Measure, step: float, spare: float, above: bool) -> State | None:
    """The measure on a grid."""
    kept = given.masses > 0.0
    losses, masses = given.losses[kept], given.masses[kept]
    if not losses.size or not np.all(np.isfinite(losses)) or not np.all(np.isfinite(masses)):
        return None
    variance = _variance(losses, masses)
    grid = _grid(float(np.min(losses)), float(np.max(losses)), variance, step)
    if grid is None:
        return None
    if above:
        places = _places(losses, grid)
        made = _trimmed(_spread_to(grid, places, masses, given.infinite), spare)
    else:
        made = _merged(grid, losses, masses, given.infinite, spare)
    return replace(made, variance=variance)


def _times(one: State, other: State, step: float, spare: float, above: bool) -> State | None:
    """The product of two, on a new grid; None if it leaves the doubles."""
    variance = one.variance + other.variance
    if not one.losses.size or not other.losses.size:
        return None
    low, high = one.losses[0] + other.losses[0], one.losses[-1] + other.losses[-1]
    grid = _grid(float(low), float(high), variance, step)
    if grid is None:
        return None
    first, second = one.infinite, other.infinite
    sums = float(np.sum(one.masses)), float(np.sum(other.masses))
    infinite = first * (sums[1] + second) + second * sums[0]
    square = one is other
    masses = _of_all(np.multiply, one.masses, other.masses, square)
    if square:
        masses *= _pairs(len(one.masses)).number
    if not above:
        losses = _of_all(np.add, one.losses, other.losses, square)
        both = _merged(grid, losses, masses, infinite * (1 - 2**14 * UNIT), spare)
    else:
        few = masses.size <= _KEPT
        places = (_known_places if few else _places_of)(one.grid, other.grid, square, grid)
        both = _spread_to(grid, places, masses, infinite * (1 + 2**14 * UNIT))
        both.masses[-1] += masses.size * _LOST
        both = _trimmed(both, spare)
    return replace(both, variance=variance)


# --- grids ---------------------------------------------------------------------------------------


def _variance(losses: Array, masses: Array) -> float:
    """The smaller of two variances, under P and under Q."""
    found = []
    for weights in (masses, masses * np.exp(-np.maximum(losses, -600.0))):
        whole = float(np.sum(weights))
        middle = float(weights @ losses) / whole if whole > 0.0 else 0.0
        found.append(float(weights @ (losses - middle) ** 2) / whole if whole > 0.0 else 0.0)
    return min(found)


def _grid(low: float, high: float, variance: float, step: float) -> Grid | None:
    """A grid around an interval; cells near 0 have about half ``step`` standard deviations."""
    reach = max(abs(low), abs(high))
    low, high = low - 8 * UNIT * abs(low), high + 8 * UNIT * abs(high)  # sums are rounded
    if not reach < _LARGEST:
        return None
    least = max(sqrt(variance), 1e-9 * reach, 1e-280)
    exponent = frexp(least / 2)[1] - 1
    first, last = (asinh(ldexp(end, -exponent)) / step / _ALIGNED for end in (low, high))
    grid = Grid(step, exponent, _ALIGNED * floor(first - 1e-9), _ALIGNED * (floor(last + 1e-9) + 1))
    if not grid.last - grid.first < _MOST_LOSSES:
        return None
    ends = nodes(grid)
    return grid if ends[0] <= low and high <= ends[-1] else None


@lru_cache(maxsize=256)
def nodes(grid: Grid) -> Array:
    """The losses."""
    whole = np.arange(grid.first, grid.last + 1)
    found: Array = np.ldexp(np.sinh(grid.step * whole), grid.exponent)
    found.flags.writeable = False
    return found


class _Pairs(NamedTuple):
    """Two of some outcomes, in one order only; and the number of orders."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    number: Array


@lru_cache(maxsize=8)
def _pairs(size: int) -> _Pairs:
    one, other = np.triu_indices(size)
    return _Pairs(one, other, np.where(one == other, 1.0, 2.0))


def _of_all(how: np.ufunc, one: Array, other: Array, square: bool) -> Array:
    """The sums, or products, of one number each; of a square, those in one order."""
    if square:
        pairs = _pairs(len(one))
        found: Array = how(one[pairs.one], one[pairs.other])
        return found
    table: Array = how.outer(one, other)
    return table.ravel()


def _added(cells: NDArray[np.int64], masses: Array, size: int) -> Array:
    """The sum of the masses in each cell; terms are added one by one."""
    return np.bincount(cells, masses, size).astype(np.float64)


# --- above: a mass is spread to the ends of its cell ---------------------------------------------


class Places(NamedTuple):
    """Cells of losses, and the shares of their masses that go to the right ends.

    :ivar most: how many losses a cell has, at most
    """

    cells: NDArray[np.int64]
    shares: Array
    most: int


def _places(losses: Array, grid: Grid) -> Places:
    """With Q-mass kept: the share is (1 - e^(a - l)) / (1 - e^(a - b)) in the cell from a to b."""
    ends = nodes(grid)
    cells = np.searchsorted(ends, losses, side="right") - 1
    np.clip(cells, 0, len(ends) - 2, out=cells)
    whole = np.expm1(ends[:-1] - ends[1:])
    shares = np.clip(np.expm1(ends[cells] - losses) / whole[cells], 0.0, 1.0)
    most = int(np.max(np.bincount(cells)))
    return Places(cells, shares, 2 * most)


def _places_of(one: Grid, other: Grid, square: bool, grid: Grid) -> Places:
    """Of all sums of two losses, each rounded up."""
    exact = _of_all(np.add, nodes(one), nodes(other), square)
    return _places(exact + 2 * UNIT * np.abs(exact), grid)


_known_places = lru_cache(maxsize=64)(_places_of)


def _spread_to(grid: Grid, places: Places, masses: Array, infinite: float) -> State:
    """The masses at the ends of cells, each rounded up."""
    size = grid.last - grid.first + 1
    right = masses * places.shares
    rounding = (2 * ELEMENTARY + 8 * UNIT) * _added(places.cells, masses, size)
    found = _added(places.cells + 1, right, size)
    found += _added(places.cells, masses - right, size)
    found += rounding
    found[1:] += rounding[:-1]
    found *= 1 + (places.most + 16) * UNIT
    return State(grid, nodes(grid), found, infinite)


def _trimmed(state: State, spare: float) -> State:
    """Without the losses that have next to no mass: those above count as infinite."""
    masses, size = state.masses, len(state.masses)
    above = np.cumsum(masses[::-1])
    top = int(np.searchsorted(above, spare, side="right"))
    start = int(np.searchsorted(np.cumsum(masses), spare, side="right"))
    top = min(top, size - 2) // _ALIGNED * _ALIGNED
    start = min(start, size - 2 - top) // _ALIGNED * _ALIGNED
    kept = masses[start : size - top].copy()
    kept[0] += float(np.sum(masses[:start])) * (1 + size * UNIT)
    infinite = (state.infinite + (float(above[top - 1]) if top else 0.0)) * (1 + size * UNIT)
    grid = replace(state.grid, first=state.grid.first + start, last=state.grid.last - top)
    return State(grid, nodes(grid), kept, infinite)


# --- below: the masses of a cell are merged ------------------------------------------------------


def _merged(grid: Grid, losses: Array, masses: Array, infinite: float, spare: float) -> State:
    """One loss for each cell, and its mass, both rounded down."""
    ends = nodes(grid)
    cells = np.searchsorted(ends, losses, side="right") - 1
    np.clip(cells, 0, len(ends) - 2, out=cells)
    middle = (ends[1:] + ends[:-1]) / 2
    size = len(middle)
    moved = masses * np.expm1(middle[cells] - losses)
    number = np.bincount(cells, minlength=size)
    mass, shift = _added(cells, masses, size), _added(cells, moved, size)
    error = _added(cells, np.abs(moved), size) * (2 * number * UNIT + 2 * ELEMENTARY)
    kept = mass > TINY
    above, below = np.cumsum(mass[::-1])[::-1], np.cumsum(mass)
    kept &= (above > spare) & (below > spare)
    mass, size_of = mass[kept], np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))[kept]
    ratio = (shift[kept] + error[kept]) / mass
    ratio += np.abs(ratio) * (2 * number[kept] + 8) * UNIT
    moves = np.log1p(ratio)
    found = middle[kept] - moves - 2 * ELEMENTARY * np.abs(moves) - 8 * UNIT * size_of
    mass = mass * (1 - (number[kept] + 8) * UNIT)
    finite = np.isfinite(found)
    return State(grid, found[finite], mass[finite], infinite)
