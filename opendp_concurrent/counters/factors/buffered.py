"""Buffered factors: C is a rational generating function, and its state is a few numbers.

c(z) = 1 + Σ ω_i z/(1 - θ_i z), with 0 < θ_i < 1 and ω_i > 0 [DMPST24]. Buffer i is the sum of past
items with weights θ_i^age, and C x is the current item plus Σ ω_i buffer_i. Both are computed in
integers: the buffers with ``guard`` more bits than the grid, and rounded down at each step.

Rounding. A buffer is too small by less than 1/(1 - θ_i) of its unit: it gets a new error below 1 at
each step, and the old one shrinks by θ_i. ``guard`` is so large that all buffers together make C x
too small by less than 1/16 step of the grid; rounding it down adds less than 1. All errors have the
same sign, so those of two streams differ by less than 17/16.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np

from ...exact.participations import ONCE as ONE_ITEM
from ...exact.participations import Participations
from ...queryables.saved import rows
from ...types import Json
from ..dyadic import plain, unplain
from .buffers_table import BITS, ENDLESS, HORIZONS, Buffers

ONE = 1 << BITS
DIGITS = 128  # bits of powers, which are rounded down
GUARD = 4
MOST_PAIRS = 4096  # of columns, whose products are added one by one


class BufferedCoder:
    """The buffers of one stream."""

    __slots__ = ("_buffers", "_guard", "_shift", "_thetas", "_weights")

    def __init__(self, thetas: list[int], weights: list[int], guard: int) -> None:
        self._thetas, self._weights, self._guard = thetas, weights, guard
        self._shift = BITS + guard
        self._buffers: list[Any] = [0] * len(thetas)

    def encode(self, value: Json) -> Json:
        """Take the next entry of x, and return that of C x."""
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

    @property
    def steps(self) -> int | None:
        """None: the buffers do not tell, so the number in a checkpoint is believed."""
        return None


@dataclass(frozen=True)
class BufferedFactor:
    """A rational C.

    :ivar buffers: for each buffer 1 - θ and ω, in units of 2^-60
    :ivar horizon: largest number of steps
    """

    buffers: Buffers
    horizon: int

    def gain(self) -> int:
        """Return a bound on the sum of each row of C: 1 + Σ ω/(1 - θ), or the horizon."""
        return min(1 + sum(-(-omega // delta) for delta, omega in self.buffers), self.horizon)

    def norm_squared(self, bits: int, unit: Participations = ONE_ITEM) -> int:
        """Return the squared norm of the largest move by a unit, times 4^bits, rounded up.

        For one item it is that of the first column, 1 + Σ ω_i ω_j (1 - r^(T-1))/(1 - r), with r =
        θ_i θ_j. Later columns are cut shorter.
        """
        count = unit.within(self.horizon)
        square = count * count * self._column_squared(bits)
        # c_1 = Σ ω is at most c_0 = 1, and later entries fall
        if count > 1 and sum(omega for _, omega in self.buffers) <= ONE:
            beside = -(-(self._beside(count, unit.apart) << 2 * bits) >> DIGITS)
            return min(square, count * self._column_squared(bits) + beside)
        return square

    def _beside(self, count: int, apart: int) -> int:
        """Return a bound on the inner products of distinct columns at 0, b, 2b, ..., times 2^128.

        Columns m steps apart have at most c_m + Σ ω_i ω_j θ_j^m / (1 - θ_i θ_j).
        """
        total = 0
        for delta, omega in self.buffers:
            theta = ONE - delta
            weight = Fraction(omega, theta) + sum(
                Fraction(omega * other, ONE * ONE - theta * (ONE - rate))
                for rate, other in self.buffers
            )
            # each product in a power is rounded down by less than 1
            ratio = power_down(theta, BITS, apart) + 2 * apart
            total += -(-weight.numerator * _pairs(count, ratio) // weight.denominator)
        return 2 * total

    def _column_squared(self, bits: int) -> int:
        total = 0
        for delta, omega in self.buffers:
            for other, weight in self.buffers:
                theta = (ONE - delta) * (ONE - other)  # times 2^120
                rest = (1 << DIGITS) - power_down(theta, 2 * BITS, self.horizon - 1)
                total -= -(omega * weight * rest) // ((1 << 2 * BITS) - theta)
        return (1 << 2 * bits) - (-(total << 2 * bits) >> DIGITS)

    def coder(self, bits: int) -> BufferedCoder:
        """Return buffers before the first step."""
        thetas = [ONE - delta for delta, _ in self.buffers]
        weights = [omega for _, omega in self.buffers]
        gain = sum(-(-omega // delta) for delta, omega in self.buffers)
        return BufferedCoder(thetas, weights, gain.bit_length() + GUARD)


def _pairs(count: int, ratio: int) -> int:
    """Return a bound on Σ (k - m) r^m over m from 1 to k - 1; r and the sum are times 2^128."""
    whole = 1 << DIGITS
    total, power = 0, whole
    for apart in range(1, min(count, MOST_PAIRS)):
        power = min(whole, -(-power * ratio >> DIGITS))
        total += (count - apart) * power
    rest = max(0, count - MOST_PAIRS)  # terms left: each is at most the last one, times r^m
    sum_of_powers = rest if ratio >= whole else min(rest, -(-ratio // (whole - ratio)))
    return total + rest * power * sum_of_powers


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
    """Return the factor of a horizon: the parameters of the next power of two, or endless ones."""
    return windowed(horizon, horizon)


def windowed(window: int, horizon: int) -> BufferedFactor:
    """Return the factor of a window: the parameters of that horizon, for more steps."""
    return BufferedFactor(HORIZONS.get((window - 1).bit_length(), ENDLESS), horizon)


def endless(horizon: int) -> BufferedFactor:
    """Return the factor of streams without a horizon; their norm is that of ``horizon`` steps."""
    return BufferedFactor(ENDLESS, horizon)
