"""The outcomes of equal finite pairs, run together."""

from __future__ import annotations

from math import expm1, inf, log1p

import numpy as np

from .atoms import Atoms
from .binomial import MOST_DRAWS, binomial, log_mass, log_odds, log_product, window
from .bounds import ELEMENTARY, UNIT
from .finite import Finite


def repeated(factor: Finite, n: int, most: int) -> Atoms | None:
    """The outcomes of n equal factors, if they are at most ``most``."""
    atoms = factor.atoms
    if n == 1 or len(atoms.losses) <= 1:
        if len(atoms.losses) > most:
            return None
        if n == 1:
            return atoms
        infinite = -expm1(n * log1p(-atoms.infinite)) if atoms.infinite < 1 else 1.0
        relative = n * (atoms.mass_error + ELEMENTARY)
        largest = float(np.max(np.abs(n * atoms.losses), initial=0.0))
        return Atoms(
            n * atoms.losses,
            atoms.masses**n,
            infinite,
            0.0,
            expm1(relative) if relative < 1.0 else inf,  # errors compound
            n * atoms.loss_error + UNIT * largest,
            4 * ELEMENTARY,
            n * atoms.slack,
        )
    if len(atoms.losses) == 2:
        if not n <= MOST_DRAWS:
            return None
        return _binomial(factor, n) if window(n, factor.masses)[2] <= most else None
    if len(atoms.losses) ** min(n, 64) > most:
        return None
    total = atoms
    for _ in range(n - 1):
        total = total.times(atoms)
    return total


def _binomial(factor: Finite, n: int) -> Atoms:
    low, high = (float(loss) for loss in factor.losses)
    infinite = -expm1(n * log1p(-factor.infinite)) if factor.infinite < 1 else 1.0
    error = 0.0
    exact = not factor.loss_error and not factor.slack
    if low == -high and factor.infinite == factor.never and exact:
        # exact, whatever the masses were rounded to
        log_high, log_low = (log_product(one, factor.infinite) for one in log_odds(high))
    else:
        log_high, log_low = (log_mass(float(mass)) for mass in factor.masses[::-1])
        error = n * factor.mass_error
        error = expm1(error) if error < 1.0 else inf  # errors compound
    atoms = binomial(window(n, factor.masses), low, high, log_low, log_high)
    return Atoms(
        atoms.losses,
        atoms.masses,
        infinite,
        atoms.rest,
        atoms.mass_error + error * (1 + atoms.mass_error),
        atoms.loss_error + n * factor.loss_error,
        4 * ELEMENTARY,
        n * factor.slack,
    )
