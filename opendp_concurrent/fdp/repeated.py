"""The outcomes of equal finite pairs, run together."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, inf, log1p

import numpy as np

from .atoms import Atoms
from .binomial import MOST_DRAWS, binomial, log_mass, log_odds, window
from .bounds import ELEMENTARY, UNIT
from .finite import Finite


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
