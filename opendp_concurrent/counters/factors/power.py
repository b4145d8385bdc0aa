"""Power factors: C has the generating function (1 - z)^-s, cut after some bands.

c_0 = 1 and c_k = c_{k-1} (1 - (1-s)/k), for 0 < s <= 1, so that c never rises. With s = 1/2 and all
bands, C is the square root of the prefix sums [FHU23]. A unit that comes back after b steps is in
few of the same releases if there are b bands, and then a larger s is better [CGMMRTX23].

c is rounded down to integers times 2^-fine, so the norm of C is exact. A step needs time and memory
that grow with the bands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exact.participations import ONCE, Participations, spaced_square
from ...queryables.saved import fields, require, rows, whole
from ...types import Json
from ..dyadic import plain, unplain

PARTS = 64  # s is a multiple of 1/64
MOST_STEPS = 2**20
EXTRA = 32  # more bits while c is computed
HALF = 31  # bits of the lower half of a value
ROOM = 62  # sums of products with a half are at most 2^62
LARGEST = 1 << ROOM


@lru_cache(maxsize=4)
def coefficients(power: int, bands: int, fine: int) -> NDArray[np.int64]:
    """Return c_0, c_1, ..., times 2^fine, rounded down; s is ``power``/64."""
    value, found = 1 << fine + EXTRA, np.empty(bands, dtype=np.int64)
    for step in range(bands):
        found[step] = value >> EXTRA
        value = value * (PARTS * step + power) // (PARTS * step + PARTS)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def row_sum(power: int, bands: int) -> int:
    """Return a bound on the sum of c."""
    rounded = int(coefficients(power, bands, EXTRA).sum())  # at most 2^52
    return -(-(rounded + 2 * bands) >> EXTRA)


@lru_cache(maxsize=64)
def square(power: int, bands: int, fine: int, steps: int, unit: Participations) -> int:
    """Return the squared norm of the largest move by a unit, times 4^fine."""
    return spaced_square(coefficients(power, bands, fine).tolist(), steps, unit)


class PowerCoder:
    """The last values of one stream. Both coders keep x, which follows from C x and earlier x.

    Values have at most 63 bits, and are kept in two halves, so that the products with c fit.
    """

    __slots__ = ("_count", "_fine", "_kept", "_steps", "_weights")

    def __init__(self, weights: NDArray[np.int64], fine: int) -> None:
        self._weights, self._fine = weights[:0:-1], fine  # from the oldest to the last
        self._kept: Any = None
        self._count = self._steps = 0

    def encode(self, value: Json) -> Json:
        """Take the next entry of x, and return that of C x."""
        past = self._past()
        self._append(value)
        return value + past

    def decode(self, value: Json) -> Any:
        """Take the next entry of C x + z, and return that of C^-1 of it."""
        value = value - self._past()
        self._append(value)
        return value

    def _past(self) -> Any:
        """Return the sum of c_k x_{t-k} over k > 0, rounded down."""
        if not self._count:
            return 0
        last = self._kept[max(0, self._count - len(self._weights)) : self._count]
        sums = np.tensordot(self._weights[-len(last) :], last, 1)
        high, low = sums.tolist() if sums.ndim == 1 else sums.astype(object)
        return (high << HALF) + low >> self._fine

    def _append(self, value: Json) -> None:
        self._steps += 1
        bands = len(self._weights)
        if not bands:
            return
        shape = np.shape(value)
        if self._kept is None:
            self._kept = np.zeros((16, 2, *shape), np.int64)
        if self._kept.shape[2:] != shape:  # the first item of a category
            self._kept = np.zeros((*self._kept.shape, *shape), np.int64) + self._kept[..., None]
        if self._count == len(self._kept):
            if self._count >= 2 * bands:
                self._kept[:bands], self._count = self._kept[-bands:], bands
            else:
                self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)])
        # noise stays below this, but in 128 deviations
        value = np.minimum(np.maximum(value, -LARGEST), LARGEST) if shape else _clamped(value)
        self._kept[self._count] = value >> HALF, value & (1 << HALF) - 1
        self._count += 1

    def to_record(self) -> Json:
        """Return the number of steps, and the values that are kept, as a JSON value."""
        first = max(0, self._count - len(self._weights))
        past = [] if self._kept is None else self._kept[first : self._count].astype(object)
        return {"steps": self._steps, "past": [plain((high << HALF) + low) for high, low in past]}

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        steps, past = fields(record, "steps", "past")
        self._steps, bands = 0, len(self._weights)
        require(len(rows(past)) == min(whole(steps), bands))
        for value in past:
            self._append(unplain(value, LARGEST))
        self._steps = steps

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shape of the items, if any are kept."""
        return set() if self._kept is None else {self._kept.shape[2:]}

    @property
    def steps(self) -> int | None:
        """Number of steps so far."""
        return self._steps


def _clamped(value: int) -> int:
    return max(-LARGEST, min(LARGEST, value))


@dataclass(frozen=True)
class PowerFactor:
    """A power of 1 - z, cut after some bands.

    :ivar horizon: largest number of steps
    :ivar power: s, in parts of 1/64
    :ivar bands: number of entries of c that are not zero
    """

    horizon: int
    power: int
    bands: int

    @property
    def fine(self) -> int:
        """The bits of c: such that sums of its products with halves of values fit."""
        return ROOM - HALF - self.gain().bit_length()

    def gain(self) -> int:
        """Return a bound on the sum of each row of C."""
        return row_sum(self.power, self.bands)

    def norm_squared(self, bits: int, unit: Participations = ONCE) -> int:
        """Return the squared norm of the largest move by a unit, times 4^bits, rounded up."""
        exact = square(self.power, self.bands, self.fine, self.horizon, unit)
        return -(-(exact << 2 * bits) >> 2 * self.fine)

    def coder(self, bits: int) -> PowerCoder:
        """Return the state before the first step."""
        del bits  # of values, which are integers on any grid
        return PowerCoder(coefficients(self.power, self.bands, self.fine), self.fine)


def square_root(horizon: int) -> PowerFactor:
    """Return the square root of the prefix sums."""
    return PowerFactor(horizon, PARTS // 2, horizon)
