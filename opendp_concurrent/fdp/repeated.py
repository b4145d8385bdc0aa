"""The outcomes of equal finite pairs, run together."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, inf, log1p

import numpy as np

from .atoms import Atoms
from .binomial import MOST_DRAWS, binomial, log_mass, log_odds, window
from .bounds import ELEMENTARY, TINY, UNIT
from .finite import Finite, without_tiny_masses

_SMALL = 1e-3  # errors that do not compound much
_EVEN = 1e-13  # part of the losses by which their distances may differ
_MOST_LATTICE = 2**14  # outcomes of a lattice that are found by convolutions


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
        power = _binomial(factor, n)
    elif (
        n * (number - 1) < min(most, _MOST_LATTICE)
        and n * factor.mass_error < _SMALL
        and _unevenness(factor) <= _EVEN * factor.largest_absolute
    ):
        power = _on_a_lattice(factor, n)
    elif number ** min(n, 64) > most:
        return None
    else:
        power = atoms
        for _ in range(n - 1):
            power = power.times(atoms)
        return power
    infinite = -expm1(n * log1p(-atoms.infinite)) if atoms.infinite < 1 else 1.0
    return replace(power, infinite=infinite, infinite_error=4 * ELEMENTARY, slack=n * atoms.slack)


def _on_a_lattice(factor: Finite, n: int) -> Atoms:
    """The sums of n losses at equal distances: equal sums are added up.

    A sum of k positive products has a relative error of (k + 1) ``UNIT``, but for what underflows:
    that is below 2^-1074 for each product, and below ``TINY`` in all.
    """
    masses, error = np.ones(1), 0.0
    square, own = factor.masses, factor.mass_error
    for bit in range(n.bit_length()):
        if bit:
            own = own * (2 + own) + (len(square) + 2) * UNIT * (1 + own) ** 2
            square = np.convolve(square, square)
        if n >> bit & 1:
            rounding = (min(len(square), len(masses)) + 1) * UNIT
            masses, both = np.convolve(masses, square), (1 + error) * (1 + own)
            error = both * (1 + rounding) - 1 + UNIT
    low, high = n * float(factor.losses[0]), n * float(factor.losses[-1])
    losses = np.linspace(low, high, len(masses))
    rounding = 8 * UNIT * max(abs(low), abs(high))
    kept, weights, lost = without_tiny_masses(losses, masses)
    omitted = lost + TINY if len(kept) < len(masses) else 0.0
    rounding += n * (factor.loss_error + _unevenness(factor))
    return Atoms(kept, weights, mass_error=error + 2 * UNIT, loss_error=rounding, omitted=omitted)


def _unevenness(factor: Finite) -> float:
    """How far losses are from others at equal distances, rounded up."""
    losses = factor.losses
    even = np.linspace(losses[0], losses[-1], len(losses))
    return float(np.max(np.abs(losses - even))) + 4 * UNIT * factor.largest_absolute


def _compounded(error: float) -> float:
    """Relative error of a product whose factors have relative errors that add up to ``error``."""
    return expm1(error) if error < 1.0 else inf


def _binomial(factor: Finite, n: int) -> Atoms:
    """The outcomes of n equal factors with two losses, without the infinite losses."""
    low, high = (float(loss) for loss in factor.losses)
    error = 0.0
    exact = not factor.loss_error and not factor.slack
    if low == -high and factor.infinite == factor.never and exact:
        # randomized response: exact, whatever the masses were rounded to
        log_high, log_low = log_odds(high, factor.infinite)
    else:
        log_high, log_low = (log_mass(float(mass)) for mass in factor.masses[::-1])
        error = _compounded(n * factor.mass_error)
    atoms = binomial(n, window(n, factor.masses), low, high, log_low, log_high)
    return replace(
        atoms,
        mass_error=atoms.mass_error + error * (1 + atoms.mass_error),
        loss_error=atoms.loss_error + n * factor.loss_error,
    )
