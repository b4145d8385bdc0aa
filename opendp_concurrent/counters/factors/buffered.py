"""The factorisation of counters with Gaussian noise: buffers, with columns of norm 1.

The matrix A of the prefix sums is written as (A D C^-1)(C D^-1). C is lower triangular, with the
generating function c(z) = 1 + Σ ω_i z/(1 - θ_i z), 0 < θ_i < 1 and ω_i > 0 [DMPST24]: its state is
one number for each i, a *buffer*. D is diagonal. What is released is C D^-1 x + z, with discrete
Gaussian noise z, on a grid of 2^-bits. The answers A D C^-1 (C D^-1 x + z) are
postprocessing of it.

With a horizon of T steps, d_t is the norm of the column t of C, which is cut after T - t + 1
entries. So each column of C D^-1 has norm 1, and an item costs the same at each step: at the end
there is less noise than without D. Without a horizon, and for windows, all d_t are the norm of the
first column.

Buffer i is the sum of past entries with weights θ_i^age, and C x is the current entry plus
Σ ω_i buffer_i. Both are computed in integers: the buffers with ``guard`` more bits than the grid,
and rounded down at each step. The entries are exact: an item times 2^bits/d_t, rounded down to an
integer.

Rounding. A buffer is too small by less than 1/(1 - θ_i) of its unit: it gets a new error below 1 at
each step, and the old one shrinks by θ_i. ``guard`` is so large that all buffers together make C x
too small by less than 1/16 step of the grid; rounding it down adds less than 1. All errors have the
same sign, so those of two streams differ by less than 17/16.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import frexp, isqrt
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from ...queryables.saved import rows
from ...types import Json
from ..prefix import plain, unplain

Buffers = tuple[tuple[int, int], ...]

BITS = 60  # of 1 - θ and ω
DIGITS = 128  # bits of powers, which are rounded down
GUARD = 4
FINE = 5  # significant bits of the lengths of columns
NORM_BITS = 64  # of norms
SCALE_BITS = 55  # noise of 2^55 steps of the grid is below 2^62 in 128 deviations
SUM_BITS = 60  # C x is at most 2^61 steps of the grid
SLACK = 3  # steps of the grid, for each step of the stream

# For each buffer 1 - θ and ω, in units of 2^-60, as ``benchmarks/design_buffers.py`` found them.
# The tables are for up to 2^m steps, or windows of up to 2^m. Privacy does not depend on how these
# were found: norms are computed from them, and rounded up.
_FOUND = json.loads(Path(__file__).with_name("buffers.json").read_text())
HORIZONS: dict[int, Buffers]
WINDOWS: dict[int, Buffers]
HORIZONS, WINDOWS = (
    {int(m): tuple((rate, weight) for rate, weight in one) for m, one in _FOUND[kind].items()}
    for kind in ("horizons", "windows")
)
ENDLESS: Buffers = tuple((rate, weight) for rate, weight in _FOUND["endless"])


class BufferedCoder:
    """The buffers of one stream, of integers or of arrays of integers."""

    def __init__(self, thetas: list[int], weights: list[int], guard: int) -> None:
        self._thetas, self._weights, self._guard = thetas, weights, guard
        self._shift = BITS + guard
        self._buffers: list[Any] = [0] * len(thetas)

    def encode(self, value: Json) -> Json:
        """Take the next entry of x, and return that of C x; both in steps of the grid."""
        past = self._past()
        self._absorb(value)
        return value + past

    def decode(self, value: Json) -> Any:
        """Take the next entry of C x + z, and return that of C^-1 of it."""
        value = value - self._past()
        self._absorb(value)
        return value

    def _past(self) -> Any:
        return sum(map(mul, self._weights, self._buffers)) >> self._shift

    def _absorb(self, value: Json) -> None:
        fine = value << self._guard
        shrunk = map(mul, self._thetas, self._buffers)
        self._buffers = [(one >> BITS) + fine for one in shrunk]

    def to_record(self) -> Json:
        """Return the buffers as a JSON value."""
        return [plain(buffer) for buffer in self._buffers]

    def restore(self, record: Json) -> None:
        """Restore the buffers from a record."""
        count = len(self._thetas)
        self._buffers = [unplain(buffer) for buffer in rows(record, count, count)]

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of the buffers."""
        return {np.shape(buffer) for buffer in self._buffers}


@dataclass(frozen=True)
class BufferedFactor:
    """C and D.

    :ivar buffers: for each buffer 1 - θ and ω, in units of 2^-60
    :ivar horizon: largest number of steps
    :ivar cut: whether d_t is the norm of its own column, and not that of the first one
    """

    buffers: Buffers
    horizon: int
    cut: bool

    def gain(self) -> int:
        """Return a bound on the sum of each row of C: 1 + Σ ω/(1 - θ), or the horizon."""
        return min(1 + sum(-(-omega // delta) for delta, omega in self.buffers), self.horizon)

    def norm_squared(self, length: int) -> int:
        """Return the squared norm of the first entries of c, times 4^64, rounded up.

        It is 1 + Σ ω_i ω_j (1 - r^(length-1))/(1 - r), with r = θ_i θ_j.
        """
        total = 0
        for delta, omega in self.buffers:
            for other, weight in self.buffers:
                ratio = ((1 << BITS) - delta) * ((1 << BITS) - other)  # times 2^120
                rest = (1 << DIGITS) - power_down(ratio, 2 * BITS, length - 1)
                total -= -(omega * weight * rest) // ((1 << 2 * BITS) - ratio)
        return (1 << 2 * NORM_BITS) - (-(total << 2 * NORM_BITS) >> DIGITS)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield lengths of blocks of steps, and the length of a column that bounds d_t in each.

        The last steps have a block each. Before, columns are taken to be longer by up to 1/16.
        """
        left = self.horizon
        while left > 0:
            unit = 1 << max(0, (left - 1).bit_length() - FINE) if self.cut else left
            whole = -(-left // unit) * unit
            yield left - (whole - unit), min(whole, self.horizon)
            left = whole - unit

    def coder(self) -> BufferedCoder:
        """Return buffers before the first step."""
        thetas = [(1 << BITS) - delta for delta, _ in self.buffers]
        weights = [omega for _, omega in self.buffers]
        gain = sum(-(-omega // delta) for delta, omega in self.buffers)
        return BufferedCoder(thetas, weights, gain.bit_length() + GUARD)

    def grid_bits(self, scale: float, largest: int) -> int:
        """Return the number of bits of the grid: as fine as 64-bit noise and sums allow."""
        return min(SCALE_BITS - frexp(scale)[1], SUM_BITS - (self.gain() * largest).bit_length())

    def sensitivity(self, bits: int, shift: int) -> int:
        """Return how far one item moves all releases together, in steps of the grid; rounded up.

        Columns of C D^-1 have a norm of at most 1, whatever the step of the item. Two steps of the
        grid at each step are for rounding. One more is for Gaussian DP, whose certificate for a
        shift of m steps is that of m + 1. In a histogram, the category of the item is rounded.
        """
        root = isqrt(self.horizon - 1) + 1
        return (shift << bits) + SLACK * root


@lru_cache(maxsize=4096)
def inverse_norm(factor: BufferedFactor, bits: int, length: int) -> int:
    """Return 2^bits over the norm of the first entries of c, rounded down: the entry of an item."""
    return isqrt((1 << 2 * (bits + NORM_BITS)) // factor.norm_squared(length))


def power_down(base: int, bits: int, exponent: int) -> int:
    """Return (base 2^-bits)^exponent 2^128, for a base of at most 1; rounded down."""
    result, square = 1 << DIGITS, base << DIGITS - bits
    while exponent:
        if exponent & 1:
            result = result * square >> DIGITS
        square = square * square >> DIGITS
        exponent >>= 1
    return result


def buffered(horizon: int) -> BufferedFactor:
    """Return the factor of a horizon: the buffers of the next power of two, or endless ones."""
    found = HORIZONS.get((horizon - 1).bit_length(), ENDLESS)
    return BufferedFactor(found, horizon, cut=True)


def windowed(window: int, horizon: int) -> BufferedFactor:
    """Return the factor of a window, for streams of so many steps."""
    found = WINDOWS.get((window - 1).bit_length(), ENDLESS)
    return BufferedFactor(found, horizon, cut=False)


def endless(horizon: int) -> BufferedFactor:
    """Return the factor of streams without a horizon; their norm is that of ``horizon`` steps."""
    return BufferedFactor(ENDLESS, horizon, cut=False)
