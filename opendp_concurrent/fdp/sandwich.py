"""Bounds on the profile of a product by two pairs with few losses: one below it, and one above.

A pair is a measure: P-masses at losses l, and at an infinite loss. Beside anything else that is
independent, its δ is the sum of the masses times G(e^-l), for some G >= 0 that is convex and falls.
So δ rises with each mass and with each loss; and by Jensen's inequality

* it rises if a mass is *spread* to two losses, such that Q-mass is kept, which is the sum of
  mass times e^-l: so the chords of a profile are above it;
* it falls if masses are *merged* at the loss that keeps their Q-mass;
* it rises if a mass becomes an infinite loss, and falls if a mass is dropped.

Products have all sums of losses. They are spread, or merged, to few losses; these are at
m + s sinh(hk) for whole k, with about the mean m and the standard deviation s of the loss. So cells
are narrow near the mean, and as wide as a part of the distance far out. What is spread or merged in
a cell moves the variance of the loss by at most the square of half its width.

Equal factors are multiplied by squaring, and the products of unequal ones form a tree. Rounding is
outward at each step: what is above only gets larger masses and losses, what is below smaller ones.
No sum has terms of different sign, so that small numbers keep their relative accuracy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import asinh, floor, frexp, ldexp, sqrt

import numpy as np
from numpy.typing import NDArray

from ..numerics import double_up
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds
from .exact import Atoms
from .finite import Finite, response, without_tiny_masses
from .noise import LEAST_EPSILON, Factor, Laplace, Subsampled, above, below, laplace_cells

STEPS = (0.08, 0.035, 0.018, 0.008)  # h, each where the ones before did not do
_ROUGH = 0.05  # width from which on the first one may do
_MANY = 32  # factors from which on each product counts
_FINER = 2.0**-0.25  # h of a product, over that of its parts
_FINE = 0.02  # it is no finer than this, or than the first h
_MOST_LOSSES = 1536  # of a pair: more take long
_LARGEST = 1e100  # loss
_SPARE = 1e-6  # part of δ that may be moved by cutting the ends
_DOUBLINGS = 60  # of a scale, up to ε
_CELL = 0.08  # of pairs that are inverted, in standard deviations or scales
_LOST = 2.0**-1060  # what a product of masses may lose by underflow

Counted = Sequence[tuple[Factor, int]]


@dataclass(frozen=True)
class Grid:
    """The losses middle + 2**exponent * sinh(step * k) for whole k from first to last."""

    step: float
    exponent: int
    first: int
    last: int
    middle: float


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

    @property
    def mean(self) -> float:
        """The mean of the finite losses, about: where cells are narrow."""
        whole = float(np.sum(self.masses))
        return float(self.masses @ self.losses) / whole if whole > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Sandwich:
    """A pair that loses at most as much as a product, and one that loses at least as much."""

    below: Atoms
    above: Atoms

    def profile(self, epsilon: Array, mu: float = 0.0) -> Bounds:
        """Bounds on δ at each real ε, beside Gaussian noise of ``mu``."""
        return Bounds(self.below.profile(epsilon, mu).lower, self.above.profile(epsilon, mu).upper)

    def at(self, epsilon: float, mu: float = 0.0) -> Bounds:
        """Bounds on δ at one ε."""
        return Bounds(*map(float, self.profile(np.array(epsilon), mu)))


def steps_for(width: float, kinds: int) -> tuple[float, ...]:
    """The steps to try, one after the other, until a bracket has some relative width.

    :param kinds: number of different factors
    """
    return STEPS if width >= _ROUGH or kinds > _MANY else STEPS[1:]


def sandwich(factors: Counted, delta: float, step: float) -> Sandwich | None:
    """Pairs below and above a product, for δ near ``delta``; None if there are none.

    :param delta: above 0; has no influence on whether the bounds hold
    :param step: h of the losses; the width of the bounds is about its square
    """
    number = sum(n for _, n in factors)
    spare = _SPARE * delta / 16.0 ** (number.bit_length() // 4 + 1)  # the same for many numbers
    found = []
    for is_above in (False, True):
        whole = _multiplied(factors, step, spare, is_above)
        if whole is None:
            return None
        found.append(Atoms(whole.losses, whole.masses, whole.infinite))
    return Sandwich(*found)


def _multiplied(factors: Counted, step: float, spare: float, is_above: bool) -> State | None:
    """The product of powers: always the two with the least variance."""
    parts: list[tuple[float, int, State, int, float]] = []
    for factor, count in factors:
        for bit in range(count.bit_length()):
            power = _power(factor, bit, step, spare, is_above)
            if power is None:
                return None
            if count >> bit & 1:
                parts.append((power.variance, len(parts), power, 2**bit, step))
    heapify(parts)
    index = len(parts)
    while len(parts) > 1:
        (_, _, one, m, fine), (_, _, other, n, finer) = heappop(parts), heappop(parts)
        # few products are of many factors: there, small cells cost little
        fine = max(min(fine, finer) * _FINER, min(step, _FINE))
        both = _times(one, other, fine, spare * (m + n), is_above)
        if both is None:
            return None
        index += 1
        heappush(parts, (both.variance, index, both, m + n, fine))
    return parts[0][2]


@lru_cache(maxsize=2**12)
def _power(factor: Factor, bit: int, step: float, spare: float, is_above: bool) -> State | None:
    """The product of 2^bit equal factors, by squaring; it has few losses, and is remembered."""
    if bit:
        half = _power(factor, bit - 1, step, spare, is_above)
        return None if half is None else _times(half, half, step, spare * 2.0**bit, is_above)
    one = measure(factor, spare, is_above)
    return None if one is None else _made(one, step, spare, is_above)


@lru_cache(maxsize=2**12)
def pair_of(noise: Subsampled, tail: float, is_above: bool) -> Finite | None:
    """A finite pair, to be inverted, that loses at least as much as the noise, or at most.

    :return: None if there are no cells. Masses that are rounded outward need not add up to 1
    """
    given = measure(noise, tail, is_above, _CELL)
    if given is None:
        return None
    losses, masses, lost = without_tiny_masses(given.losses, given.masses)
    if not losses.size:
        return None
    infinite = double_up(Fraction(given.infinite) + Fraction(lost)) if is_above else 0.0
    return Finite(losses, masses, min(1.0, infinite), 1.0, 2 * UNIT)


def measure(factor: Factor, tail: float, is_above: bool, cell: float = 0.0) -> Atoms | None:
    """A pair that loses at least as much as the factor, or at most; None if none is known.

    :param tail: P-mass that may count as infinite loss
    :param cell: width of the cells of sampled noise; by default they are narrow
    """
    if isinstance(factor, Finite):
        return _of_finite(factor, is_above)
    if isinstance(factor, Laplace) and factor.epsilon <= LEAST_EPSILON:
        return _of_finite(response(factor.epsilon if is_above else 0.0), is_above)
    rate, removed = 1.0, True
    if isinstance(factor, Subsampled):
        noise, rate, removed = factor.cells(tail, cell), factor.rate, factor.unit == "removed"
    else:
        assert isinstance(factor, Laplace)
        noise = laplace_cells(factor.epsilon, factor.steps)
    return None if noise is None else (above if is_above else below)(noise, rate, removed)


def _of_finite(factor: Finite, is_above: bool) -> Atoms | None:
    """The pair itself, moved by its errors."""
    if not factor.mass_error < 0.5:
        return None
    side = 1 if is_above else -1
    shift = side * (factor.loss_error + 2 * UNIT * np.abs(factor.losses))
    error = factor.mass_error + 4 * UNIT
    least = max(0.0, factor.infinite * (1 - 4 * error) - factor.slack)
    masses = factor.masses * (1 + side * error)
    return Atoms(factor.losses + shift, masses, factor.infinite if is_above else least)


def _made(given: Atoms, step: float, spare: float, is_above: bool) -> State | None:
    """The measure on a grid."""
    kept = given.masses > 0.0
    losses, masses = given.losses[kept], given.masses[kept]
    if not losses.size or not np.all(np.isfinite(losses)) or not np.all(np.isfinite(masses)):
        return None
    variance, middle = _variance(losses, masses), float(masses @ losses) / float(np.sum(masses))
    grid = _grid(float(np.min(losses)), float(np.max(losses)), middle, variance, step)
    if grid is None:
        return None
    place = _spread_to if is_above else _merged
    return replace(place(grid, losses, masses, given.infinite, spare), variance=variance)


def _times(one: State, other: State, step: float, spare: float, is_above: bool) -> State | None:
    """The product of two, on a new grid; None if it leaves the doubles."""
    if not one.losses.size or not other.losses.size:
        return None
    variance, middle = one.variance + other.variance, one.mean + other.mean
    low, high = one.losses[0] + other.losses[0], one.losses[-1] + other.losses[-1]
    grid = _grid(float(low), float(high), middle, variance, step)
    if grid is None:
        return None
    first, second = one.infinite, other.infinite
    sums = float(np.sum(one.masses)), float(np.sum(other.masses))
    infinite = first * (sums[1] + second) + second * sums[0]
    if one is other:
        left, right, orders = _pairs(len(one.masses))
        masses = one.masses[left] * one.masses[right] * orders
        losses = one.losses[left] + one.losses[right]
    else:
        masses = np.multiply.outer(one.masses, other.masses).ravel()
        losses = np.add.outer(one.losses, other.losses).ravel()
    if is_above:
        rounded = losses + 2 * UNIT * np.abs(losses)
        lost = masses.size * _LOST
        found = _spread_to(grid, rounded, masses, infinite * (1 + 2**14 * UNIT), spare, lost)
    else:
        found = _merged(grid, losses, masses, infinite * (1 - 2**14 * UNIT), spare)
    return replace(found, variance=variance)


# --- grids ---------------------------------------------------------------------------------------


def _variance(losses: Array, masses: Array) -> float:
    """The smaller of two variances, under P and under Q."""
    found = []
    for weights in (masses, masses * np.exp(-np.maximum(losses, -600.0))):
        whole = float(np.sum(weights))
        middle = float(weights @ losses) / whole if whole > 0.0 else 0.0
        found.append(float(weights @ (losses - middle) ** 2) / whole if whole > 0.0 else 0.0)
    return min(found)


def _grid(low: float, high: float, middle: float, variance: float, step: float) -> Grid | None:
    """A grid around an interval; cells near the middle have about ``step`` standard deviations."""
    reach = max(abs(low), abs(high))
    low, high = low - 8 * UNIT * abs(low), high + 8 * UNIT * abs(high)  # sums are rounded
    if not reach < _LARGEST:
        return None
    exponent = frexp(max(sqrt(variance), 1e-9 * reach, 1e-280))[1] - 1
    first, last = (asinh(ldexp(end - middle, -exponent)) / step for end in (low, high))
    grid = Grid(step, exponent, floor(first) - 1, floor(last) + 2, middle)
    if not grid.last - grid.first < _MOST_LOSSES:
        return None
    ends = nodes(grid)
    return grid if ends[0] <= low and high <= ends[-1] else None


@lru_cache(maxsize=256)
def nodes(grid: Grid) -> Array:
    """The losses."""
    whole = np.arange(grid.first, grid.last + 1)
    found: Array = grid.middle + np.ldexp(np.sinh(grid.step * whole), grid.exponent)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=8)
def _pairs(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Two of some outcomes, in one order only; and the number of orders."""
    one, other = np.triu_indices(size)
    return one, other, np.where(one == other, 1.0, 2.0)


def _added(cells: NDArray[np.int64], masses: Array, size: int) -> Array:
    """The sum of the masses in each cell; terms are added one by one."""
    return np.bincount(cells, masses, size).astype(np.float64)


# --- above: a mass is spread to the ends of its cell ---------------------------------------------


def _spread_to(
    grid: Grid, losses: Array, masses: Array, infinite: float, spare: float, lost: float = 0.0
) -> State:
    """The masses at the ends of cells, each rounded up, with Q-masses kept.

    The share of the right end is (1 - e^(a - l)) / (1 - e^(a - b)) in the cell from a to b. The
    largest losses of next to no mass count as infinite, and the smallest move up.

    :param lost: what masses may lack by underflow
    """
    ends, size = nodes(grid), grid.last - grid.first + 1
    cells = np.searchsorted(ends, losses, side="right") - 1
    np.clip(cells, 0, size - 2, out=cells)
    whole = np.expm1(ends[:-1] - ends[1:])
    right = masses * np.clip(np.expm1(ends[cells] - losses) / whole[cells], 0.0, 1.0)
    rounding = (2 * ELEMENTARY + 8 * UNIT) * _added(cells, masses, size)
    found = _added(cells + 1, right, size)
    found += _added(cells, masses - right, size)
    found += rounding
    found[1:] += rounding[:-1]
    found *= 1 + (2 * int(np.max(np.bincount(cells))) + 16) * UNIT
    found[-1] += lost
    above = np.cumsum(found[::-1])
    top = min(int(np.searchsorted(above, spare, side="right")), size - 2)
    start = int(np.searchsorted(np.cumsum(found), spare, side="right"))
    start = min(start, size - 2 - top)
    kept = found[start : size - top].copy()
    kept[0] += float(np.sum(found[:start])) * (1 + size * UNIT)
    infinite = (infinite + (float(above[top - 1]) if top else 0.0)) * (1 + size * UNIT)
    return State(grid, ends[start : size - top], kept, infinite)


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
    order = np.argsort(found, kind="stable")  # rounding may exchange tiny losses
    order = order[np.isfinite(found[order])]
    return State(grid, found[order], mass[order], infinite)
