"""Profiles that are piecewise linear in t = e^ε, and the finite pairs that have them.

A profile h(t) = δ(ln t) is convex, with h(0) = 1 and slope at least -1; its limit is P(L = ∞). If
the profile of a mechanism is bounded at a few points only, the mechanism may lose as much as the
largest convex function through them, which consists of chords. Its slopes are the Q-masses, so it
belongs to a finite pair. Below ε = 0 a profile is given by that of the swapped pair,
h(t) = 1 - t + t h'(1/t), which keeps small numbers.

Slopes are differences, so they are computed with as many digits as the points need.
"""

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from ..errors import InvalidValueError
from ..numerics import double_up
from .bounds import ELEMENTARY, TINY, UNIT
from .finite import Finite, response, without_tiny_masses, worst
from .gaussian import LEAST_SCALE, Theta

_DIGITS, _SPARE = 60, 30  # least number of digits; digits beyond those of the smallest term

Point = tuple[float, float]


class Vertex(NamedTuple):
    """A point of a profile: t, h(t), and ε = ln t."""

    t: Decimal
    height: Decimal
    epsilon: float


def from_vertices(
    forward: Iterable[Point], backward: Iterable[Point], stands_for: str = ""
) -> Finite:
    """The pair with the largest profile through points (ε, δ), ε >= 0, in both directions."""
    forward, backward = sorted(forward), sorted(backward)
    digits = _digits([*forward, *backward])
    with localcontext(Context(prec=digits)):
        hull, merged = _hull(forward, backward)
        slopes = [_slope(one, two) for one, two in pairwise(hull)] + [Decimal(0)]
        cells = [  # losses, with their P- and Q-masses
            (vertex.epsilon, float(vertex.t * (after - before)), float(after - before))
            for vertex, (before, after) in zip(hull[1:], pairwise(slopes), strict=True)
            if after > before
        ]
        infinite = _up(hull[-1].height)
        symmetric = forward == backward
        # the slope at 0; at most the last δ of the other direction, which has no rounding
        blur = Decimal(1).scaleb(_SPARE // 2 - digits)
        slope = _up(max(Decimal(0), 1 + slopes[0]) + blur)
    never = infinite if symmetric else min(backward[-1][1], slope)
    return _pair(cells, infinite, never, symmetric, stands_for, merged)


def _hull(forward: Sequence[Point], backward: Sequence[Point]) -> tuple[list[Vertex], float]:
    """The vertices of the largest convex profile, from t = 0 to where it stops falling.

    Also the largest distance of two ε that have the same t.
    """
    points: dict[Decimal, Vertex] = {}
    merged = 0.0
    for sign, side in ((1, forward), (-1, backward)):
        for epsilon, delta in side:
            t = Decimal(sign * epsilon).exp()
            height = Decimal(delta) if sign > 0 else (1 - t) + t * Decimal(delta)
            if t in points:
                merged = max(merged, abs(points[t].epsilon - sign * epsilon) * (1 + 2 * UNIT))
            if t not in points or height < points[t].height:
                points[t] = Vertex(t, height, sign * epsilon)
    hull = [Vertex(Decimal(0), Decimal(1), -inf)]
    for t in sorted(points):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], points[t]):
            hull.pop()
        hull.append(points[t])
    while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= 0:
        hull.pop()
    return hull, merged


def _slope(one: Vertex, two: Vertex) -> Decimal:
    return (two.height - one.height) / (two.t - one.t)


def _digits(points: Sequence[Point]) -> int:
    """Enough digits for the least δ beside 1 - e^-ε."""
    reach = max(epsilon for epsilon, _ in points)
    least = min((delta for _, delta in points if delta > 0.0), default=1.0)
    return max(_DIGITS, _SPARE + ceil((reach - log(least)) / log(10.0)))


def _pair(
    cells: Sequence[tuple[float, float, float]],
    infinite: float,
    never: float,
    symmetric: bool,
    stands_for: str,
    loss_error: float,
) -> Finite:
    """The pair with these losses; a mass that is too small for doubles counts as infinite loss."""
    if not cells:
        return worst(stands_for)
    made = partial(Finite, symmetric=symmetric, stands_for=stands_for, loss_error=loss_error)
    given, p, q = np.ascontiguousarray(np.array(cells).T)
    slack = 0.0 if symmetric else 2 * UNIT * never
    if not np.any(p < TINY):
        return made(given, p, infinite, never, ELEMENTARY, slack=slack)
    losses, masses, lost = without_tiny_masses(given, p)
    back_losses, back_masses, back_lost = without_tiny_masses(-given, q)
    if not losses.size or not back_losses.size:
        raise InvalidValueError("deltas leave less than 1e-300 for finite losses; pass worst()")
    slack, error = slack + 2 * (lost + back_lost), ELEMENTARY + 2 * UNIT
    infinite, never = _sum(infinite, lost), _sum(never, back_lost)
    if symmetric:
        return made(losses, masses, infinite, infinite, error, slack=slack)
    back = made(back_losses, back_masses, never, infinite, error, slack=slack)
    return made(losses, masses, infinite, never, error, slack=slack, back=back)


def _sum(one: float, other: float) -> float:
    """A sum of probabilities, rounded up."""
    return min(1.0, double_up(Fraction(one) + Fraction(other)))


def _up(value: Decimal) -> float:
    """A probability, rounded up."""
    return min(1.0, double_up(Fraction(value)))


# The discrete Gaussian against itself, shifted by an integer [CKS20].

_DEVIATIONS = 38.0  # standard deviations; masses beyond are below 1e-313
MOST = 2**20  # outcomes


def discrete_gaussian(scale: float, sensitivity: int) -> Finite:
    """N_Z(0, scale²) against N_Z(sensitivity, scale²).

    Outcomes beyond 38 standard deviations count as an infinite loss of probability 1e-300.
    """
    reach = ceil(_DEVIATIONS * scale) + sensitivity
    if not 2 * reach + 1 <= MOST:
        raise InvalidValueError(
            f"scale ({scale}) is too large for a list of outcomes; beyond about {MOST // 80} use "
            "TradeoffFunction.gaussian((sensitivity + 1) / scale)"
        )
    if not sensitivity / scale < 1e100:
        return response(0.0, 1.0)
    x = np.arange(reach, -reach - 1, -1, dtype=float)
    weights = np.exp(-(x * x) / (2 * scale * scale))
    masses = weights / np.sum(weights)
    keep = masses > 1e-305
    losses = (sensitivity - 2 * x) * (sensitivity / (2 * scale * scale))
    # proven in mechanisms/certified.py for scales of at least 1/2
    within = double_up(Fraction(sensitivity + 1) / Fraction(scale)) if scale >= 0.5 else inf
    pair = Finite(
        losses[keep],
        masses[keep],
        infinite=TINY,
        never=TINY,
        mass_error=2 * ELEMENTARY + UNIT * (4 * _DEVIATIONS**2 + sqrt(len(x)) + 64),
        loss_error=6 * UNIT * float(np.max(np.abs(losses))),
        symmetric=True,
        slack=TINY,
        gaussian=within,
    )
    known = scale >= LEAST_SCALE and sensitivity > 0
    return pair.with_form(Theta(scale, sensitivity)) if known else pair
