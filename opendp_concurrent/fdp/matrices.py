"""How far one unit moves C x: the largest norm of a column, if it takes part in one step."""

from __future__ import annotations

from fractions import Fraction
from math import frexp

import numpy as np

from ..exact.rounding import sqrt_up, to_units
from .bounds import Array


def column_mu(encoder: Array, sigma: Fraction) -> float:
    """The largest norm of a column over ``sigma``, rounded up to a double.

    :param encoder: finite, with rows for outputs and columns for steps
    """
    if not np.any(encoder):
        return 0.0
    scaled = np.ldexp(encoder, -frexp(float(np.max(np.abs(encoder))))[1])
    norms = np.einsum("ij,ij->j", scaled, scaled)
    # only columns that are near the largest in doubles are added exactly
    near = np.flatnonzero(norms >= np.max(norms) * (1 - 1e-8))  # at most 10^7 roundings
    units = max(
        sum(to_units(abs(entry)) ** 2 for entry in encoder[:, j].tolist() if entry) for j in near
    )
    ratio = Fraction(units) / sigma**2  # in units of 2**-(2 * SMALLEST)
    return sqrt_up(-(-ratio.numerator // ratio.denominator))
