"""Doubles that are halfway between two others, below a reciprocal, or shares of a square."""

from __future__ import annotations

from fractions import Fraction
from math import nextafter

from .rounding import double, ordinal, sqrt_down, to_units


def halfway(low: float, high: float) -> float:
    """Double in the middle of those from ``low`` to ``high``; ``low`` if none is between them.

    They are counted, not measured: 52 halvings separate all doubles from 1 to 2.
    """
    first, last = (-ordinal(-one) if one < 0 else ordinal(abs(one)) for one in (low, high))
    middle = (first + last) // 2
    return -double(-middle) if middle < 0 else double(middle)


def reciprocal_down(loss: float) -> float:
    """Largest double at most 1/loss: the noise multiplier, rounded to less noise."""
    nearest = min(1.0 / loss, 1.7976931348623157e308)
    return nearest if Fraction(nearest) * Fraction(loss) <= 1 else nextafter(nearest, 0.0)


def split_squares(d_out: float, weights: list[Fraction]) -> list[float]:
    """Shares whose squares add up to at most that of ``d_out``."""
    square, whole = to_units(d_out) ** 2, sum(weights)
    return [sqrt_down(int(square * weight / whole)) for weight in weights]
