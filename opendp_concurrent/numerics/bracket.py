"""Formulas evaluated between two decimals, with rounding that is proven by construction.

A :class:`Bracket` contains the exact value. Every operation rounds its ends outward. Arithmetic is
rounded in the direction of each end; ``sqrt``, ``exp`` and ``ln``, which the standard library
rounds to nearest, are moved outward by one more unit in the last place. :func:`upper` evaluates a
formula with more and more digits until the bracket is far narrower than a double, and rounds up
once. If no number of digits suffices, the result is still a valid bound.

With brackets of the normal distribution, and of the conversion of zCDP to (ε, δ)-DP.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, isfinite, isqrt, ldexp, log, log1p, nan, nextafter, sqrt
from math import pi as pi_of_math
from sys import float_info
from typing import Any, TypeAlias, Union

import scipy

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
    traps = [decimal.DivisionByZero, InvalidOperation, Overflow]
    down, up = (
        Context(
            prec=number,
            Emax=decimal.MAX_EMAX,
            Emin=decimal.MIN_EMIN,
            rounding=rounding,
            traps=traps,
        )
        for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
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
    if loss == inf:
        return 0.0
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


# Tails of the normal distribution, in brackets of any number of digits.
#
# Mills' ratio R(x) = (1 - Φ(x)) / φ(x) decreases in x. Below a threshold it is computed as
# sqrt(π/2) e^(x²/2) - S(x), with S(x) = Σ x^(2n+1) / (2n+1)!! = (Φ(x) - 1/2) / φ(x). Above, it is
# the asymptotic series (1/x) Σ (-1)^n (2n-1)!! / x^(2n), whose partial sums lie on alternating
# sides [NIST DLMF, 7.6 and 7.12].

MOST = 200  # standard deviations up to which S(x) is summed
_GUARD = 12  # digits beyond those that are claimed; a series has fewer than 10^8 terms


@lru_cache(maxsize=16)
def pi(digits: int) -> tuple[Decimal, Decimal]:
    """Decimals below and above π, by Machin's formula in integers."""
    places = digits + _GUARD
    unit = 10**places

    def arctangent(inverse: int) -> int:
        power: int = unit // inverse
        total, n, sign = power, 3, -1
        while power:
            power //= inverse * inverse
            total += sign * (power // n)
            n, sign = n + 2, -sign
        return total

    value = 4 * (4 * arctangent(5) - arctangent(239))
    slack = 10 ** (_GUARD - 2)  # more than 20 times the number of terms, each cut by less than 1
    exact = Context(prec=places + 5)
    return exact.scaleb(value - slack, -places), exact.scaleb(value + slack, -places)


def _series(x: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Bounds on S(x) for x >= 0."""
    if x > MOST:
        raise InvalidOperation  # the bracket is too wide: evaluate() tries more digits
    context = Context(
        prec=digits + _GUARD, rounding=decimal.ROUND_HALF_EVEN, Emax=10**17, Emin=-(10**17)
    )
    with localcontext(context):
        square = x * x
        term = total = x
        n, twice, stop = 1, 2 * square, Decimal(1).scaleb(-context.prec)
        while n < twice or term > total * stop:  # the rest is below the last term
            term = term * square / (n + 2)
            total += term
            n += 2
        slack = total.scaleb(-digits)  # each term has an error below 3 n units
        return total - slack, total + slack


def _signed(x: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Bounds on S(x), which is odd."""
    if x >= 0:
        return _series(x, digits)
    lower, upper = _series(x.copy_negate(), digits)
    return upper.copy_negate(), lower.copy_negate()


def central(x: Bracket) -> Bracket:
    """S(x) = (Φ(x) - 1/2) / φ(x), increasing in x."""
    digits = x.digits
    lower = _signed(x.lower, digits.number)[0]
    upper = _signed(x.upper, digits.number)[1]
    return digits.between(digits.down.plus(lower), digits.up.plus(upper))


def mills(x: Bracket) -> Bracket:
    """R(x) = (1 - Φ(x)) / φ(x), decreasing in x."""
    digits = x.digits
    if x.lower > 0 and digits.down.multiply(x.lower, x.lower) > 5 * digits.number:
        low, high = (_asymptotic(digits(end)) for end in (x.upper, x.lower))
        return digits.between(low.lower, high.upper)
    half = digits.between(*pi(digits.number)) / 2
    return half.sqrt() * (x * x / 2).exp() - central(x)


def _asymptotic(x: Bracket) -> Bracket:
    """R(x) between two partial sums; the last term is below e^(-x²/2)."""
    square, term, total = x * x, x.digits(1), x.digits(1)
    n, stop = 1, Decimal((0, (1,), -x.digits.number))
    while term.upper > stop and (2 * n + 1) < square.lower:
        term = term * (2 * n - 1) / square
        total = total - term if n % 2 else total + term
        n += 1
    rest = term.upper  # above the first omitted term
    return (total + x.digits.between(rest.copy_negate(), rest)) / x


def density(x: Bracket) -> Bracket:
    """φ(x)."""
    two_pi = 2 * x.digits.between(*pi(x.digits.number))
    return (-(x * x / 2)).exp() / two_pi.sqrt()


# Conversion of ρ-zCDP or (ρ, ω)-tCDP to (ε, δ)-DP: the best order of [CKS20, Proposition 12].
#
# For every α in (1, ω] δ = e^((α-1)(αρ-ε)) / (α-1) (1-1/α)^α. With t = α - 1 the best α solves ρ t²
# + log(1+t) = log(1/δ) for a given δ, and (1+2t) ρ + log(t/(1+t)) = ε for a given ε. Both left
# sides increase in t. If there is a largest order, the best α is the smaller of it and the
# solution. Any α gives a valid bound, so an error in t cannot make the result too small.

LARGEST_T = 1e300


@lru_cache(maxsize=65536)
def zcdp_to_epsilon(rho: float, delta: float, omega: float = inf) -> float:
    """Return an upper bound on the ε of ρ-zCDP at δ.

    :param rho: at least 0
    :param delta: in [0, 1]
    :param omega: largest order, for tCDP
    """
    if rho == 0.0 or delta >= 1.0:
        return 0.0
    if delta == 0.0 or rho == inf:
        return inf
    log_inverse = -log(delta)
    t = min(_root(lambda t: rho * t * t + log1p(t) - log_inverse), _largest_t(omega))

    def epsilon(real: Digits) -> Bracket:
        r, d, a = real(rho), real(delta), real(t) + 1
        return a * r + (real(t) / a).ln() - (d.ln() + a.ln()) / real(t)

    return max(0.0, double_up(evaluate(epsilon).upper))


@lru_cache(maxsize=65536)
def zcdp_to_delta(rho: float, epsilon: float, omega: float = inf) -> float:
    """Return an upper bound on the δ of ρ-zCDP at ε; parameters as above."""
    if rho == 0.0 or epsilon == inf:
        return 0.0
    if rho == inf:
        return 1.0
    t = min(_root(lambda t: (1 + 2 * t) * rho - log1p(1 / t) - epsilon), _largest_t(omega))

    def delta(real: Digits) -> Bracket:
        a, x = real(t) + 1, real(t)
        return (x * (a * real(rho) - real(epsilon)) + a * (x / a).ln()).exp() / x

    return min(1.0, upper(delta))


@lru_cache(maxsize=4096)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest double ρ with ``zcdp_to_epsilon(ρ, delta) <= epsilon``."""
    near = max(rho_near(epsilon, delta), 1e-300) if 0.0 < delta < 1.0 else 1.0
    return largest_double(lambda rho: zcdp_to_epsilon(rho, delta) <= epsilon, near)


def rho_near(epsilon: float, delta: float) -> float:
    """Return a number close to the ρ that has this ε at δ, on either side of it.

    The first equation of the best t gives ρ, so that t solves the second one.

    :param epsilon: at least 0
    :param delta: between 0 and 1
    """
    log_inverse = -log(delta)
    t = _root(lambda t: epsilon + log1p(1 / t) - (1 + 2 * t) * (log_inverse - log1p(t)) / t / t)
    return (epsilon + log1p(1 / t) - (log_inverse - log1p(t)) / t) / (1 + t)


def _largest_t(omega: float) -> float:
    """Return omega - 1, exact where doubles allow, and rounded down for larger ω."""
    return omega - 1.0 if omega <= 2.0**53 else nextafter(omega, 0.0)


def _root(increasing: Callable[[float], float]) -> float:
    """Return the root of an increasing function on (0, LARGEST_T], to about double precision."""
    low, high = -690.0, log(LARGEST_T)  # bisection on log t
    if increasing(exp(high)) <= 0.0:
        return LARGEST_T
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(exp(middle)) > 0.0 else (middle, high)
    return exp(high)


# The point x with Φ(x) = e^ε / (1 + e^ε): a quantile of the normal distribution.

LARGE = 1e15


@lru_cache(maxsize=65536)
def twice_quantile(epsilon: float) -> float:
    """Return an upper bound on 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; above ``LARGE`` the relative error of the bound is at most 1e-12
    """
    if epsilon in (0.0, inf):
        return epsilon
    if epsilon > LARGE:  # Φ(-x) <= e^(-x²/2) / 2 <= 1 / (1 + e^ε) for x = sqrt(2 ε)
        return upper(lambda real: 2 * (2 * real(epsilon)).sqrt())

    def covers(double: float) -> bool:
        def margin(real: Digits) -> Bracket:
            x, decay = real(double) / 2, (-real(epsilon)).exp()
            if epsilon < 1.0:  # Φ(x) - 1/2 against tanh(ε/2)/2
                return density(x) * central(x) - (1 - decay) / (1 + decay) / 2
            return decay / (1 + decay) - density(x) * mills(x)  # 1/(1+e^ε) against 1 - Φ(x)

        return is_nonnegative(margin)

    if epsilon < 1e-3:  # SciPy finds where the search starts, and decides nothing
        near = epsilon * sqrt(pi_of_math / 2)
    else:
        near = -2.0 * float(scipy.special.ndtri_exp(-epsilon - log1p(exp(-epsilon))))
    return least_double(covers, near)
