"""Samples of a fixed size, and Poisson samples in which a record is replaced.

Write A for the law of an answer without a record in the sample, B and B' with it and with the one
that replaces it, and q for its chance to be in the sample. The laws of neighbours are
(1 - q) A + q B and (1 - q) A + q B', in either order.

*Fixed size* [BBG18]. A sample without the record has one more of the others, in its place. So B
against A, and B against B', are the mechanism on samples that differ in one record. Let d be its
profile. With t = 1 + q (e^ε - 1) and s = e^-ε t, (1 - q) A + q B - t ((1 - q) A + q B') is
q (B - e^ε ((1 - s) A + s B')), so δ(ln t) <= q d(ε) for ε >= 0. *With replacement* the record is k
times in the sample with probability b_k; then δ(ln t) <= Σ b_k d_k(ε), where q is the sum of the
b_k and d_k the profile for k records.

*Poisson samples.* A and B, and A and B', differ by one record more. Let S be any set and 1 - a its
A-mass, and let f be the trade-off function of the mechanism. Then B(S) <= 1 - f(1 - a) and B'(S) >=
f(a). So δ is at most that of B, A and B' moved to 0, c and -c on the line, where both hold with
equality for the half lines, which are the best sets there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np
import scipy

from ..exact.bracket import Bracket, Digits, upper
from .bounds import ELEMENTARY, UNIT, Array, rounded_up
from .function import TradeoffFunction
from .gaussian import SPECIAL

_NEAR, _FAR = 480, 120  # points to where δ is about 1e-14, and beyond
_LEAST, _SMALL = 1e-40, 1e-14  # δ at the last of them
_LARGEST = 650.0  # ε
_MOST_OFTEN = 64  # times that a record is in a sample


@lru_cache(maxsize=64)
def of_fixed_size(whole: TradeoffFunction, size: int, source: int) -> TradeoffFunction:
    """The loss on ``size`` of ``source`` records, from that on samples with one other record.

    :param whole: symmetric
    """
    rate = rounded_up(Fraction(size, source))
    return _amplified([(rate, whole)], 0.0, rate)


@lru_cache(maxsize=64)
def with_replacement(whole: TradeoffFunction, size: int, source: int) -> TradeoffFunction | None:
    """The same for ``size`` draws; None if a record may be in a sample too often.

    :param whole: symmetric
    :param source: at least 2
    """
    parts: list[tuple[float, TradeoffFunction]] = []
    ratio = Fraction(size, source)
    for times in range(1, _MOST_OFTEN):
        rest = rounded_up(ratio**times / factorial(times))  # at least this often
        if rest <= _LEAST or times > size:
            rate = upper(lambda real: 1 - _never(real, size, source))
            return _amplified(parts, rest if times <= size else 0.0, rate)
        parts.append((_chance(times, size, source), whole.group(times)))
    return None


def _never(real: Digits, draws: int, source: int) -> Bracket:
    """The probability that one of ``source`` records is in none of the draws."""
    return (draws * (real(source - 1) / source).ln()).exp()


def _chance(times: int, draws: int, source: int) -> float:
    """The probability that it is in so many of them, rounded up."""
    ways = Fraction(1)
    for one in range(times):
        ways *= Fraction(draws - one, source * (one + 1))
    top, bottom = ways.as_integer_ratio()
    found = upper(lambda real: real(top) / bottom * _never(real, draws - times, source))
    return min(1.0, found)


def _amplified(
    parts: Sequence[tuple[float, TradeoffFunction]], rest: float, rate: float
) -> TradeoffFunction:
    """Of the chances of some losses, and of the loss of everything."""
    near = sorted({_end(f, min(1.0, _SMALL / chance)) for chance, f in parts})
    near = near[:: -max(1, len(near) // 4)]  # from the last one down
    last = max(_end(f, min(1.0, _LEAST / chance)) for chance, f in parts)
    cells = [np.linspace(0.0, end, _NEAR) for end in near if end > 0.0]
    epsilon = np.unique(np.concatenate([*cells, np.linspace(near[0], last, _FAR)]))
    each = [chance * np.asarray(f.delta(epsilon)) for chance, f in parts]
    delta = np.sum(each, axis=0) * (1 + (len(parts) + 2) * UNIT) + rest * (1 + 2 * UNIT)
    moved = np.log1p(min(rate, 1.0) * np.expm1(epsilon)) * (1 + 4 * ELEMENTARY)
    return _through(moved, delta)


def _end(f: TradeoffFunction, delta: float) -> float:
    """An ε at which δ is about ``delta``, or as small as it gets."""
    last = f.product.largest_loss
    if not last < _LARGEST:
        last = f.epsilon(max(delta, min(1.0, 1.001 * float(f.delta(_LARGEST)))))
    return min(max(last, 0.0), _LARGEST)


def _through(epsilon: Array, delta: Array) -> TradeoffFunction:
    """The worst function with upper bounds on δ, which falls, in either direction."""
    falling = np.minimum.accumulate(np.minimum(delta, 1.0))
    points = dict(zip(epsilon.tolist(), falling.tolist(), strict=True))  # the last of equal ones
    return TradeoffFunction.from_profile(list(points), list(points.values()))


# --- Poisson samples ---------------------------------------------------------------------------


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
