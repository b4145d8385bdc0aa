"""Random allocation: each unit takes part in one of t rounds, drawn uniformly and independently.

Rounds add Gaussian noise of standard deviation σ to sums in which a unit has norm at most 1. With
and without the unit, all t rounds of an epoch are a postprocessing of z ~ P and z ~ Q, with
P = (1/t) Σ N(e_i, σ²I) and Q = N(0, σ²I), also if a round depends on the answers before it: fix the
allocation of the others, which has the same law either way; round i is its base + v_i z_i + noise
N(0, σ²(I - v_i v_iᵀ)), where the base and v_i depend on the answers before it [CGHLKKMSZ25].

The ratio of the densities is A = (1/t) Σ R_i, with independent ln R_i ~ N(-1/(2σ²), 1/σ²) under Q.
So the profiles are E_Q[(A - e^ε)₊] if the unit is removed, and E_Q[(1 - e^ε A)₊] if it is added.
Both are convex in A, so both rise if a mass is spread to two values that keep its mean. As in
``sandwich.py``, the law of R is spread to the ends of cells, and the sums of two laws to a grid
m + s sinh(hk) around their mean, with finer cells near 0. The first profile rises by at most their
mean if values become smaller, and the second one by at most their mass if values become larger: so
ends are cut. Masses are rounded up, and values have a relative error.

Profiles are also at most those of Gaussian noise without allocation, by joint convexity.
"""

from __future__ import annotations

from functools import lru_cache
from math import asinh, expm1, log, sqrt
from typing import NamedTuple

import numpy as np

from .bounds import TINY, UNIT, Array
from .cells import gaussian_cells, spread
from .finite import Finite
from .gaussian import gaussian_profile
from .shapes import described
from .vertices import from_vertices

LEAST_SIGMA, MOST_SIGMA, MOST_BATCHES = 0.5, 100.0, 10**5
_CELLS, _STEP, _PART = 1200, 0.01, 0.03  # of R, h, and the relative width of cells near 0
_TAIL, _SPARE = 1e-30, 1e-24  # what is cut from a cell and from a law
_WRONG = 1e-12  # relative error of values, at most 2e-14 and 34 products of 16 roundings each
_POINTS = 500  # of each profile


class _Law(NamedTuple):
    """Values, increasing, with masses.

    :ivar above: what may be missing from the mean of (S - K)₊
    :ivar below: what may be missing from the mean of (1 - cS)₊
    """

    values: Array
    masses: Array
    above: float
    below: float


@lru_cache(maxsize=64)
def allocation(sigma: float, batches: int) -> Finite:
    """The pair of one epoch, as a bound on neighbours with a unit removed."""
    mu = 1 / sigma * (1 + 2 * UNIT)  # rounded up: more noise is a postprocessing
    law = _epoch(mu, batches)
    middle, top = sqrt(expm1(1 / sigma**2) / batches), 8 / sigma + 0.5 / sigma**2
    steps = np.linspace(0.0, asinh(top / middle), _POINTS)
    epsilon = np.unique(np.minimum(middle * np.sinh(steps), top))
    ratio = np.exp(epsilon)[:, None] * (1 - 16 * UNIT)  # both profiles fall in it
    values, rounding = law.values / batches, 1 + (len(law.values) + 8) * UNIT
    removed = np.maximum(values * (1 + _WRONG) - ratio, 0.0) @ law.masses + law.above / batches
    added = np.maximum(1 - ratio * values * (1 - _WRONG), 0.0) @ law.masses + law.below
    whole = gaussian_profile(mu, epsilon).upper
    points, sides = epsilon.tolist(), (removed * rounding + TINY, added * rounding + TINY)
    falling = [np.minimum.accumulate(np.minimum(side, whole)).tolist() for side in sides]
    pair = from_vertices(
        zip(points, falling[0], strict=True),
        zip(points, falling[1], strict=True),
        described("random allocation", sigma, batches),
    )
    return pair.one_way("removed")


def _epoch(mu: float, batches: int) -> _Law:
    """The law of t A, by squaring."""
    noise = gaussian_cells(mu, 1.0, _TAIL, _CELLS)
    assert noise is not None
    masses, values, _ = spread(noise)
    # below the cells R is above 0, and beyond them its mean is its mass under P
    first, last = noise.q[[0, -1]] + noise.q_error[[0, -1]]
    masses[0], masses[-1] = masses[0] + first, masses[-1] + last
    one = _Law(values, masses * (1 + 4 * UNIT), float(noise.p[-1] + noise.p_error[-1]), first)
    whole, mean = None, 0
    for bit in range(batches.bit_length()):
        if bit:
            one = _times(one, one, 2.0**bit)
        if batches >> bit & 1:
            mean += 2**bit
            whole = one if whole is None else _times(whole, one, mean)
    assert whole is not None
    return whole


def _times(one: _Law, other: _Law, mean: float) -> _Law:
    """The law of a sum, on a grid around its mean."""
    values = np.add.outer(one.values, other.values).ravel()
    masses = np.multiply.outer(one.masses, other.masses).ravel()
    sums = [float(np.sum(law.masses)) * (1 + 2**13 * UNIT) for law in (one, other)]
    above = one.above * sums[1] + other.above * sums[0]
    below = one.below * sums[1] + other.below * sums[0]
    scale = sqrt(float(masses @ (values - mean) ** 2)) / 2
    ends = [asinh(float(end - mean) / scale) / _STEP for end in (values[0], values[-1])]
    grid = mean + scale * np.sinh(_STEP * np.arange(int(ends[0]) - 2, int(ends[1]) + 3))
    low = float(values[0])  # near 0, where units are added, cells are as wide as a part of A
    near = low * np.exp(np.arange(0.0, log(mean / low), _PART))
    grid = np.unique(np.concatenate([[0.0], near, grid[grid > 0.0]]))  # roundings are relative
    cells = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, len(grid) - 2)
    share = np.clip((values - grid[cells]) / np.diff(grid)[cells], 0.0, 1.0)
    found: Array = np.bincount(cells + 1, masses * share, len(grid)).astype(np.float64)
    found += np.bincount(cells, masses * (1 - share), len(grid))
    found *= 1 + (2 * int(np.max(np.bincount(cells))) + 16) * UNIT
    return _cut(_Law(grid, found, above, below))


def _cut(law: _Law) -> _Law:
    """Without the ends, which have next to no mean and next to no mass: they are moved inward."""
    values, masses = law.values, law.masses.copy()
    mean, mass = np.cumsum((masses * values)[::-1]), np.cumsum(masses)
    top = len(values) - 1 - int(np.searchsorted(mean, _SPARE))
    start = min(int(np.searchsorted(mass, _SPARE)), top - 1)
    masses[top] += np.sum(masses[top + 1 :])
    masses[start] += np.sum(masses[:start])
    kept, more = slice(start, top + 1), 2 * _SPARE  # twice: also for what is rounded or underflows
    return _Law(values[kept], masses[kept] * (1 + 2**13 * UNIT), law.above + more, law.below + more)
