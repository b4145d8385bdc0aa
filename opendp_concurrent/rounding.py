"""Exact sums of doubles, rounded once and in a stated direction.

Every finite double is an integer multiple of 2**-1074, the least positive one. A sum is kept as
that integer ("units"), so it is exact in any order; only what is reported is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, ldexp

_PRECISION = 53
_SMALLEST = 1074  # the least positive double is 2**-_SMALLEST


def to_units(value: float) -> int:
    """Number of units in a finite nonnegative double; exact."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_SMALLEST + 1 - denominator.bit_length())


def from_units_up(units: int) -> float:
    """Least double that is at least ``units``; ``inf`` above the largest double."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -_SMALLEST)
    try:
        return ldexp(-(-units >> excess), excess - _SMALLEST)
    except OverflowError:
        return inf


def from_units_down(units: int) -> float:
    """Largest double that is at most ``units``; the largest double above it."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -_SMALLEST)
    try:
        return ldexp(units >> excess, excess - _SMALLEST)
    except OverflowError:
        return ldexp(2**_PRECISION - 1, 1024 - _PRECISION)


def split(total: float, weights: list[Fraction]) -> list[float]:
    """Shares of ``total`` in proportion to ``weights``, each rounded down.

    The exact sum of the shares is at most ``total``, whatever their number.
    """
    units, whole = to_units(total), sum(weights)
    return [from_units_down(int(units * weight / whole)) for weight in weights]
