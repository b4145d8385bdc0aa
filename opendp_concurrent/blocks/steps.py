"""How far neighbours are apart, in steps that change one block each, and what that costs."""

from __future__ import annotations

from fractions import Fraction

from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..measures import CompositionMeasure
from ..types import Distance, Loss


class BlockSteps:
    """Group privacy along a path of datasets, from the budget of a block.

    :param factor: how many records, or parts of a unit, differ at distance 1
    :param units: whether the distance counts units of a table that does not change, each of which
        may have rows in several blocks
    """

    def __init__(self, measure: CompositionMeasure, factor: int, units: bool) -> None:
        self._measure, self._factor, self._units = measure, factor, units
        if units and factor > 1 and measure.sequential_reason:
            raise UnsupportedMeasureError(
                f"a unit has rows in up to {factor} blocks, whose filters are not known to compose "
                f"under {measure.name}: {measure.reason}; truncate to one block, or take another "
                "measure"
            )

    def share(self, d_in: Distance, d_out: Loss) -> Loss:
        """Return the budget of each block."""
        size = self._size(d_in)
        if size == 0:
            raise InvalidValueError(f"d_in ({d_in}) must be at least 1, or d_out bounds nothing")
        share = self._measure.member_loss(d_out, size)
        if not self._units or self._factor == 1:
            return share
        return self._measure.split(share, [Fraction(1)] * self._factor)[0]

    def loss(self, d_in: Distance, share: Loss) -> Loss:
        """Return the loss at a distance, if each block has this budget."""
        size, measure = self._size(d_in), self._measure
        if size == 0:
            return measure.zero
        if self._units and self._factor > 1:
            accounting = measure.fixed_sum()
            share = accounting.start(measure).after(share, self._factor).loss
        return measure.validate("d_out", measure.group_loss(share, size))

    def _size(self, d_in: Distance) -> int:
        """Return how many steps neighbours are apart."""
        if not isinstance(d_in, int):
            raise InvalidTypeError(f"d_in ({d_in!r}) must be an integer, to be divided over blocks")
        size = d_in if self._units else d_in * self._factor
        if size > self._measure.most_parallel:
            raise InvalidValueError(
                f"neighbours are {size} steps apart, which must be at most "
                f"{self._measure.most_parallel} under {self._measure.name}; pass a smaller d_in"
            )
        return size
