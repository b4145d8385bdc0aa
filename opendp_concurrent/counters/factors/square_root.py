"""The square-root factor: C and L are the square root of the prefix sums, with all of the past.

f(0) = 1 and f(k) = f(k-1) (1 - 1/(2k)) [FHU23]. Here f is rounded down to integers times 2^-fine.
So C is exact, and C x is a sum of products of 64-bit integers. It is rounded down once to the grid.
A step needs O(T) time and the state O(T) memory: this factor is for short streams, and to compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...queryables.saved import fields, require, rows
from ...types import Json

MOST_STEPS = 2**20
WORD = 61  # sums of products are below 2^62
EXTRA = 32  # more bits while f is computed


@lru_cache(maxsize=4)
def coefficients(horizon: int, fine: int) -> NDArray[np.int64]:
    """Return f(0), ..., f(T-1), times 2^fine, rounded down."""
    value, found = 1 << fine + EXTRA, np.empty(horizon, dtype=np.int64)
    for step in range(horizon):
        found[step] = value >> EXTRA
        value = value * (2 * step + 1) // (2 * step + 2)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=16)
def squares(horizon: int, fine: int) -> int:
    """Return the sum of the squared coefficients; exact."""
    return sum(one * one for one in coefficients(horizon, fine).tolist())


@lru_cache(maxsize=4)
def doubles(horizon: int, fine: int) -> NDArray[np.float64]:
    """Return the same coefficients as doubles."""
    found = np.asarray(coefficients(horizon, fine) * 2.0**-fine, dtype=np.float64)
    found.flags.writeable = False
    return found


class SquareRootCoder:
    """The items of one stream, and what was decoded of it; one of the two is used."""

    __slots__ = ("_bits", "_drop", "_fine", "_horizon", "_largest", "_past", "_steps")

    def __init__(self, horizon: int, fine: int, bits: int, largest: int) -> None:
        self._horizon, self._fine, self._bits, self._largest = horizon, fine, bits, largest
        self._drop = fine - bits
        self._past: Any = None
        self._steps = 0

    def encode(self, value: Json) -> Json:
        """Take the next entry of x, and return that of C x."""
        self._append(value >> self._bits, np.int64)
        weights = coefficients(self._horizon, self._fine)[: self._steps][::-1]
        return plain_integers(weights @ self._past[: self._steps]) >> self._drop

    def decode(self, value: Json) -> Any:
        """Take the next entry of C x + z, and return that of C^-1 of it, to about 2^-53."""
        steps = self._steps
        if steps:
            weights = doubles(self._horizon, self._fine)[1 : steps + 1][::-1]
            value = value - rounded(weights @ self._past[:steps])
        self._append(value, np.float64)
        return value

    def _append(self, value: Json, dtype: Any) -> None:
        if self._past is None:
            self._past = np.zeros((16, *np.shape(value)), dtype)
        if self._past.shape[1:] != np.shape(value):  # the first item of a category
            scalars, self._past = self._past, np.zeros((len(self._past), *np.shape(value)), dtype)
            self._past += scalars[:, None]
        if self._steps == len(self._past):
            self._past = np.concatenate([self._past, np.zeros_like(self._past)])
        self._past[self._steps] = value
        self._steps += 1

    def to_record(self) -> Json:
        """Return the state as a JSON value."""
        past = [] if self._past is None else self._past[: self._steps].tolist()
        whole = self._past is not None and self._past.dtype == np.int64
        return {"past": past, "whole": whole}

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""
        past, is_whole = fields(record, "past", "whole")
        self._steps = len(rows(past, most=self._horizon))
        require(type(is_whole) is bool)
        dtype = np.int64 if is_whole else np.float64
        self._past = np.array(past, dtype) if self._steps else None
        if self._past is not None:
            require(bool(np.isfinite(self._past).all()))
            require(not is_whole or bool((np.abs(self._past) <= self._largest).all()))

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shape of the items, if there are any."""
        return set() if self._past is None else {self._past.shape[1:]}

    @property
    def steps(self) -> int | None:
        """Number of steps so far."""
        return self._steps


def plain_integers(value: Json) -> Any:
    """Return Python's integers, which do not overflow."""
    return value.astype(object) if isinstance(value, np.ndarray) else int(value)


def rounded(value: Json) -> Any:
    """Return the nearest integers, as Python's."""
    if isinstance(value, np.ndarray):
        return np.array([round(one) for one in value.tolist()], dtype=object)
    return round(float(value))


@dataclass(frozen=True)
class SquareRootFactor:
    """The square root of the prefix sums.

    :ivar horizon: largest number of steps
    :ivar largest: largest item
    """

    horizon: int
    largest: int

    @property
    def _fine(self) -> int:
        return WORD - (self.gain() * self.largest).bit_length()

    def gain(self) -> int:
        """Return a bound on the sum of f: 2T f(T) <= 2 sqrt(T/π) < 2 sqrt(T)."""
        return min(2 * (isqrt(self.horizon) + 1), self.horizon)

    def norm_squared(self, bits: int) -> int:
        """Return the squared norm of the first column, times 4^bits, rounded up."""
        return -(-squares(self.horizon, self._fine) >> 2 * (self._fine - bits))

    def coder(self, bits: int) -> SquareRootCoder:
        """Return the state before the first step."""
        return SquareRootCoder(self.horizon, self._fine, bits, self.largest)
