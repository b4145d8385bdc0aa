"""Numbers as whole steps of a grid, so that comparisons under noise are exact.

A proof that shifts noise holds for reals. On floats, rounding breaks it. Here a query's answer is
rounded down to a whole step, which keeps the proof valid: answers that differ by at most d steps,
d an integer, still differ by at most d steps after rounding.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import ceil, frexp, inf, ldexp
from numbers import Number
from operator import index
from typing import Any, cast

from ..arguments import checks
from ..arguments.checks import shown
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Argument

LARGEST = 2**1024
FINE = 30  # a sensitivity is at least 2^FINE steps, unless it is an integer


@dataclass(frozen=True, slots=True)
class Steps:
    """A grid of multiples of 2^k.

    :ivar k: exponent of the step
    :ivar whole: whether numbers are integers, in and out
    """

    k: int
    whole: bool

    @staticmethod
    def for_sensitivity(sensitivity: Argument) -> Steps:
        """Return the grid: the integers for an integer sensitivity, else a grid of tiny steps."""
        if isinstance(sensitivity, int) and not isinstance(sensitivity, bool):
            size = checks.count(sensitivity=sensitivity)
            if size > 2**53:
                raise InvalidValueError(f"sensitivity ({shown(sensitivity)}) must be at most 2**53")
            return Steps(0, whole=True)
        real = checks.number(sensitivity=sensitivity)
        if not 1e-200 <= real <= 1e200:
            raise InvalidValueError(
                f"sensitivity ({shown(sensitivity)}) must be from 1e-200 to 1e200"
            )
        return Steps(frexp(real)[1] - 1 - FINE, whole=False)

    def up(self, value: float) -> int:
        """Return the least number of steps that is at least ``value``."""
        return ceil(ldexp(value, -self.k))

    def of(self, name: str, value: Argument) -> int:
        """Return whole steps in ``value``, rounded down. Errors have ``name``, never the value."""
        if not isinstance(value, Number):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        with suppress(TypeError):  # an integer, of NumPy's too
            value = index(cast("Any", value))
        if self.whole and isinstance(value, int):
            return value
        as_ratio = getattr(value, "as_integer_ratio", None)
        if not callable(as_ratio):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        try:
            numerator, denominator = as_ratio()
        except (ValueError, ArithmeticError):  # not a number, or infinite
            denominator = 0
        if denominator == 0:  # outside of the handler, whose error contains the value
            raise InvalidValueError(f"{name} must be finite")
        if not abs(numerator) < LARGEST * denominator:
            raise InvalidValueError(
                f"{name} must be in the range of doubles, at most about 1.8e308"
            )
        if self.k <= 0:
            return int((numerator << -self.k) // denominator)
        return int(numerator // (denominator << self.k))

    def level(self, name: str, value: Argument) -> int:
        """Return whole steps in a threshold, rounded up: the least whole answer that is above."""
        if isinstance(value, bool) or not isinstance(value, Number):
            raise InvalidTypeError(f"{name} must be a number, found {type(value).__name__}")
        try:
            down = -cast("Any", value)
        except ArithmeticError as error:
            raise InvalidValueError(f"{name} must be finite") from error
        return -self.of(name, down)

    def scale(self, **argument: Any) -> float:
        """Return a noise scale in steps, or raise an error with its name."""
        ((name, value),) = argument.items()
        finite = checks.finite(**argument)
        try:
            steps = ldexp(finite, -self.k)
        except OverflowError:
            steps = inf
        if not 0.0 < steps <= 2.0**62:
            raise InvalidValueError(
                f"{name} ({shown(value)}) must be above 0, and at most about 2**31 sensitivities"
            )
        return steps

    def value(self, steps: int) -> int | float:
        """Return the number of this many steps, rounded to a double."""
        if self.whole:
            return steps
        try:
            return ldexp(float(steps), self.k)
        except OverflowError:
            return float("inf") if steps > 0 else float("-inf")
