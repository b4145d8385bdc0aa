"""Profiles that are piecewise linear in e^ε: the finite pairs behind them, and back.

A profile h(t) = δ(ln t) is convex, h(0) = 1, slope at least -1, and its limit is P(L = ∞). Of what
is known at a few points only, the largest convex function through them is the loss that a mechanism
may have: the chords. Its slopes are the Q-masses, so it belongs to a finite pair. Below ε = 0 a
profile is given by that of the swapped pair, h(t) = 1 - t + t h'(1/t), which keeps small numbers.

Worked with 60 digits, as slopes are differences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from decimal import Context, Decimal
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from .bounds import ELEMENTARY, UNIT
from .finite import Finite

_CONTEXT = Context(prec=60)
_ONE, _ZERO = Decimal(1), Decimal(0)

Point = tuple[float, float]


def from_vertices(forward: Iterable[Point], backward: Iterable[Point]) -> Finite:
    """The pair with the largest profile through points (ε, δ), ε >= 0, in both directions."""
    c = _CONTEXT
    forward, backward = sorted(forward), sorted(backward)
    points: dict[Decimal, tuple[Decimal, float]] = {}
    for sign, side in ((1, forward), (-1, backward)):
        for epsilon, delta in side:
            t = c.exp(Decimal(sign * epsilon))
            height = Decimal(delta)
            if sign < 0:
                height = c.add(c.subtract(_ONE, t), c.multiply(t, height))
            if t not in points or height < points[t][0]:
                points[t] = height, sign * epsilon
    hull: list[tuple[Decimal, Decimal, float]] = [(_ZERO, _ONE, -inf)]
    for t in sorted(points):
        height, epsilon = points[t]
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], (t, height)):
            hull.pop()
        hull.append((t, height, epsilon))
    while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= 0:
        hull.pop()
    slopes = [_slope(one, two) for one, two in pairwise(hull)] + [_ZERO]
    losses, masses = [], []
    for (t, _, epsilon), before, after in zip(hull[1:], slopes[:-1], slopes[1:], strict=True):
        mass = float(c.multiply(t, c.subtract(after, before)))
        if mass > 0.0:
            losses.append(epsilon)
            masses.append(mass)
    infinite = float(hull[-1][1])
    symmetric = forward == backward
    # the slope at 0; never more than the last δ of the other direction, which digits do not blur
    limit = min((delta for _, delta in backward), default=1.0)
    never = infinite if symmetric else min(limit, _up(c.add(_ONE, slopes[0])) or 10 * _BLUR)
    if not losses:
        losses, masses = [0.0], [max(0.0, 1.0 - infinite)]
    return Finite(
        np.array(losses),
        np.array(masses),
        infinite,
        never,
        ELEMENTARY,
        symmetric=symmetric,
        slack=0.0 if symmetric else 2 * UNIT * never,
    )


def _up(value: Decimal) -> float:
    """A probability, rounded up."""
    return min(1.0, float(value) * (1 + 2 * UNIT)) if value > _NOTHING else 0.0


def _slope(one: tuple[Any, ...], two: tuple[Any, ...]) -> Decimal:
    c = _CONTEXT
    return c.divide(c.subtract(two[1], one[1]), c.subtract(two[0], one[0]))


def iterate(pair: Finite, count: int) -> Finite:
    """The pair of 1 - (1 - f)^(∘count), with f the trade-off function of (Q, P) [DRS22, Prop. 2.3].

    g = 1 - f maps Q(L > ε) to P(L > ε); it increases, is concave, and linear in between.
    """
    if not pair.losses.size:
        return pair
    c = _CONTEXT
    x, y = [_ZERO], [Decimal(pair.infinite)]
    for loss, mass in zip(pair.losses[::-1].tolist(), pair.masses[::-1].tolist(), strict=True):
        p = Decimal(mass)
        x.append(c.add(x[-1], c.divide(p, c.exp(Decimal(loss)))))
        y.append(c.add(y[-1], p))
    # what is known to add up to 1 is made to; the errors below allow for that
    y = [c.divide(one, y[-1]) for one in y]
    if not pair.never:
        x = [c.divide(one, x[-1]) for one in x]
    elif x[-1] < 1:
        x.append(_ONE)
        y.append(y[-1])
    known, image = x, y
    for _ in range(count - 1):
        back = [_interpolate(one, image, known) for one in x if image[0] < one < image[-1]]
        grid = sorted({*known, *back})
        image = [_interpolate(_interpolate(one, known, image), x, y) for one in grid]
        known = grid
    losses, masses = [], []
    for left, right, low, high in zip(known, known[1:], image, image[1:], strict=False):
        width, height = c.subtract(right, left), c.subtract(high, low)
        if height > _NOTHING and width > _NOTHING:
            losses.append(float(c.ln(c.divide(height, width))))
            masses.append(float(height))
    order = np.argsort(losses, kind="stable")
    error = 2 * count * (pair.mass_error + pair.loss_error + ELEMENTARY)
    infinite, never = _up(image[0]), _up(_ONE - _first_one(known, image))
    return Finite(
        np.array(losses)[order],
        np.array(masses)[order],
        infinite,
        infinite if pair.symmetric else never,
        error,
        error + 4 * UNIT * float(np.max(np.abs(losses), initial=0.0)),
        pair.symmetric,
        slack=error,
    )


_NOTHING = Decimal("1e-45")
_BLUR = 1e-45


def _first_one(known: list[Decimal], image: list[Decimal]) -> Decimal:
    """Where the image first reaches its largest value."""
    top = image[-1]
    return next(one for one, value in zip(known, image, strict=True) if top - value <= _NOTHING)


def _interpolate(value: Decimal, grid: list[Decimal], image: list[Decimal]) -> Decimal:
    c = _CONTEXT
    at = bisect_right(grid, value)
    if at == 0:
        return image[0]
    if at == len(grid):
        return image[-1]
    part = c.divide(c.subtract(value, grid[at - 1]), c.subtract(grid[at], grid[at - 1]))
    return c.add(image[at - 1], c.multiply(part, c.subtract(image[at], image[at - 1])))
