"""The formulas of a finite pair that was written down: only its outcomes are written."""

from __future__ import annotations

from math import ceil, inf, sqrt

import numpy as np

from .bounds import TINY
from .discrete_gaussian import MOST, discrete_gaussian
from .finite import Finite
from .laplace import laplace

_ULPS = 4  # error of a scale that is found from losses


def recognised(pair: Finite) -> Finite:
    """An equal pair that is computed by formulas, if the constructors make one; else the same."""
    number = len(pair.losses)
    if number <= 2 or not pair.symmetric:
        return pair
    if pair.limit < inf:
        made = laplace(pair.limit, number - 1.0)
        return made if isinstance(made, Finite) and made == pair else pair
    return _discrete_gaussian(pair) if pair.infinite == pair.slack == TINY else pair


def _discrete_gaussian(pair: Finite) -> Finite:
    """Losses are (s - 2x) s / (2σ²) at x, and the mass is largest at x = 0."""
    top = int(np.argmax(pair.masses))
    distance = float(pair.losses[-1] - pair.losses[0]) / (len(pair.losses) - 1)
    shift = round(2 * float(pair.losses[top]) / distance) if distance > 0.0 else 0
    if not 0 < shift < MOST:
        return pair
    scale = sqrt(shift / distance)
    for step in sorted(range(-_ULPS, _ULPS + 1), key=abs):
        near = scale + step * float(np.spacing(scale))
        if 2 * (ceil(40 * near) + shift) < MOST:
            made = discrete_gaussian(near, shift)
            if made == pair:
                return made
    return pair
