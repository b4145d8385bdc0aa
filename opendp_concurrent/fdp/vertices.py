"""Profiles that are piecewise linear in e^ε: the finite pairs behind them.

A profile h(t) = δ(ln t) is convex, h(0) = 1, slope at least -1, and its limit is P(L = ∞). Of what
is known at a few points only, the largest convex function through them is the loss that a mechanism
may have: the chords. Its slopes are the Q-masses, so it belongs to a finite pair. Below ε = 0 a
profile is given by that of the swapped pair, h(t) = 1 - t + t h'(1/t), which keeps small numbers.

Slopes are differences, so they are worked out with as many digits as the points need.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, inf, log
from typing import Any

import numpy as np

from ..errors import InvalidValueError
from .bounds import ELEMENTARY, TINY, UNIT, rounded_up
from .finite import Finite, settled, worst

_DIGITS, _SPARE = 60, 30  # at least; beyond those of the smallest term
_ONE, _ZERO = Decimal(1), Decimal(0)

Point = tuple[float, float]


def from_vertices(
    forward: Iterable[Point], backward: Iterable[Point], stands_for: str = ""
) -> Finite:
    """The pair with the largest profile through points (ε, δ), ε >= 0, in both directions."""
    forward, backward = sorted(forward), sorted(backward)
    c = Context(prec=_digits([*forward, *backward]))
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
        while len(hull) > 1 and _slope(c, hull[-2], hull[-1]) >= _slope(c, hull[-1], (t, height)):
            hull.pop()
        hull.append((t, height, epsilon))
    while len(hull) > 1 and _slope(c, hull[-2], hull[-1]) >= 0:
        hull.pop()
    slopes = [_slope(c, one, two) for one, two in pairwise(hull)] + [_ZERO]
    cells: list[tuple[float, Decimal, Decimal]] = []
    for (t, _, epsilon), before, after in zip(hull[1:], slopes[:-1], slopes[1:], strict=True):
        if after > before:
            width = c.subtract(after, before)
            cells.append((epsilon, c.multiply(t, width), width))
    infinite = _up(hull[-1][1])
    symmetric = forward == backward
    # the slope at 0; never more than the last δ of the other direction, which digits do not blur
    blur = Decimal(1).scaleb(_SPARE // 2 - c.prec)
    slope = max(_ZERO, c.add(_ONE, slopes[0]))
    never = infinite if symmetric else min(backward[-1][1], _up(c.add(slope, blur)))
    return _pair(cells, infinite, never, symmetric, stands_for)


def _digits(points: Sequence[Point]) -> int:
    """Enough for the least δ beside 1 - e^-ε."""
    reach = max(epsilon for epsilon, _ in points)
    least = min((delta for _, delta in points if delta > 0.0), default=1.0)
    return max(_DIGITS, _SPARE + ceil((reach - log(least)) / log(10.0)))


def _pair(
    cells: list[tuple[float, Decimal, Decimal]],
    infinite: float,
    never: float,
    symmetric: bool,
    stands_for: str,
) -> Finite:
    """From losses with P- and Q-masses; what doubles do not keep counts as an infinite loss."""
    given = np.array([loss for loss, _, _ in cells])
    first, second = (np.array([float(cell[side]) for cell in cells]) for side in (1, 2))
    slack = 0.0 if symmetric else 2 * UNIT * never
    if not np.any(first < TINY):
        if not cells:
            return worst(stands_for)
        return Finite(
            given,
            first,
            infinite,
            never,
            ELEMENTARY,
            symmetric=symmetric,
            slack=slack,
            stands_for=stands_for,
        )
    (losses, masses, lost), (back_losses, back_masses, also) = (
        settled(given, first),
        settled(-given, second),
    )
    slack += 2 * (lost + also)
    infinite, never = _sum(infinite, lost), _sum(never, also)
    if not losses.size or not back_losses.size:
        raise InvalidValueError("deltas leave less than 1e-300 for finite losses; pass worst()")
    error = ELEMENTARY + 2 * UNIT
    back: Finite | None = None
    if symmetric:
        never = infinite
    else:
        back = Finite(
            back_losses, back_masses, never, infinite, error, slack=slack, stands_for=stands_for
        )
    return Finite(
        losses,
        masses,
        infinite,
        never,
        error,
        symmetric=symmetric,
        slack=slack,
        back=back,
        stands_for=stands_for,
    )


def _sum(one: float, other: float) -> float:
    """A sum of probabilities, rounded up."""
    return min(1.0, rounded_up(Fraction(one) + Fraction(other)))


def _up(value: Decimal) -> float:
    """A probability, rounded up."""
    return min(1.0, rounded_up(Fraction(value)))


def _slope(c: Context, one: tuple[Any, ...], two: tuple[Any, ...]) -> Decimal:
    return c.divide(c.subtract(two[1], one[1]), c.subtract(two[0], one[0]))
