"""The outcomes of equal finite pairs, run together.

A pair with two losses has a binomial distribution. Its masses follow from their ratios, and from
their sum, which is known. Masses beyond 40 standard deviations are below 1e-300 and left out.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt

import numpy as np

from .atoms import Atoms
from .bounds import ELEMENTARY, TINY, UNIT, Array
from .finite import Finite

MOST_DRAWS = 10**9
_WHOLE = 2**14  # draws up to which no outcome is left out
_EXPONENT = 700.0  # e^-700 is below TINY


def repeated(factor: Finite, n: int, most: int) -> Atoms | None:
    """The outcomes of n equal factors, if there are at most ``most``."""
    atoms = factor.atoms
    number = len(atoms.losses)
    if n == 1:
        return atoms if number <= most else None
    if number <= 1:
        if number > most:
            return None
        largest = float(np.max(np.abs(n * atoms.losses), initial=0.0))
        power = Atoms(
            n * atoms.losses,
            atoms.masses**n,
            mass_error=_compounded(n * (atoms.mass_error + ELEMENTARY)),
            loss_error=n * atoms.loss_error + UNIT * largest,
        )
    elif number == 2:
        if not n <= MOST_DRAWS or len(window(n, factor.masses)) > most:
            return None
        power = binomial(factor, n)
    elif number ** min(n, 64) > most:
        return None
    else:
        power = atoms
        for _ in range(n - 1):
            power = power.times(atoms)
        return power
    infinite = -expm1(n * log1p(-atoms.infinite)) if atoms.infinite < 1 else 1.0
    return replace(power, infinite=infinite, infinite_error=4 * ELEMENTARY, slack=n * atoms.slack)


def _compounded(error: float) -> float:
    """Relative error of a product whose factors have relative errors that add up to ``error``."""
    return expm1(error) if error < 1.0 else inf


def window(n: int, masses: Array) -> range:
    """The numbers of successes in n draws that are not left out."""
    p = float(masses[1] / (masses[0] + masses[1]))
    # Bernstein: P(|X - np| >= t) <= 2 exp(-t² / (2 variance + 2t/3))
    variance = n * p * (1 - p)
    reach = _EXPONENT / 3 + sqrt((_EXPONENT / 3) ** 2 + 2 * _EXPONENT * variance)
    if n <= _WHOLE:
        return range(n + 1)
    return range(max(0, floor(n * p - reach)), min(n, ceil(n * p + reach)) + 1)


def binomial(factor: Finite, n: int) -> Atoms:
    """The outcomes of n equal factors with two losses, without the infinite losses."""
    (low, high), (rare, common) = factor.losses.tolist(), factor.masses.tolist()
    counts = window(n, factor.masses)
    first, last = counts[0], counts[-1]
    mode = min(max(round(n * (common / (rare + common))), first), last)
    exact = not factor.loss_error and not factor.slack
    if low == -high and factor.infinite == factor.never and exact and factor.infinite < 1.0:
        # randomized response: exact, whatever the masses were rounded to
        odds, wrong = exp(high) if high <= _EXPONENT else inf, ELEMENTARY
        logarithm, error = n * log1p(-factor.infinite), 0.0
    else:
        odds, wrong = common / rare if rare else inf, 2 * factor.mass_error + UNIT
        logarithm, error = n * log(rare + common), _compounded(n * (factor.mass_error + UNIT))
    up, down = np.arange(mode, last, dtype=float), np.arange(mode, first, -1, dtype=float)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite odds: all draws are ``high``
        right = np.cumprod((n - up) / (up + 1) * odds)
        left = np.cumprod(down / ((n - down + 1) * odds))
    masses = np.concatenate([left[::-1], [1.0], right])
    masses *= exp(logarithm) / float(np.sum(masses))
    # of each mass, and of the sum; of its logarithm
    error += 2 * (7 * UNIT + wrong) * (last - first + 2)
    error += (ELEMENTARY + 4 * UNIT) * (2 + abs(logarithm))
    count = np.arange(first, last + 1, dtype=float)
    if low == -high:
        losses = (2 * count - n) * high
        largest = float(np.max(np.abs(losses)))
    else:
        losses = count * high + (n - count) * low
        largest = float(np.max(np.abs(count * high) + np.abs((n - count) * low)))
    omitted = 0.0 if len(counts) == n + 1 and float(np.min(masses)) >= TINY else TINY
    rounding = 2 * UNIT * largest + n * factor.loss_error
    return Atoms(losses, masses, 0.0, error, rounding, omitted=omitted)
