"""Exact sums of doubles, rounded once and in a stated direction.

Every finite double is an integer multiple of 2**-1074, the least positive double. A sum is kept as
that integer, its "units", so it is exact in any order. Only the reported number is rounded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction
from math import inf, isqrt, ldexp
from sys import float_info

_PRECISION = 53
SMALLEST = 1074  # the least positive double is 2**-SMALLEST


def to_units(value: float | Fraction) -> int:
    """Number of units in a finite nonnegative number; exact for doubles, else rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << SMALLEST) // denominator


def from_units_up(units: int) -> float:
    """Least double that is at least ``units``; infinity above the largest double."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(-(-units >> excess), excess - SMALLEST)
    except OverflowError:
        return inf


def from_units_down(units: int) -> float:
    """Largest double that is at most ``units``."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(units >> excess, excess - SMALLEST)
    except OverflowError:
        return float_info.max


def split(total: float, weights: list[Fraction]) -> list[float]:
    """Shares of ``total`` in proportion to ``weights``, rounded down: their sum is not above it."""
    units, whole = to_units(total), sum(weights)
    return [from_units_down(int(units * weight / whole)) for weight in weights]


def sqrt_down(square: int) -> float:
    """Largest double whose square is at most ``square`` * 2**(-2 * SMALLEST)."""
    return from_units_down(isqrt(square))


def sqrt_up(square: int) -> float:
    """Least double whose square is at least ``square`` * 2**(-2 * SMALLEST)."""
    root = isqrt(square)
    return from_units_up(root + (root * root < square))


def ordinal(value: float) -> int:
    """How many nonnegative doubles are below a nonnegative double."""
    ((number,),) = (struct.unpack("<q", struct.pack("<d", value)),)
    return int(number)


def double(number: int) -> float:
    """Inverse of :func:`ordinal`."""
    ((value,),) = (struct.unpack("<d", struct.pack("<q", number)),)
    return float(value)


_INFINITY = ordinal(inf)


def least_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Least double >= 0 for which a predicate that rises holds; infinity if it holds for none.

    :param near: where the search starts
    """
    low, high = -1, _INFINITY  # holds is false at low and true at high
    probe, step = min(ordinal(near), _INFINITY - 1), 1
    while high - low > 1:
        if holds(double(probe)):
            high, onward = probe, probe - step
        else:
            low, onward = probe, probe + step
        step *= 8
        probe = onward if low < onward < high else (low + high) // 2
    return double(high)


def largest_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Largest finite double >= 0 for which a predicate that falls holds; 0 if it holds for none."""
    beyond = least_double(lambda value: not holds(value), near)
    return double(max(0, ordinal(beyond) - 1))
