"""Poisson samples of Gaussian or Laplace noise, in which a record is replaced.

Write A for the law of an answer without a record in the sample, B and B' with it and with the one
that replaces it, and q for its chance to be in the sample. The laws of neighbours are
(1 - q) A + q B and (1 - q) A + q B', in either order. A and B, and A and B', differ by one record
more. Let S be any set and 1 - a its A-mass, and let f be the trade-off function of the noise. Then
B(S) <= 1 - f(1 - a) and B'(S) >= f(a). So δ is at most that of B, A and B' moved to 0, c and -c on
the line, where both hold with equality for the half lines, which are the best sets there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from .bounds import ELEMENTARY, UNIT, Array
from .function import TradeoffFunction
from .gaussian import SPECIAL

_NEAR, _FAR = 480, 120  # points to where δ is about 1e-14, and beyond
_LEAST, _SMALL = 1e-40, 1e-14  # δ at the last of them


def _through(epsilon: Array, delta: Array) -> TradeoffFunction:
    """The worst function with upper bounds on δ, which falls, in either direction."""
    falling = np.minimum.accumulate(np.minimum(delta, 1.0))
    points = dict(zip(epsilon.tolist(), falling.tolist(), strict=True))  # the last of equal ones
    return TradeoffFunction.from_profile(list(points), list(points.values()))


class _Noise(NamedTuple):
    """Noise on the line at some points from 0 up, moved by c and by -c.

    :ivar high: mass above each point of the noise moved by c
    :ivar middle: of the noise itself
    :ivar low: of the noise moved by -c
    :ivar wrong: relative error of these
    :ivar less: ln of the density moved by -c over that of the noise itself
    :ivar gap: ln of the density moved by c over that moved by -c
    """

    high: Array
    middle: Array
    low: Array
    wrong: Array
    less: Array
    gap: Array


@lru_cache(maxsize=64)
def replaced(noise: str, size: float, rate: float) -> TradeoffFunction:
    """The loss of Gaussian or Laplace noise on Poisson samples, if a record is replaced.

    :param size: of one record more, over the noise
    """
    made = _gaussian(size) if noise == "gaussian" else _laplace(size)
    less = np.exp(made.less)
    # t = 1 + q k is the ratio of the laws at a point, which is above t on the half line from there
    k = np.exp(made.less + made.gap) * -np.expm1(-made.gap) / ((1 - rate) + rate * less)
    wrong = (np.abs(made.less) + made.gap + 4) * 4 * ELEMENTARY
    epsilon = np.log1p(rate * k * (1 + wrong)) * (1 + 4 * ELEMENTARY)
    k = k * (1 - wrong)  # δ falls in t
    t = 1 + rate * k
    terms = made.high, t * made.middle, -(1 + k) * made.middle, -t * made.low
    error = sum(np.abs(term) for term in terms) * (made.wrong + 16 * UNIT)
    delta = np.maximum(rate * (sum(terms) + error) * (1 + 8 * UNIT), 0.0)
    if noise == "laplace":
        delta[-1] = 0.0  # no ratio is above the last one
    return _through(np.maximum.accumulate(epsilon), delta)


def _gaussian(size: float) -> _Noise:
    near, end = (size - scipy.special.ndtri([_SMALL, _LEAST])).tolist()
    x = np.unique(np.concatenate([np.linspace(0.0, near, _NEAR), np.linspace(near, end, _FAR)]))
    high, middle, low = (scipy.special.ndtr(-at) for at in (x - size, x, x + size))
    wrong = SPECIAL + 4 * UNIT * (1 + (x + size) ** 2)
    return _Noise(high, middle, low, wrong, -size * (x + size / 2), 2 * size * x)


def _laplace(size: float) -> _Noise:
    x = np.linspace(0.0, size, _NEAR + _FAR)
    middle, low = 0.5 * np.exp(-x), 0.5 * np.exp(-x - size)
    high = 1 - 0.5 * np.exp(x - size)
    wrong = np.full_like(x, ELEMENTARY + 4 * UNIT * (1 + 2 * size))
    return _Noise(high, middle, low, wrong, np.full_like(x, -size), 2 * x)
