"""Factors of the prefix sums: a column norm that is rounded up, and the integers they compute.

The matrix A of the prefix sums is written as L C. What is released is C x + z, with discrete
Gaussian noise z, on a grid of 2^-bits. C is lower triangular, so release t depends on the items up
to step t. The answers are L (C x + z), which is postprocessing. A *factor* computes C x in
integers, rounded to the grid by a function of x alone, and it inverts this computation.
"""

from __future__ import annotations

from math import frexp, isqrt
from typing import Any, Protocol

from ...exact.participations import ONCE, Participations
from ...types import Json

SCALE_BITS = 55  # noise of 2^55 steps of the grid is below 2^62 in 128 deviations
SUM_BITS = 60  # C x is at most 2^61 steps of the grid
SLACK = 3  # steps of the grid, for each step of the stream


class Coder(Protocol):
    """State of a factor, for one stream of integers or of arrays of integers."""

    def encode(self, value: Json) -> Json:
        """Take the next entry of x, and return that of C x; both in steps of the grid."""

    def decode(self, value: Json) -> Any:
        """Take the next entry of C x + z, and return that of C^-1 of it."""

    def to_record(self) -> Json:
        """Return the state as a JSON value."""

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of what it keeps: those of the items, if there were any."""

    @property
    def steps(self) -> int | None:
        """Number of steps so far; None if it is not kept."""


class Factor(Protocol):
    """A matrix C."""

    @property
    def horizon(self) -> int:
        """Largest number of steps."""

    def gain(self) -> int:
        """Return a bound on the sum of each row of C."""

    def norm_squared(self, bits: int, unit: Participations = ONCE) -> int:
        """Return a bound on the squared norm of C x, times 4^bits, for a unit's items of size 1."""

    def coder(self, bits: int) -> Coder:
        """Return the state before the first step, on a grid of 2^-bits."""


def grid_bits(factor: Factor, scale: float, largest: int) -> int:
    """Return the number of bits of the grid: as fine as 64-bit noise and sums allow."""
    return min(SCALE_BITS - frexp(scale)[1], SUM_BITS - (factor.gain() * largest).bit_length())


def root_up(square: int) -> int:
    """Return the least integer whose square is at least ``square``."""
    root = isqrt(square)
    return root + (root * root < square)


def sensitivity(factor: Factor, bits: int, shift: int, unit: Participations = ONCE) -> int:
    """Return how far one unit moves all releases together, in steps of the grid; rounded up.

    Release t moves by at most the sum of |C_tj| ``shift`` over the unit's items j, and two steps of
    the grid for rounding. One more step is for Gaussian DP, whose certificate for a shift of m
    steps is that of m + 1. In a histogram, each category that the unit has items in is rounded.
    """
    exact = root_up(factor.norm_squared(bits, unit) * shift * shift)
    return exact + SLACK * root_up(factor.horizon * unit.within(factor.horizon))
