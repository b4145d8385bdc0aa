"""Real numbers between two decimals: formulas whose rounding is proven by construction.

A :class:`Bracket` contains the exact value. Every operation rounds its ends outward: arithmetic in
the direction of each end; ``sqrt``, ``exp`` and ``ln``, which the standard library rounds to
nearest, by one unit in the last place more. :func:`upper` evaluates a formula with more and more
digits until it is known far beyond a double, and rounds up once. Where it is never known so well,
the result is a valid bound all the same.
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

NARROW = Decimal("1e-26")  # relative width at which a value is known well enough for a double
LARGEST, MINUS_LARGEST = Decimal("1e17"), Decimal("-1e17")  # beyond, exp leaves the decimals
TINY = Decimal("1e-40000000000000000")  # above exp(MINUS_LARGEST)
INFINITE, MINUS_INFINITE = Decimal("Infinity"), Decimal("-Infinity")
_BEYOND = Decimal("1e400")  # no finite double


@dataclass(frozen=True, slots=True)
class Digits:
    """The number of digits that brackets work with, as contexts that round down and up."""

    number: int
    down: Context
    up: Context

    def __call__(self, value: Real) -> Bracket:
        """Bracket of an integer, double or decimal, which it equals."""
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

    def _from(self, lower: Decimal, upper: Decimal) -> Bracket:
        return Bracket(lower, upper, self.digits)

    def __add__(self, other: Real) -> Bracket:
        that, digits = self.digits(other), self.digits
        return self._from(
            digits.down.add(self.lower, that.lower), digits.up.add(self.upper, that.upper)
        )

    def __neg__(self) -> Bracket:
        return self._from(self.upper.copy_negate(), self.lower.copy_negate())

    def __sub__(self, other: Real) -> Bracket:
        return self + (-self.digits(other))

    def __mul__(self, other: Real) -> Bracket:
        that, down, up = self.digits(other), self.digits.down, self.digits.up
        if self.lower >= 0 and that.lower >= 0:
            return self._from(
                down.multiply(self.lower, that.lower), up.multiply(self.upper, that.upper)
            )
        ends = [(a, b) for a in (self.lower, self.upper) for b in (that.lower, that.upper)]
        return self._from(
            min(down.multiply(a, b) for a, b in ends), max(up.multiply(a, b) for a, b in ends)
        )

    def __truediv__(self, other: Real) -> Bracket:
        """Quotient; unbounded where the divisor may be zero."""
        that, down, up = self.digits(other), self.digits.down, self.digits.up
        if that.lower <= 0 <= that.upper:
            return self._from(MINUS_INFINITE, INFINITE)
        ends = [(a, b) for a in (self.lower, self.upper) for b in (that.lower, that.upper)]
        return self._from(
            min(down.divide(a, b) for a, b in ends), max(up.divide(a, b) for a, b in ends)
        )

    def __radd__(self, other: Real) -> Bracket:
        return self + other

    def __rsub__(self, other: Real) -> Bracket:
        return self.digits(other) - self

    def __rmul__(self, other: Real) -> Bracket:
        return self * other

    def __rtruediv__(self, other: Real) -> Bracket:
        return self.digits(other) / self

    def exp(self) -> Bracket:
        """E to this power."""
        down, up = self.digits.down, self.digits.up
        low, high = self.lower, self.upper
        lower = Decimal(0) if low < MINUS_LARGEST else down.next_minus(down.exp(min(low, LARGEST)))
        if high > LARGEST:
            return self._from(lower, INFINITE)
        return self._from(lower, TINY if high < MINUS_LARGEST else up.next_plus(up.exp(high)))

    def ln(self) -> Bracket:
        """Natural logarithm of what is positive."""
        down, up = self.digits.down, self.digits.up
        return self._from(
            down.next_minus(down.ln(self.lower)) if self.lower > 0 else MINUS_INFINITE,
            up.next_plus(up.ln(self.upper)),
        )

    def sqrt(self) -> Bracket:
        """Square root of what is not negative."""
        down, up = self.digits.down, self.digits.up
        return self._from(
            down.next_minus(down.sqrt(self.lower)) if self.lower > 0 else Decimal(0),
            up.next_plus(up.sqrt(self.upper)),
        )

    def is_narrow(self) -> bool:
        """Whether the exact value is known far beyond a double."""
        if not (self.lower.is_finite() and self.upper.is_finite()):
            return False  # else infinities would look as near to each other as to 0
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
    """Evaluate ``formula`` with as many digits as are enough, or with the most there are."""
    known = WORKING[0].between(MINUS_INFINITE, INFINITE)
    for digits in WORKING:
        try:
            bracket = formula(digits)
            if enough(bracket):
                return bracket
        except (Overflow, InvalidOperation):
            continue  # so wide that an end left the range
        known = bracket
    return known


def is_nonnegative(formula: Formula) -> bool:
    """Whether ``formula`` is certainly at least 0; false when that cannot be told."""
    known = evaluate(formula, lambda bracket: bracket.lower >= 0 or bracket.upper < 0)
    return known.lower >= 0


def upper(formula: Formula) -> float:
    """Least double at or above the upper end of ``formula``."""
    return double_up(evaluate(formula).upper)


def lower(formula: Formula) -> float:
    """Largest double at or below the lower end of ``formula``."""
    return -double_up(evaluate(formula).lower.copy_negate())


def double_up(value: Decimal) -> float:
    """Least double that is at least ``value``; infinity above the largest."""
    nearest = float(value) if value.copy_abs() < _BEYOND else inf if value > 0 else -inf
    return nextafter(nearest, inf) if Decimal.from_float(nearest) < value else nearest
