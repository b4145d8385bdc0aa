"""The n-fold product of a pair with two losses: a binomial distribution, to relative accuracy.

The largest mass is computed with 40 digits (Stirling's series, whose remainder is below its first
omitted term [NIST DLMF, 5.11]), the others by their ratios. Masses beyond 40 standard deviations
are below 1e-300 and left out.
"""

from __future__ import annotations

from decimal import Context, Decimal
from math import ceil, comb, floor, sqrt

import numpy as np

from .atoms import Atoms
from .bounds import ELEMENTARY, TINY, UNIT, Array

_CONTEXT = Context(prec=50)
MOST_DRAWS = 10**9
_WHOLE = 2**14  # powers up to this one are kept whole
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


def log_factorial(n: int) -> Decimal:
    """The logarithm of n!, with an error below 1e-40 for n up to 10^9."""
    c = _CONTEXT
    if n < 2000:
        product = 1
        for factor in range(2, n + 1):
            product *= factor
        return c.ln(Decimal(product))
    x = Decimal(n)
    half_log = c.divide(c.ln(c.multiply(_TWO_PI, x)), Decimal(2))
    total = c.add(c.multiply(x, c.subtract(c.ln(x), Decimal(1))), half_log)
    power = x
    for numerator, denominator in _STIRLING:
        term = c.divide(Decimal(numerator), c.multiply(Decimal(denominator), power))
        total, power = c.add(total, term), c.multiply(power, c.multiply(x, x))
    return total


_TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116")


def log_odds(loss: float) -> tuple[Decimal, Decimal]:
    """Logarithms of e^l/(1 + e^l) and 1/(1 + e^l), l >= 0."""
    c = _CONTEXT
    high = c.minus(c.ln(c.add(Decimal(1), c.exp(Decimal(-loss)))))
    return high, c.subtract(high, Decimal(loss))


def log_product(log_mass: Decimal, failing: float) -> Decimal:
    """Logarithm of a mass, of what does not fail with probability ``failing``."""
    c = _CONTEXT
    return c.add(log_mass, c.ln(c.subtract(Decimal(1), Decimal(failing)))) if failing else log_mass


def log_mass(mass: float) -> Decimal:
    """Logarithm of a mass; of one that left the doubles, an upper bound."""
    return _CONTEXT.ln(Decimal(mass)) if mass else Decimal(-744)


def window(n: int, masses: Array) -> tuple[int, int, int]:
    """Number of draws, first number of successes that counts, and how many count."""
    p = float(masses[1] / (masses[0] + masses[1]))
    # Bernstein: P(|X - np| >= t) <= 2 exp(-t² / (2 variance + 2t/3))
    variance = n * p * (1 - p)
    reach = _EXPONENT / 3 + sqrt((_EXPONENT / 3) ** 2 + 2 * _EXPONENT * variance)
    if n <= _WHOLE:
        return n, 0, n + 1
    first = max(0, floor(n * p - reach))
    return n, first, min(n, ceil(n * p + reach)) - first + 1


def binomial(
    draws: tuple[int, int, int], low: float, high: float, log_low: Decimal, log_high: Decimal
) -> Atoms:
    """Outcomes of draws of ``high`` with probability e^log_high, else ``low``."""
    c = _CONTEXT
    n, first, size = draws
    last = first + size - 1
    p = float(c.exp(log_high))
    mode = min(max(round(n * p), first), last)
    log_choose = (
        c.ln(Decimal(comb(n, mode)))
        if n <= 1000
        else c.subtract(log_factorial(n), c.add(log_factorial(mode), log_factorial(n - mode)))
    )
    log_top = c.add(
        log_choose,
        c.add(c.multiply(Decimal(mode), log_high), c.multiply(Decimal(n - mode), log_low)),
    )
    odds = float(c.exp(min(c.subtract(log_high, log_low), Decimal(1000))))
    up = np.arange(mode, last, dtype=float)
    down = np.arange(mode, first, -1, dtype=float)
    top = float(c.exp(log_top))
    right = top * np.cumprod((n - up) / (up + 1) * odds)
    left = top * np.cumprod(down / ((n - down + 1) * odds))
    count = np.arange(first, last + 1, dtype=float)
    losses = count * high + (n - count) * low
    largest = float(np.max(np.abs(count * high) + np.abs((n - count) * low)))
    exact = low == -high
    if exact:
        losses = (2 * count - n) * high
        largest = float(np.max(np.abs(losses)))
    masses = np.concatenate([left[::-1], [top], right])
    error = 6 * UNIT * (last - first + 2) + ELEMENTARY
    kept = size == n + 1 and float(np.min(masses)) >= TINY
    return Atoms(losses, masses, 0.0, 0.0 if kept else TINY, error, 2 * UNIT * largest)
