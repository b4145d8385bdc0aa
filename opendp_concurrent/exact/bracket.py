"""Formulas evaluated between two decimals, with rounding that is proven by construction.

A :class:`Bracket` contains the exact value. Every operation rounds its ends outward. Arithmetic is
rounded in the direction of each end; ``sqrt``, ``exp`` and ``ln``, which the standard library
rounds to nearest, are moved outward by one more unit in the last place. :func:`upper` evaluates a
formula with more and more digits until the bracket is far narrower than a double, and rounds up
once. If no number of digits suffices, the result is still a valid bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from math import inf, nextafter
from typing import TypeAlias, Union

NARROW = Decimal("1e-26")  # relative width below which a value is known well enough for a double
LARGEST, MINUS_LARGEST = Decimal("1e17"), Decimal("-1e17")  # beyond, exp leaves the decimals
TINY = Decimal("1e-40000000000000000")  # above exp(MINUS_LARGEST)
INFINITE, MINUS_INFINITE = Decimal("Infinity"), Decimal("-Infinity")

Operation: TypeAlias = Callable[[Decimal, Decimal], Decimal]


@dataclass(frozen=True, slots=True)
class Digits:
    """The number of digits that brackets work with, as contexts that round down and up."""

    number: int
    down: Context
    up: Context

    def __call__(self, value: Real) -> Bracket:
        """Bracket that equals an integer, double or decimal."""
        if isinstance(value, Bracket):
            return value
        exact = Decimal.from_float(value) if isinstance(value, float) else Decimal(value)
        return Bracket(exact, exact, self)

    def between(self, lower: Decimal, upper: Decimal) -> Bracket:
        """Bracket with these ends."""
        return Bracket(lower, upper, self)


@dataclass(frozen=True, slots=True)
class Bracket:
    """lower <= exact <= upper; operations round outward."""

    lower: Decimal
    upper: Decimal
    digits: Digits

    def __add__(self, other: Real) -> Bracket:
        that, digits = self.digits(other), self.digits
        return digits.between(
            digits.down.add(self.lower, that.lower), digits.up.add(self.upper, that.upper)
        )

    def __neg__(self) -> Bracket:
        return self.digits.between(self.upper.copy_negate(), self.lower.copy_negate())

    def __sub__(self, other: Real) -> Bracket:
        return self + (-self.digits(other))

    def __mul__(self, other: Real) -> Bracket:
        that, down, up = self.digits(other), self.digits.down, self.digits.up
        if self.lower >= 0 and that.lower >= 0:
            return self.digits.between(
                down.multiply(self.lower, that.lower), up.multiply(self.upper, that.upper)
            )
        return self._over_ends(that, down.multiply, up.multiply)

    def __truediv__(self, other: Real) -> Bracket:
        """Quotient; unbounded where the divisor may be zero."""
        that, digits = self.digits(other), self.digits
        if that.lower <= 0 <= that.upper:
            return digits.between(MINUS_INFINITE, INFINITE)
        return self._over_ends(that, digits.down.divide, digits.up.divide)

    def _over_ends(self, other: Bracket, down: Operation, up: Operation) -> Bracket:
        """Least and largest result over the ends, for an operation monotone in each argument."""
        ends = [(a, b) for a in (self.lower, self.upper) for b in (other.lower, other.upper)]
        return self.digits.between(min(down(a, b) for a, b in ends), max(up(a, b) for a, b in ends))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Real) -> Bracket:
        return self.digits(other) - self

    def __rtruediv__(self, other: Real) -> Bracket:
        return self.digits(other) / self

    def exp(self) -> Bracket:
        """E to this power."""
        down, up = self.digits.down, self.digits.up
        low, high = self.lower, self.upper
        lower = Decimal(0) if low < MINUS_LARGEST else down.next_minus(down.exp(min(low, LARGEST)))
        if high > LARGEST:
            return self.digits.between(lower, INFINITE)
        upper = TINY if high < MINUS_LARGEST else up.next_plus(up.exp(high))
        return self.digits.between(lower, upper)

    def ln(self) -> Bracket:
        """Natural logarithm of a positive number."""
        down, up = self.digits.down, self.digits.up
        lower = down.next_minus(down.ln(self.lower)) if self.lower > 0 else MINUS_INFINITE
        return self.digits.between(lower, up.next_plus(up.ln(self.upper)))

    def sqrt(self) -> Bracket:
        """Square root of a nonnegative number."""
        down, up = self.digits.down, self.digits.up
        lower = down.next_minus(down.sqrt(self.lower)) if self.lower > 0 else Decimal(0)
        return self.digits.between(lower, up.next_plus(up.sqrt(self.upper)))

    def is_narrow(self) -> bool:
        """Whether the exact value is known to far more digits than a double has."""
        if not (self.lower.is_finite() and self.upper.is_finite()):
            return False  # the test below holds for two infinities
        up, smaller = self.digits.up, min(self.lower.copy_abs(), self.upper.copy_abs())
        return up.subtract(self.upper, self.lower) <= up.multiply(NARROW, smaller)


Real: TypeAlias = Union[Bracket, Decimal, float]  # noqa: UP007 (evaluated on Python 3.10)
Formula: TypeAlias = Callable[[Digits], Bracket]


def _digits(number: int) -> Digits:
    traps = [DivisionByZero, InvalidOperation, Overflow]
    down, up = (
        Context(prec=number, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=rounding, traps=traps)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return Digits(number, down, up)


WORKING = tuple(_digits(number) for number in (50, 100, 200, 400, 800, 1600))


def evaluate(formula: Formula, enough: Callable[[Bracket], bool] = Bracket.is_narrow) -> Bracket:
    """Evaluate ``formula`` with the fewest digits that are enough, else with the most there are."""
    known = WORKING[0].between(MINUS_INFINITE, INFINITE)
    for digits in WORKING:
        try:
            bracket = formula(digits)
            if enough(bracket):
                return bracket
        except (Overflow, InvalidOperation):
            continue  # an end left the range, because the bracket was too wide
        known = bracket
    return known


def is_nonnegative(formula: Formula) -> bool:
    """Whether ``formula`` is certainly at least 0; false if that cannot be shown."""
    known = evaluate(formula, lambda bracket: bracket.lower >= 0 or bracket.upper < 0)
    return known.lower >= 0


def upper(formula: Formula) -> float:
    """Least double at or above the upper end of ``formula``."""
    return double_up(evaluate(formula).upper)


def lower(formula: Formula) -> float:
    """Largest double at or below the lower end of ``formula``."""
    return -double_up(evaluate(formula).lower.copy_negate())


def double_up(value: Decimal) -> float:
    """Least double that is at least ``value``; infinity above the largest double."""
    nearest = float(value)
    return nextafter(nearest, inf) if Decimal.from_float(nearest) < value else nearest
