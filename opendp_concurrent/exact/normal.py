"""Tails of the normal distribution, in brackets of any number of digits.

Mills' ratio R(x) = (1 - Φ(x)) / φ(x) decreases in x. Below a threshold it is computed as
sqrt(π/2) e^(x²/2) - S(x), with S(x) = Σ x^(2n+1) / (2n+1)!! = (Φ(x) - 1/2) / φ(x). Above, it is the
asymptotic series (1/x) Σ (-1)^n (2n-1)!! / x^(2n), whose partial sums lie on alternating sides
[NIST DLMF, 7.6 and 7.12].
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache

from .bracket import Bracket

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
    context = Context(prec=digits + _GUARD, rounding=ROUND_HALF_EVEN, Emax=10**17, Emin=-(10**17))
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
