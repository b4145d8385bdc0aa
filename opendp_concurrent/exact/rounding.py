"""Exact sums of doubles, rounded once and in a stated direction.

Every finite double is an integer multiple of 2**-1074, the least positive one. A sum is kept as
that integer ("units"), so it is exact in any order; only what is reported is rounded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from math import inf, isqrt, ldexp

_PRECISION = 53
SMALLEST = 1074  # the least positive double is 2**-SMALLEST


def to_units(value: float) -> int:
    """Number of units in a finite nonnegative double; exact."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (SMALLEST + 1 - denominator.bit_length())


def from_units_up(units: int) -> float:
    """Least double that is at least ``units``; ``inf`` above the largest double."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(-(-units >> excess), excess - SMALLEST)
    except OverflowError:
        return inf


def from_units_down(units: int) -> float:
    """Largest double that is at most ``units``; the largest double above it."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(units >> excess, excess - SMALLEST)
    except OverflowError:
        return ldexp(2**_PRECISION - 1, 1024 - _PRECISION)


def split(total: float, weights: list[Fraction]) -> list[float]:
    """Shares of ``total`` in proportion to ``weights``, each rounded down.

    The exact sum of the shares is at most ``total``, whatever their number.
    """
    units, whole = to_units(total), sum(weights)
    return [from_units_down(int(units * weight / whole)) for weight in weights]


def sqrt_down(units: int, scale: int) -> float:
    """Largest double whose square is at most ``units`` * 2**-(2 * scale); exact integers."""
    root = isqrt(units << max(0, 2 * (SMALLEST - scale)))
    return from_units_down(root >> max(0, scale - SMALLEST))


def sqrt_up(units: int, scale: int) -> float:
    """Least double whose square is at least ``units`` * 2**-(2 * scale); exact integers."""
    shifted = units << max(0, 2 * (SMALLEST - scale))
    root = isqrt(shifted)
    root += root * root < shifted
    return from_units_up(-(-root >> max(0, scale - SMALLEST)))


def _ordinal(value: float) -> int:
    """Number of a nonnegative double when they are counted from 0 in increasing order."""
    ((ordinal,),) = (struct.unpack("<q", struct.pack("<d", value)),)
    return int(ordinal)


def _double(ordinal: int) -> float:
    ((value,),) = (struct.unpack("<d", struct.pack("<q", ordinal)),)
    return float(value)


_INFINITY = _ordinal(inf)


def least_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Least double >= 0 for which a monotone predicate holds; infinity if it is none of them.

    :param near: where to start looking
    """
    low, high = -1, _INFINITY  # holds is false at low and true at high
    probe, step = min(_ordinal(near), _INFINITY - 1), 1
    while high - low > 1:
        if holds(_double(probe)):
            high, onward = probe, probe - step
        else:
            low, onward = probe, probe + step
        step *= 8
        probe = onward if low < onward < high else (low + high) // 2
    return _double(high)


def largest_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Largest finite double >= 0 for which a falling predicate holds; 0 if it is none of them."""
    beyond = least_double(lambda value: not holds(value), near)
    return _double(max(0, _ordinal(beyond) - 1))
