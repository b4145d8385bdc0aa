"""Whether one product is certainly at most another: as little privacy loss at every ε.

h is convex in t = e^ε. To show h <= H on a cell, the convex h is compared with a piecewise linear
function below the convex H, at its kinks: H is above the extensions of its chords from both sides.
Cells that fail are divided. Beyond the last point h is 0, or at most the limit of H; or all of h is
a mixture of G_s shifted by at most B and H is that of G_r, s < r: then h/H falls from there on.

That is so since d ln δ/dε of G_μ is -1 / (R(a)/R(a+μ) - 1), a = ε/μ - μ/2, with Mills' ratio R, and
ln R(a)/R(a+μ) is the integral of m = 1/R - x from a to a + μ, where x/(x²+2) < m < 1/x [NIST DLMF,
7.8]. With σ = s²/2, ρ = r²/2 and X = ε - B > σ it remains

    (ε (ρ - σ) - B ρ) (ε - σ ρ / X) >= 2 r² σ,

and if that holds with both factors positive it holds for all larger ε and smaller B.

``False`` means: not shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from ..exact.rounding import to_units
from .bounds import UNIT, Array, Bounds
from .coarse import exact_above
from .factor import Factor
from .finite import Finite
from .laplace import Laplace
from .product import Product

Profile = Callable[[Array], Bounds]
_POINTS, _SLOW_POINTS = 400, 60  # first cells; where each is a closed form, an inversion
_PARTS, _DEPTH = 8, 4  # into how many parts a cell is divided, how often
_LEAST_CELL = 1e-9  # narrower ones are within rounding
_MOST_KINKS, _MOST_REACH = 6000, 600.0
_MOST_STEPS = 4000  # each 1 % further, to the end of a tail
_OUTCOMES = 240  # of a pair that stands for a product whose profile is not exact
_WIDTH = 1e-5  # of the bounds on a profile that is not


def is_at_most(one: Product, other: Product) -> bool:
    """Whether ``one`` is certainly at most ``other``."""
    if other.is_worst:
        return True
    whole = one, other
    one, other = without_common(one, other)
    if not one.squares and not one.factors:
        return True
    if _matched(one, other) or _is_bounded_by(one, other):
        return True
    if _compared_both_ways(one, other):
        return True
    # taking away what is common may leave an unbounded loss against a bounded one
    gaussian = Product(whole[1].squares, {})
    if whole[0].squares and gaussian.squares and _compared_both_ways(whole[0], gaussian):
        return True
    larger = with_gaussians(one)
    return larger != one and is_at_most(larger, other)


def with_gaussians(product: Product) -> Product:
    """A product that loses at least as much: Gaussians for factors that are known to be within."""
    squares, rest = product.squares, dict(product.factors)
    for factor, n in product.factors.items():
        if isinstance(factor, Finite) and factor.gaussian < inf:
            squares += n * to_units(factor.gaussian) ** 2
            del rest[factor]
    return Product(squares, rest)


def _compared_both_ways(one: Product, other: Product) -> bool:
    symmetric = is_symmetric(one) and is_symmetric(other)
    return _compared(one, other) and (symmetric or _compared(one.swapped(), other.swapped()))


def without_common(one: Product, other: Product) -> tuple[Product, Product]:
    """What is left when equal factors are taken from both."""
    squares = min(one.squares, other.squares)
    common = Counter(one.factors) & Counter(other.factors)
    return (
        Product(one.squares - squares, Counter(one.factors) - common),
        Product(other.squares - squares, Counter(other.factors) - common),
    )


def is_symmetric(product: Product) -> bool:
    """Whether every factor is its own swapped pair."""
    return all(not isinstance(one, Finite) or one.symmetric for one in product.factors)


def _matched(one: Product, other: Product) -> bool:
    """Whether each factor has its own larger one."""
    if one.squares > other.squares:
        return False
    free = Counter(other.factors)
    for factor, count in sorted(one.factors.items(), key=lambda item: -item[0].most):
        for candidate in sorted(free, key=lambda each: each.most):
            used = min(count, free[candidate])
            if used and single_at_most(factor, candidate):
                free[candidate] -= used
                count -= used
        if count:
            return False
    return True


def _is_bounded_by(one: Product, other: Product) -> bool:
    """Whether the losses of ``one`` are within those of a single randomized response [KOV15].

    Or the shifts of Laplace noise within that of one coordinate: ``conversions`` has the proof.
    """
    if other.squares or sum(other.factors.values()) != 1 or one.squares:
        return False
    (single,) = other.factors
    if isinstance(single, Laplace) and single.steps == inf:
        smooth = all(isinstance(each, Laplace) and each.steps == inf for each in one.factors)
        return smooth and one.most <= single.epsilon
    pair = _response(single)
    if pair is None:
        return False
    epsilon, delta = pair
    both = (one, one.swapped())
    return all(each.most <= epsilon and each.infinite.upper <= delta for each in both)


def single_at_most(one: Factor, other: Factor) -> bool:
    """Whether a factor is at most another, by their parameters."""
    if one == other:
        return True
    if isinstance(one, Laplace) and isinstance(other, Laplace):
        return one.steps == other.steps == inf and one.epsilon <= other.epsilon
    pair = _response(other)
    if pair is None:
        return False
    epsilon, delta = pair
    if isinstance(one, Laplace):
        return one.epsilon <= epsilon
    if isinstance(one, Finite):
        return (
            max(one.most, one.swapped().most) <= epsilon and max(one.infinite, one.never) <= delta
        )
    return False


def _response(factor: Factor) -> tuple[float, float] | None:
    """(ε, δ) of a randomized response."""
    if not isinstance(factor, Finite) or factor.loss_error or factor.slack:
        return None
    if factor.infinite != factor.never:
        return None
    if len(factor.losses) == 2 and factor.losses[0] == -factor.losses[1]:
        return float(factor.losses[1]), factor.infinite
    return (0.0, factor.infinite) if len(factor.losses) == 1 and not factor.losses[0] else None


def _compared(one: Product, other: Product) -> bool:
    """Whether h <= H for all ε >= 0."""
    exact = exact_above(one, _OUTCOMES)
    reach = None if exact is None else _reach(exact, other)
    if exact is None or reach is None or not reach < _MOST_REACH:
        return False
    one = exact
    if reach == 0.0:
        zero = np.zeros(1)
        return bool(one.profile(zero).upper[0] <= other.profile(zero).lower[0])
    atoms = other.atoms if not other.squares else None
    if atoms is not None and len(atoms.losses) <= _MOST_KINKS:
        return _is_below_outcomes(one, other, reach)
    points, depth = (_POINTS, _DEPTH) if other.is_exact else (_SLOW_POINTS, 0)
    return is_below(one.profile, partial(other.profile, tolerance=_WIDTH), reach, points, depth)


def _reach(one: Product, other: Product) -> float | None:
    """ε from which on h <= H is clear, if it holds there; None if that is nowhere."""
    if one.infinite.upper > other.infinite.lower:
        return None
    if one.most == inf and one.infinite.upper < other.infinite.lower:
        return float(one.epsilon(other.infinite.lower, 1e-3).upper)
    if one.most < inf:
        return max(one.most, 0.0)
    bounded = Product(0, one.factors).most
    if other.factors:
        return None
    if max(one.infinite.upper, one.swapped().infinite.upper) > 0.0:
        return None
    if bounded == inf or not one.squares < other.squares:
        return None
    return tail_from(bounded, one.mu, other.mu)


def tail_from(shift: float, s: float, r: float) -> float | None:
    """ε from which on the ratio of G_s, shifted by at most ``shift``, to G_r falls; s < r."""
    sigma, rho = s * s / 2, r * r / 2 * (1 - 4 * UNIT)
    if not rho > sigma * (1 + 4 * UNIT):
        return None
    epsilon = max(shift * rho / (rho - sigma), shift + sigma, rho) * (1 + 1e-9) + 1e-9
    for _ in range(_MOST_STEPS):
        if not epsilon < _MOST_REACH:
            break
        first = epsilon * (rho - sigma) - shift * rho
        x = epsilon - shift
        if x > sigma and first > 0 and epsilon > rho:
            second = epsilon - sigma * rho / x
            if second > 0 and first * second >= 2 * r * r * sigma * (1 + 1e-9):
                return epsilon
        epsilon = epsilon * 1.01 + 1e-6
    return None


def _is_below_outcomes(one: Product, other: Product, reach: float) -> bool:
    """H is linear in e^ε from 0 to its losses above: h is compared there, and h is convex."""
    atoms = other.atoms
    assert atoms is not None
    error = atoms.loss_error + 2 * UNIT * reach
    kinks = atoms.losses[(atoms.losses > 0.0) & (atoms.losses <= reach + error)]
    kinks = np.concatenate([[0.0], kinks, [max(reach, 0.0)]])
    # a loss is where it is up to an error: h just before it, H just behind it
    return bool(np.all(one.profile(kinks - error).upper <= other.profile(kinks + error).lower))


def is_below(one: Profile, other: Profile, reach: float, points: int, depth: int) -> bool:
    """Whether h <= H from 0 to ``reach``."""
    cell = max(reach / points, _LEAST_CELL)
    return _is_below(one, other, np.linspace(-2 * cell, reach + 2 * cell, points + 5), depth)


def _is_below(one: Profile, other: Profile, grid: Array, depth: int) -> bool:
    """Whether h <= H on the cells of ``grid``, without the first and the last two."""
    bounds = other(grid)
    kinks, below = lower_kinks(grid, bounds.lower, bounds.upper)
    own = one(grid[2:-2])
    if np.any(own.lower > bounds.upper[2:-2]):
        return False
    fails = ~(one(kinks[2:-2]).upper <= below[2:-2])
    above = ~(own.upper <= bounds.lower[2:-2])
    if np.any(above):
        return False  # what rounding does not tell apart
    if not np.any(fails):
        return True
    if depth == 0:
        return False
    for first, last in _runs(fails):
        left, right = grid[first + 2], grid[last + 3]
        cell = (grid[1] - grid[0]) / _PARTS
        parts = round((right - left) / cell)
        finer = np.linspace(left - 2 * cell, right + 2 * cell, parts + 5)
        if not _is_below(one, other, finer, depth - 1):
            return False
    return True


def _runs(marks: Array) -> list[tuple[int, int]]:
    """First and last index of each run of marks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks.astype(int), [0]])))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def lower_kinks(grid: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """One point in each cell, and what a convex function between ``low`` and ``high`` is at least.

    A function with kinks there and at the grid is below it: in each cell the convex function is
    above the extensions of the neighbouring chords, and those cross there. It never rises.
    """
    t = np.exp(grid)
    left, right = np.full(len(t) - 1, -inf), np.zeros(len(t) - 1)
    left[1:] = (low[1:-1] - high[:-2]) / (t[1:-1] - t[:-2])
    left[0] = (low[0] - 1.0) / t[0]  # from 1 at t = 0
    right[:-1] = np.minimum(0.0, (high[2:] - low[1:-1]) / (t[2:] - t[1:-1]))
    start, end, here, there = t[:-1], t[1:], low[:-1], low[1:]
    gap = there - right * end - here + left * start
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = np.where(left < right, gap / (left - right), (start + end) / 2)
    cross = np.clip(cross, start, end)
    one, two = here + left * (cross - start), there - right * (end - cross)
    slack = 16 * UNIT * (here + np.abs(left) * (cross + start) + np.abs(right) * (end + cross))
    kinks = np.log(cross)
    return kinks - 4 * UNIT * (1 + np.abs(kinks)), np.minimum(one, two) - slack
