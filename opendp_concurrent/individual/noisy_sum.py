"""Queries of the individual filter: noisy sums of one bounded number per person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, frexp, ldexp
from typing import Any

from opendp.mod import Function, Measurement, Odometer, Queryable, Transformation

from ..arguments import checks
from ..arguments.owned import plain
from ..errors import InvalidTypeError, InvalidValueError
from ..native import opendp as _native

FINE = 30  # a bound is from 2^(FINE - 1) to 2^FINE steps
SMALLEST_BOUND, LARGEST_BOUND = 1e-200, 1e200
FINEST_NOISE, COARSEST_NOISE = 2.0**-30, 2.0**62  # scales, in steps
NOT_ON_ROWS = (
    Function,
    Measurement,
    Odometer,
    Queryable,
    Transformation,
    _native.PARTIAL_CONSTRUCTOR,
    type,
)


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class NoisySum:
    """A noisy sum of one number per person.

    ``per_row`` takes some rows of the data and returns a NumPy array with one number per row. Its
    author promises that the number of a row depends on that row only: not on other rows, on its
    position, on earlier queries, or on chance. The author also promises that ``per_row`` never
    changes the rows, and never raises because of them. Numbers are clipped to ``[-bound, bound]``
    and rounded to multiples of a power of two, at most 2^-29 of ``bound``; NaN counts as 0.

    :ivar per_row: function of rows, which returns booleans, integers or floats
    :ivar bound: largest absolute value of one person's number, above 0
    :ivar scale: scale of the noise, in units of the numbers; public
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import numpy as np
    >>> oc.m.NoisySum(lambda rows: rows[:, 0] > 40, bound=1, scale=10.0).bound
    1
    """

    per_row: Callable[[Any], Any]
    bound: float
    scale: float

    def __post_init__(self) -> None:
        if not callable(self.per_row) or isinstance(self.per_row, NOT_ON_ROWS):
            raise InvalidTypeError(
                "per_row must be a function of rows that returns one number for each, "
                f"found {type(self.per_row).__name__}"
            )
        for name in ("bound", "scale"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        lowest, highest = scale_limits(bound=self.bound)
        scale = checks.number(scale=self.scale)
        if not lowest <= scale <= highest:
            raise InvalidValueError(
                f"scale ({self.scale}) must be from {lowest:.3g} to {highest:.3g} for "
                f"bound ({self.bound})"
            )


def step_exponent(**argument: Any) -> int:
    """Return k such that values with this bound are rounded to multiples of 2^k."""
    ((name, bound),) = argument.items()
    real = checks.number(**argument)
    if not SMALLEST_BOUND <= real <= LARGEST_BOUND:
        raise InvalidValueError(
            f"{name} ({bound}) must be from {SMALLEST_BOUND} to {LARGEST_BOUND}"
        )
    return frexp(real)[1] - FINE


def scale_limits(**argument: Any) -> tuple[float, float]:
    """Return the smallest and the largest noise scale for this bound; exact."""
    exponent = step_exponent(**argument)
    return ldexp(FINEST_NOISE, exponent), ldexp(COARSEST_NOISE, exponent)


def whole_steps(bound: float, exponent: int) -> int:
    """Return the bound in whole steps, rounded down; values are clipped to it. Exact."""
    return floor(ldexp(bound, -exponent))
