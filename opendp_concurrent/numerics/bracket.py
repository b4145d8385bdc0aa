"""Formulas evaluated between two decimals, with rounding that is proven by construction.

A :class:`Bracket` contains the exact value. Every operation rounds its ends outward. Arithmetic is
rounded in the direction of each end; ``sqrt``, ``exp`` and ``ln``, which the standard library
rounds to nearest, are moved outward by one more unit in the last place. :func:`upper` evaluates a
formula with more and more digits until the bracket is far narrower than a double, and rounds up
once. If no number of digits suffices, the result is still a valid bound.
"""

from __future__ import annotations

import struct
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
from fractions import Fraction
from math import inf, isfinite, isqrt, ldexp, nan, nextafter
from sys import float_info
from typing import Any, TypeAlias, Union

from ..errors import Argument

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


def double_up(value: Decimal | Fraction | int) -> float:
    """Least double that is at least ``value``; infinity above the largest double."""
    try:
        nearest = float(value)
    except OverflowError:
        return inf
    is_decimal = isinstance(value, Decimal)
    below = (Decimal.from_float if is_decimal else Fraction.from_float)(nearest) < value
    return nextafter(nearest, inf) if below else nearest


# Exact sums of doubles, rounded once and in a stated direction.
#
# Every finite double is an integer multiple of 2**-1074, the least positive double. A sum is kept
# as that integer, its "units", so it is exact in any order. Only the reported number is rounded.

_PRECISION = 53
SMALLEST = 1074  # the least positive double is 2**-SMALLEST


def to_units(value: float | Fraction) -> int:
    """Number of units in a finite nonnegative number; exact for doubles, else rounded down."""
    numerator, denominator = value.as_integer_ratio()
    return (numerator << SMALLEST) // denominator


def from_units_up(units: int) -> float:
    """Least double that is at least ``units``; infinity above the largest double."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(-(-units >> excess), excess - SMALLEST)
    except OverflowError:
        return inf


def from_units_down(units: int) -> float:
    """Largest double that is at most ``units``."""
    excess = units.bit_length() - _PRECISION
    if excess <= 0:
        return ldexp(units, -SMALLEST)
    try:
        return ldexp(units >> excess, excess - SMALLEST)
    except OverflowError:
        return float_info.max


def split(total: float, weights: list[Fraction]) -> list[float]:
    """Shares of ``total`` in proportion to ``weights``, rounded down: their sum is not above it."""
    units, whole = to_units(total), sum(weights)
    return [from_units_down(int(units * weight / whole)) for weight in weights]


def sqrt_down(square: int) -> float:
    """Largest double whose square is at most ``square`` * 2**(-2 * SMALLEST)."""
    return from_units_down(isqrt(square))


def sqrt_up(square: int) -> float:
    """Least double whose square is at least ``square`` * 2**(-2 * SMALLEST)."""
    root = isqrt(square)
    return from_units_up(root + (root * root < square))


def ordinal(value: float) -> int:
    """How many nonnegative doubles are below a nonnegative double."""
    ((number,),) = (struct.unpack("<q", struct.pack("<d", value)),)
    return int(number)


def double(number: int) -> float:
    """Inverse of :func:`ordinal`."""
    ((value,),) = (struct.unpack("<d", struct.pack("<q", number)),)
    return float(value)


_INFINITY = ordinal(inf)


def least_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Least double >= 0 for which a predicate that rises holds; infinity if it holds for none.

    :param near: where the search starts
    """
    low, high = -1, _INFINITY  # holds is false at low and true at high
    probe, step = min(ordinal(near), _INFINITY - 1), 1
    while high - low > 1:
        if holds(double(probe)):
            high, onward = probe, probe - step
        else:
            low, onward = probe, probe + step
        step *= 8
        probe = onward if low < onward < high else (low + high) // 2
    return double(high)


def largest_double(holds: Callable[[float], bool], near: float = 1.0) -> float:
    """Largest finite double >= 0 for which a predicate that falls holds; 0 if it holds for none."""
    beyond = least_double(lambda value: not holds(value), near)
    return double(max(0, ordinal(beyond) - 1))


# Doubles that are halfway between two others, below a reciprocal, or shares of a square.


def halfway(low: float, high: float) -> float:
    """Double in the middle of those from ``low`` to ``high``; ``low`` if none is between them.

    They are counted, not measured: 52 halvings separate all doubles from 1 to 2.
    """
    first, last = (-ordinal(-one) if one < 0 else ordinal(abs(one)) for one in (low, high))
    middle = (first + last) // 2
    return -double(-middle) if middle < 0 else double(middle)


def reciprocal_down(loss: float) -> float:
    """Largest double at most 1/loss: the noise multiplier, rounded to less noise."""
    nearest = min(1.0 / loss, 1.7976931348623157e308)
    return nearest if Fraction(nearest) * Fraction(loss) <= 1 else nextafter(nearest, 0.0)


def split_squares(d_out: float, weights: list[Fraction]) -> list[float]:
    """Shares whose squares add up to at most that of ``d_out``."""
    square, whole = to_units(d_out) ** 2, sum(weights)
    return [sqrt_down(int(square * weight / whole)) for weight in weights]


# Numbers given as a Decimal, a Fraction or a text: read exactly, rounded in a stated direction.
#
# A loss to calibrate a mechanism to is rounded down, a bound that is shown is rounded up, and a
# bound that is compared with exact sums is a fraction (docs/proofs/decimals.rst).

_DIGITS = 1000  # letters of a text; reading more takes long
_MOST = 400  # exponents of ten: all doubles are inside, and fractions far outside fill the memory


def typed(value: Argument) -> Any:
    """Return a Decimal, a Fraction or a text such as "0.1" as a fraction; others as they are."""
    if type(value) is str and len(value) > _DIGITS:
        return value
    try:
        found = Decimal(value) if type(value) is str else value
        if type(found) is Decimal and abs(found.adjusted()) < _MOST:
            found = Fraction(found)
        return found if type(found) is Fraction and isfinite(found) else value
    except (ArithmeticError, ValueError):  # no number, not finite, or beyond all doubles
        return nan if type(value) is Fraction else value  # a guard refuses both


def down(value: Argument) -> Any:
    """Return the largest double at most what was typed, in pairs too; others as they are."""
    if type(value) is tuple:
        return tuple(map(down, value))
    found = typed(value)
    if type(found) is not Fraction:
        return found
    near = float(found)
    return nextafter(near, -inf) if near > found else near


def cap_and_shown(value: Argument, checked: Any) -> tuple[Any, Any]:
    """Return a bound as it was typed, and the least double that is at least it; in pairs too.

    :param checked: what a guard made of the bound; this is both if a double was typed
    """
    if type(checked) is tuple:
        caps, shown = zip(*map(cap_and_shown, value, checked), strict=True)
        return caps, shown
    found = typed(value)
    return (found, 0.0 - down(-found)) if type(found) is Fraction else (checked, checked)


# Doubles that people type: 0.1 means a tenth, which no double equals.
#
# The double 0.1 is above a tenth, so ten losses of it exceed 1. A double means the decimal that it
# is shown as, which is the shortest one that is read as this double (docs/proofs/decimals.rst).


def to_spend(value: Argument) -> Any:
    """Return the largest double at most a decimal, in pairs too: the loss that is calibrated to."""
    if type(value) is tuple:
        return tuple(map(to_spend, value))
    return down(_text(value))


def to_enforce(value: Argument) -> Any:
    """Return a double, or its decimal as a text if that is larger, in pairs too: a bound."""
    if type(value) is tuple:
        return tuple(map(to_enforce, value))
    text = _text(value)
    return text if text is not value and Fraction(text) > value else value


def _text(value: Argument) -> Any:
    return float.__repr__(value) if isinstance(value, float) and isfinite(value) else value
