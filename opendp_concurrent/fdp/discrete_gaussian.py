"""The discrete Gaussian against itself, shifted by an integer [CKS20]."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf, sqrt

import numpy as np

from ..errors import InvalidValueError
from .bounds import ELEMENTARY, TINY, UNIT, rounded_up
from .finite import Finite, response
from .theta import LEAST_SCALE, Theta

_DEVIATIONS = 38.0  # standard deviations; masses beyond are below 1e-313
MOST = 2**20  # outcomes


def discrete_gaussian(scale: float, sensitivity: int) -> Finite:
    """N_Z(0, scale²) against N_Z(sensitivity, scale²).

    Outcomes beyond 38 standard deviations count as an infinite loss of probability 1e-300.
    """
    reach = ceil(_DEVIATIONS * scale) + sensitivity
    if not 2 * reach + 1 <= MOST:
        raise InvalidValueError(
            f"scale ({scale}) is too large for a list of outcomes; beyond about {MOST // 80} use "
            "TradeoffFunction.gaussian((sensitivity + 1) / scale)"
        )
    if not sensitivity / scale < 1e100:
        return response(0.0, 1.0)
    x = np.arange(reach, -reach - 1, -1, dtype=float)
    weights = np.exp(-(x * x) / (2 * scale * scale))
    masses = weights / np.sum(weights)
    keep = masses > 1e-305
    losses = (sensitivity - 2 * x) * (sensitivity / (2 * scale * scale))
    # proven in measurements/gaussian.py for scales of at least 1/2
    within = rounded_up(Fraction(sensitivity + 1) / Fraction(scale)) if scale >= 0.5 else inf
    pair = Finite(
        losses[keep],
        masses[keep],
        infinite=TINY,
        never=TINY,
        mass_error=2 * ELEMENTARY + UNIT * (4 * _DEVIATIONS**2 + sqrt(len(x)) + 64),
        loss_error=6 * UNIT * float(np.max(np.abs(losses))),
        symmetric=True,
        slack=TINY,
        gaussian=within,
    )
    known = scale >= LEAST_SCALE and sensitivity > 0
    return pair.with_form(Theta(scale, sensitivity)) if known else pair
