"""Neighbours at a larger distance: 1 - (1 - f)^(∘k) of a finite pair [DRS22, Theorem 2.14].

With f the trade-off function of (Q, P), g = 1 - f maps Q(L > ε) to P(L > ε). It increases, is
concave, and is linear between the outcomes; so is g∘g. Each direction starts from its largest loss,
so that all numbers are sums of positive ones. A mass within 10^-40 of the sum so far counts at the
next larger loss.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from math import expm1, inf, nextafter
from typing import NamedTuple

import numpy as np

from ..errors import InvalidValueError
from .bounds import ELEMENTARY, UNIT, Array, rounded_up
from .finite import Finite, without_tiny_masses

MOST_CELLS = 2**15  # pieces of the function that is computed
_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SMALL = Decimal("1e-40")  # relative to the sum so far; less is within rounding
_LARGEST = 1e6  # largest loss that is accepted

Curve = tuple[list[Decimal], list[Decimal]]  # a concave function: where it bends, and its values


def iterate(pair: Finite, count: int, stands_for: str = "") -> Finite:
    """The pair for neighbours at distance ``count``."""
    cells = len(pair.losses) + 2
    if not count * cells <= MOST_CELLS:
        raise InvalidValueError(
            f"size ({count}) is too large for a function with {cells - 2} losses; "
            f"the product of the two must be at most {MOST_CELLS}"
        )
    if not pair.losses.size:
        return pair
    if not pair.largest_absolute <= _LARGEST:
        raise InvalidValueError(
            f"size ({count}) is only accepted for losses of at most {_LARGEST:g}; "
            f"the function has a loss of {pair.largest_absolute:g}"
        )
    law = _law(pair, count)
    swapped = law if pair.symmetric else _law(pair.swapped(), count)

    def made(one: Law, other: Law, back: Finite | None) -> Finite:
        size = max(1, one.losses.size)
        error = size * expm1(2 * count * (pair.mass_error + pair.loss_error + ELEMENTARY))
        return Finite(
            one.losses,
            one.masses,
            _more(one.infinite, error) if one.losses.size else 1.0,
            _more(other.infinite, error) if other.losses.size else 1.0,
            error,
            error + 4 * UNIT * float(np.max(np.abs(one.losses), initial=0.0)),
            pair.symmetric,
            slack=error + one.lost + other.lost + count * pair.slack,
            back=back,
            stands_for=stands_for,
        )

    return made(law, swapped, None if pair.symmetric else made(swapped, law, None))


def _more(probability: float, error: float) -> float:
    return min(1.0, nextafter(probability * (1 + error), inf)) if probability else 0.0


class Law(NamedTuple):
    """The distribution of the loss in one direction; ``lost`` is part of ``infinite``."""

    losses: Array
    masses: Array
    infinite: float
    lost: float


def _law(pair: Finite, count: int) -> Law:
    """The distribution of the loss under P."""
    with localcontext(_CONTEXT):
        power, squared = None, _curve(pair)
        for bit in range(count.bit_length()):
            if count >> bit & 1:
                power = squared if power is None else _after(power, squared)
            if count >> bit > 1:
                squared = _after(squared, squared)
        assert power is not None
        x, y = power
        losses, masses, jumps = [], [], y[0]
        for left, right, low, high in zip(x, x[1:], y, y[1:], strict=False):
            width, height = right - left, high - low
            if not height > _SMALL * high:
                continue
            if width > _SMALL * right:
                losses.append(float((height / width).ln()))
                masses.append(float(height))
            else:
                jumps += height
        kept, weights, lost = without_tiny_masses(np.array(losses), np.array(masses))
        infinite = min(1.0, rounded_up(Fraction(jumps) + Fraction(lost)))
        return Law(kept, weights, infinite, 2 * lost + float(jumps - y[0]))


def _curve(pair: Finite) -> Curve:
    """P(L > ε) over Q(L > ε), from 0 to 1; the errors of the pair allow for scaling."""
    x, y = [Decimal(0)], [Decimal(pair.infinite)]
    for loss, mass in zip(pair.losses[::-1].tolist(), pair.masses[::-1].tolist(), strict=True):
        p = Decimal(mass)
        if p > _SMALL * y[-1]:
            x.append(x[-1] + p / Decimal(loss).exp())
            y.append(y[-1] + p)
    y = [one / y[-1] for one in y]
    if x[-1] > 1:
        x = [one / x[-1] for one in x]
    elif x[-1] < 1:
        x.append(Decimal(1))
        y.append(Decimal(1))
    return x, y


def _after(one: Curve, other: Curve) -> Curve:
    """``one`` of ``other``: it bends where ``other`` does, and where ``other`` is a bend of one."""
    low, high = other[1][0], other[1][-1]
    back = [_interpolate(at, other[1], other[0]) for at in one[0] if low < at < high]
    grid = sorted({*other[0], *back})
    return grid, [_interpolate(_interpolate(at, *other), *one) for at in grid]


def _interpolate(value: Decimal, grid: list[Decimal], image: list[Decimal]) -> Decimal:
    at = bisect_right(grid, value)
    if at == 0:
        return image[0]
    if at == len(grid):
        return image[-1]
    part = (value - grid[at - 1]) / (grid[at] - grid[at - 1])
    return image[at - 1] + part * (image[at] - image[at - 1])
