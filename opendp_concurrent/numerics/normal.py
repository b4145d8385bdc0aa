"""Tails of the normal distribution, in brackets of any number of digits.

Mills' ratio R(x) = (1 - Φ(x)) / φ(x) decreases in x. Below a threshold it is computed as
sqrt(π/2) e^(x²/2) - S(x), with S(x) = Σ x^(2n+1) / (2n+1)!! = (Φ(x) - 1/2) / φ(x). Above, it is the
asymptotic series (1/x) Σ (-1)^n (2n-1)!! / x^(2n), whose partial sums lie on alternating sides
[NIST DLMF, 7.6 and 7.12].
"""

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from math import exp, inf, log, log1p, nextafter, sqrt
from math import pi as pi_of_math

import scipy

from . import bracket
from .bracket import upper

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


def central(x: bracket.Bracket) -> bracket.Bracket:
    """S(x) = (Φ(x) - 1/2) / φ(x), increasing in x."""
    digits = x.digits
    lower = _signed(x.lower, digits.number)[0]
    upper = _signed(x.upper, digits.number)[1]
    return digits.between(digits.down.plus(lower), digits.up.plus(upper))


def mills(x: bracket.Bracket) -> bracket.Bracket:
    """R(x) = (1 - Φ(x)) / φ(x), decreasing in x."""
    digits = x.digits
    if x.lower > 0 and digits.down.multiply(x.lower, x.lower) > 5 * digits.number:
        low, high = (_asymptotic(digits(end)) for end in (x.upper, x.lower))
        return digits.between(low.lower, high.upper)
    half = digits.between(*pi(digits.number)) / 2
    return half.sqrt() * (x * x / 2).exp() - central(x)


def _asymptotic(x: bracket.Bracket) -> bracket.Bracket:
    """R(x) between two partial sums; the last term is below e^(-x²/2)."""
    square, term, total = x * x, x.digits(1), x.digits(1)
    n, stop = 1, Decimal((0, (1,), -x.digits.number))
    while term.upper > stop and (2 * n + 1) < square.lower:
        term = term * (2 * n - 1) / square
        total = total - term if n % 2 else total + term
        n += 1
    rest = term.upper  # above the first omitted term
    return (total + x.digits.between(rest.copy_negate(), rest)) / x


def density(x: bracket.Bracket) -> bracket.Bracket:
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

    def epsilon(real: bracket.Digits) -> bracket.Bracket:
        r, d, a = real(rho), real(delta), real(t) + 1
        return a * r + (real(t) / a).ln() - (d.ln() + a.ln()) / real(t)

    return max(0.0, bracket.double_up(bracket.evaluate(epsilon).upper))


@lru_cache(maxsize=65536)
def zcdp_to_delta(rho: float, epsilon: float, omega: float = inf) -> float:
    """Return an upper bound on the δ of ρ-zCDP at ε; parameters as above."""
    if rho == 0.0 or epsilon == inf:
        return 0.0
    if rho == inf:
        return 1.0
    t = min(_root(lambda t: (1 + 2 * t) * rho - log1p(1 / t) - epsilon), _largest_t(omega))

    def delta(real: bracket.Digits) -> bracket.Bracket:
        a, x = real(t) + 1, real(t)
        return (x * (a * real(rho) - real(epsilon)) + a * (x / a).ln()).exp() / x

    return min(1.0, upper(delta))


@lru_cache(maxsize=4096)
def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest double ρ with ``zcdp_to_epsilon(ρ, delta) <= epsilon``."""
    near = max(rho_near(epsilon, delta), 1e-300) if 0.0 < delta < 1.0 else 1.0
    return bracket.largest_double(lambda rho: zcdp_to_epsilon(rho, delta) <= epsilon, near)


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
        def margin(real: bracket.Digits) -> bracket.Bracket:
            x, decay = real(double) / 2, (-real(epsilon)).exp()
            if epsilon < 1.0:  # Φ(x) - 1/2 against tanh(ε/2)/2
                return density(x) * central(x) - (1 - decay) / (1 + decay) / 2
            return decay / (1 + decay) - density(x) * mills(x)  # 1/(1+e^ε) against 1 - Φ(x)

        return bracket.is_nonnegative(margin)

    if epsilon < 1e-3:  # SciPy finds where the search starts, and decides nothing
        near = epsilon * sqrt(pi_of_math / 2)
    else:
        near = -2.0 * float(scipy.special.ndtri_exp(-epsilon - log1p(exp(-epsilon))))
    return bracket.least_double(covers, near)
