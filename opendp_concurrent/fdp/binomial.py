"""The n-fold product of a pair with two losses: a binomial distribution, to relative accuracy.

The largest mass is computed to 40 digits, by Stirling's series, whose remainder is below its
first omitted term [NIST DLMF, 5.11]. The other masses follow by their ratios. Masses beyond 40
standard deviations are below 1e-300 and left out.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from math import ceil, comb, factorial, floor, sqrt

import numpy as np

from .atoms import Atoms
from .bounds import ELEMENTARY, TINY, UNIT, Array

_CONTEXT = Context(prec=50)
MOST_DRAWS = 10**9
_WHOLE = 2**14  # draws up to which no outcome is left out
_EXPONENT = 700.0  # e^-700 is below TINY
_STIRLING = (  # (-1)^.. B_2k / (2k (2k - 1))
    (1, 12),
    (-1, 360),
    (1, 1260),
    (-1, 1680),
    (1, 1188),
    (-691, 360360),
    (1, 156),
)
_TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116")


def log_factorial(n: int) -> Decimal:
    """The logarithm of n!, with an error below 1e-40 for n up to 10^9."""
    with localcontext(_CONTEXT):
        if n < 2000:
            return Decimal(factorial(n)).ln()
        x = Decimal(n)
        total = x * (x.ln() - 1) + (_TWO_PI * x).ln() / 2
        power = x
        for numerator, denominator in _STIRLING:
            total += numerator / (denominator * power)
            power *= x * x
        return total


def log_odds(loss: float, failing: float = 0.0) -> tuple[Decimal, Decimal]:
    """Logarithms of e^l/(1 + e^l) and 1/(1 + e^l), l >= 0; both times 1 - ``failing``."""
    with localcontext(_CONTEXT):
        high = -(1 + Decimal(-loss).exp()).ln()
        low = high - Decimal(loss)
        if failing:
            kept = (1 - Decimal(failing)).ln()
            high, low = high + kept, low + kept
        return high, low


def log_mass(mass: float) -> Decimal:
    """Logarithm of a mass; an upper bound if the mass underflowed to 0."""
    return _CONTEXT.ln(Decimal(mass)) if mass else Decimal(-744)


def window(n: int, masses: Array) -> range:
    """The numbers of successes in n draws that are not left out."""
    p = float(masses[1] / (masses[0] + masses[1]))
    # Bernstein: P(|X - np| >= t) <= 2 exp(-t² / (2 variance + 2t/3))
    variance = n * p * (1 - p)
    reach = _EXPONENT / 3 + sqrt((_EXPONENT / 3) ** 2 + 2 * _EXPONENT * variance)
    if n <= _WHOLE:
        return range(n + 1)
    return range(max(0, floor(n * p - reach)), min(n, ceil(n * p + reach)) + 1)


def binomial(
    n: int, counts: range, low: float, high: float, log_low: Decimal, log_high: Decimal
) -> Atoms:
    """Sums of n losses, each ``high`` with probability e^log_high and else ``low``.

    :param counts: how often ``high`` may come
    """
    first, last = counts[0], counts[-1]
    with localcontext(_CONTEXT):
        p = float(log_high.exp())
        mode = min(max(round(n * p), first), last)
        if n <= 1000:
            log_choose = Decimal(comb(n, mode)).ln()
        else:
            log_choose = log_factorial(n) - (log_factorial(mode) + log_factorial(n - mode))
        top = float((log_choose + (mode * log_high + (n - mode) * log_low)).exp())
        odds = float(min(log_high - log_low, Decimal(1000)).exp())
    up = np.arange(mode, last, dtype=float)
    down = np.arange(mode, first, -1, dtype=float)
    right = top * np.cumprod((n - up) / (up + 1) * odds)
    left = top * np.cumprod(down / ((n - down + 1) * odds))
    count = np.arange(first, last + 1, dtype=float)
    if low == -high:
        losses = (2 * count - n) * high
        largest = float(np.max(np.abs(losses)))
    else:
        losses = count * high + (n - count) * low
        largest = float(np.max(np.abs(count * high) + np.abs((n - count) * low)))
    masses = np.concatenate([left[::-1], [top], right])
    error = 6 * UNIT * (last - first + 2) + ELEMENTARY
    omitted = 0.0 if len(counts) == n + 1 and float(np.min(masses)) >= TINY else TINY
    return Atoms(losses, masses, 0.0, error, 2 * UNIT * largest, omitted=omitted)
