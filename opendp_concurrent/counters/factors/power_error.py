"""Errors of power factors, and the power and bands that suit a unit's participations.

Answers are A C^-1 of the releases, for the prefix sums A or the sums of the last W steps. All is
computed in doubles: nothing about privacy depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from ...exact.participations import SUMMED, Participations
from .power import PARTS, PowerFactor, coefficients, square

Numbers = NDArray[np.float64]
MOST_BANDS = 2**12
MOST_POWER = 56  # in parts of 1/64: for larger ones C^-1 settles slowly
SETTLED = 32  # after so many times the bands, an entry of C^-1 1 is within 2^-11 of its limit
LEAST = 2**12


def _product(one: Numbers, other: Numbers, size: int) -> Numbers:
    """Return the first entries of a convolution."""
    length = 1 << (len(one) + len(other) - 2).bit_length()
    found: Numbers = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)
    return found[:size]


def inverse(column: Numbers, size: int) -> Numbers:
    """Return the first entries of C^-1, by Newton's iteration; the first of C is 1."""
    column, found = np.append(column, np.zeros(size)), np.ones(1)
    while len(found) < size:
        length = min(2 * len(found), size)
        wrong = -_product(column[:length], found, length)
        wrong[0] += 2.0
        found = _product(found, wrong, length)
    return found


def _sums(factor: PowerFactor, steps: int) -> tuple[Numbers, float]:
    """Return the entries of C^-1 1 until they are settled, and their limit."""
    size = min(steps, max(LEAST, SETTLED * factor.bands))
    whole = coefficients(factor.power, factor.bands, factor.fine)
    column = np.asarray(whole * 2.0**-factor.fine, dtype=np.float64)
    return np.cumsum(inverse(column, size)), 1.0 / float(column.sum())


def row_square(factor: PowerFactor, steps: int) -> float:
    """Return the squared row norm of A C^-1 at a step; it grows with the step."""
    sums, limit = _sums(factor, steps)
    return float(sums @ sums) + (steps - len(sums)) * limit**2


def mean_row_square(factor: PowerFactor, steps: int) -> float:
    """Return the mean of the squared row norms over the steps 1 to T."""
    sums, limit = _sums(factor, steps)
    rest, squares = steps - len(sums), np.cumsum(sums * sums)
    later = rest * float(squares[-1]) + limit**2 * rest * (rest + 1) / 2
    return (float(squares.sum()) + later) / steps


def window_square(factor: PowerFactor, window: int) -> float:
    """Return the squared row norm of the last W steps' sum times C^-1, late in a stream."""
    sums, limit = _sums(factor, window + max(LEAST, SETTLED * factor.bands))
    if window >= len(sums):
        return row_square(factor, window) + float(np.square(sums - limit).sum())
    later = np.append(sums, np.full(window, limit))
    later[window:] -= sums
    return float(later @ later)


def _error(factor: PowerFactor, unit: Participations, window: int | None) -> float:
    """Return the squared error if the noise is a unit's sensitivity, to compare factors."""
    few = Participations(unit.within(factor.horizon), unit.apart)
    steps = factor.horizon if factor.horizon <= MOST_BANDS else SUMMED + 1  # ends are not cut
    norm = square(factor.power, factor.bands, factor.fine, steps, few) * 4.0**-factor.fine
    if window is None:
        return norm * mean_row_square(factor, factor.horizon)
    return norm * window_square(factor, window)


def _least(error: Callable[[int], float], low: int, high: int) -> int:
    """Return where an error that falls and then rises is least."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= error(middle + 1) else (middle + 1, high)
    return low


@lru_cache(maxsize=64)
def best_power(horizon: int, unit: Participations, window: int | None = None) -> PowerFactor:
    """Return the factor with the least error that was found, over the horizon or of a window."""
    longest = min(horizon if window is None else window, MOST_BANDS)
    found, least, bands = PowerFactor(horizon, PARTS, 1), inf, min(unit.apart, longest)
    while True:
        factors = [PowerFactor(horizon, power, bands) for power in range(MOST_POWER + 1)]
        errors = cache(lambda power, of=factors: _error(of[power], unit, window))
        power = _least(errors, 1, MOST_POWER)
        if errors(power) < least:
            found, least = factors[power], errors(power)
        if bands == longest:
            return found
        bands = min(2 * bands, longest)
