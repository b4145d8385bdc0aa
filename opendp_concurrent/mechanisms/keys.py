"""Noise and thresholds that decide which keys of the data are released, with exact or certified δ.

*One key a unit.* A key with n units is released if n + X > k, with X Laplace noise on the integers,
drawn again until |X| <= k. Its law is c r^|x| with r = e^(-1/s) and c = (1-r)/(1+r-2r^(k+1)). For n
and n+1 units, the supports differ in one point each way, of mass δ = c r^k, and elsewhere the ratio
is r or 1/r. So this is exactly (1/s, δ)-DP, noisy count included, and the probability of release is
the largest of all (1/s, δ)-DP mechanisms [DVGM22].

*Up to m keys a unit.* Either each key as above, by the optimal composition of m such mechanisms; or
Gaussian noise on weighted counts [GGKSSY20]: a unit with j keys adds about 1/√j to each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from math import ceil, comb, exp, expm1, inf, isqrt, log, log1p, sqrt
from typing import Any

import scipy

from .. import _opendp as _native
from .._opendp import dp
from ..errors import InvalidValueError
from ..fdp import TradeoffFunction
from ..numerics import Bracket, Digits, density, lower, mills, upper
from .noise import ATOM, EDGES, LaplaceNoise

UNIT = 2**20  # of weights
MOST_KEYS = 1000  # of a unit
MOST_COMPOSED = 8  # of a unit, where composition is tried: beyond, Gaussian noise is far better
SHARES = tuple(place / 50 for place in range(1, 50))  # of δ
NEAR = 1 - 2.0**-16  # losses in doubles aim at this share, so that the certified ones are within

Loss = tuple[float, float]
Counts = dict[Any, dict[int, int]]  # of each key and each j, the number of units with j keys


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """Keys by truncated geometric noise on the number of units.

    :ivar scale: s
    :ivar reach: k
    :ivar loss: (ε, δ) of a unit with at most ``keys`` keys
    """

    scale: float
    reach: int
    loss: Loss

    @classmethod
    def of(cls, epsilon: float, delta: float) -> TruncatedGeometric:
        """Return the noise of least reach for units with one key each."""
        scale = upper(lambda real: 1 / real(epsilon))
        ratio = exp(epsilon)
        about = log((ratio + 2 * delta - 1) / ((ratio + 1) * delta)) / epsilon
        reach = max(1, ceil(about) - 2)
        while (found := one_key_delta(scale, reach)) > delta:
            reach += 1
        return cls(scale, reach, (upper(lambda real: 1 / real(scale)), found))

    @property
    def users(self) -> int:
        """The number of units of a key that is released with probability above one half."""
        return self.reach + 1

    def release(self, counts: Counts) -> dict[Any, int | None]:
        """Return keys with their noisy numbers of units."""
        noise, found = LaplaceNoise(self.scale), dict[Any, int | None]()
        for key, units in counts.items():
            while abs(drawn := noise.draw()) > self.reach:
                pass
            noisy = sum(units.values()) + drawn
            if noisy > self.reach:
                found[key] = noisy
        return found


def one_key_delta(scale: float, reach: int) -> float:
    """Return c r^k, rounded up."""

    def formula(real: Digits) -> Bracket:
        ratio, power = (-1 / real(scale)).exp(), (-real(reach) / real(scale)).exp()
        return (1 - ratio) * power / (1 + ratio - 2 * ratio * power)

    return upper(formula)


def composed_geometric(epsilon: float, delta: float, keys: int) -> TruncatedGeometric | None:
    """Return the noise for units with so many keys, by optimal composition; None if none is found.

    The share of δ in each key's δ is the one that needs the fewest units.
    """
    best: tuple[int, Loss] | None = None
    for share in SHARES:
        own = delta * share / keys
        each = _largest(partial(_composed, delta=own, keys=keys, at=epsilon), NEAR * delta)
        if each > 0.0:
            users = log(expm1(each) / own) / each
            if best is None or users < best[0]:
                best = ceil(users), (each, own)
    if best is None:
        return None
    made = TruncatedGeometric.of(*best[1])
    found = float(TradeoffFunction.approximate(*made.loss).power(keys).delta(epsilon))
    if found > delta:
        return None
    return TruncatedGeometric(made.scale, made.reach, (epsilon, found))


def _composed(epsilon: float, delta: float, keys: int, at: float) -> float:
    """Return δ at ``at`` of so many (ε, δ)-DP mechanisms, in doubles [KOV15, Theorem 3.3]."""
    high = 1 / (1 + exp(-epsilon))
    lost = sum(
        comb(keys, low) * high ** (keys - low) * (1 - high) ** low * -expm1(at - gain)
        for low in range(keys + 1)
        if (gain := epsilon * (keys - 2 * low)) > at
    )
    return 1 - exp(keys * log1p(-delta)) * (1 - lost)


def _largest(rising: Callable[[float], float], most: float) -> float:
    """Return about the largest positive number at which a function is at most ``most``, or 0."""
    low, high = 0.0, 2.0**10
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) <= most else (low, middle)
    return low


@dataclass(frozen=True)
class WeightedGaussian:
    """Keys by Gaussian noise on weighted numbers of units.

    :ivar scale: standard deviation of the noise, in units of 2^-20
    :ivar threshold: weights above it are released, in the same units
    :ivar keys: of a unit at most
    :ivar loss: (ε, δ) of a unit
    """

    scale: float
    threshold: int
    keys: int
    loss: Loss

    @classmethod
    def of(cls, epsilon: float, delta: float, keys: int) -> WeightedGaussian | None:
        """Return the noise and the threshold that need the fewest units; None if none is found."""
        best: tuple[float, float, float] | None = None
        sizes = range(1, keys + 1)
        for share in SHARES:
            fresh = delta * share
            mu = _largest(partial(_gaussian, epsilon=epsilon - 2 * fresh), NEAR * (delta - fresh))
            if mu > 0.0:
                quantiles = -scipy.special.ndtri([fresh * NEAR / size for size in sizes])
                pairs = zip(sizes, quantiles, strict=True)
                threshold = max(1 / sqrt(size) + one / mu for size, one in pairs)
                if best is None or threshold < best[0]:
                    best = threshold, 1 / mu, share
        if best is None:
            return None
        scale, threshold = best[1] * UNIT, ceil(best[0] * UNIT) + 1
        found = gaussian_delta(epsilon, scale, threshold, keys, delta)
        return cls(scale, threshold, keys, (epsilon, found)) if found <= delta else None

    @cached_property
    def users(self) -> int:
        """The number of units of a key that is released with probability about one half."""
        return -(-self.threshold // weight(self.keys))

    def release(self, counts: Counts) -> dict[Any, int | None]:
        """Return keys without numbers."""
        if not counts:
            return {}
        totals = [
            min(sum(weight(min(size, self.keys)) * n for size, n in units.items()), EDGES[1])
            for units in counts.values()
        ]
        space = dp.vector_domain(dp.atom_domain(T=ATOM), size=len(totals)), dp.l2_distance(T="f64")
        noisy = dp.m.make_gaussian(*space, self.scale)
        drawn = _native.invoke(noisy, _native.to_pointer(totals, noisy.input_carrier_type))
        return {key: None for key, one in zip(counts, drawn, strict=True) if one > self.threshold}


def weight(size: int) -> int:
    """Return what a unit with so many keys adds to each, at most 2^20/√size."""
    return isqrt(UNIT**2 // size)


def _gaussian(mu: float, epsilon: float) -> float:
    """Return δ at ε of μ-Gaussian DP, in doubles."""
    first, second = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    beyond, lost = scipy.special.ndtr(-first), exp(epsilon + scipy.special.log_ndtr(-second))
    return float(beyond) - lost


def gaussian_delta(epsilon: float, scale: float, threshold: int, keys: int, aim: float) -> float:
    """Return δ of :class:`WeightedGaussian` at ε, rounded up; at least 1 if nothing is proven.

    :param aim: about what δ is; it decides what is neglected
    """
    if scale < 1.0 or threshold <= UNIT or aim <= 0.0:
        return inf

    def some_of(size: int, real: Digits) -> Bracket:
        return _tail((real(threshold) - weight(size)) / real(scale)) * size

    fresh = max(upper(partial(some_of, size)) for size in range(1, keys + 1))
    if fresh >= 0.5:
        return inf
    beyond = 2 * (log(1 / aim) + epsilon + 30)  # the square of a distance; any is valid
    mu = upper(lambda real: UNIT / real(scale))

    def first(real: Digits) -> Bracket:
        return real(keys) / (24 * real(scale) * scale)

    def second(real: Digits) -> Bracket:
        root = real(keys).sqrt()
        radius = root + real(beyond).sqrt() + root / (2 * real(scale))
        wrong = 3 * real(keys) * (-19 * real(scale) * scale).exp()  # 19 < 2 π²
        return radius * radius / (24 * real(scale) * scale) + wrong

    near = lower(lambda real: real(epsilon) - first(real) - second(real) - 2 * real(fresh))
    moved = float(TradeoffFunction.gaussian(mu).delta(near))
    return upper(
        lambda real: (
            real(fresh) + first(real).exp() * moved + (real(epsilon) - real(beyond) / 2).exp()
        )
    )


def _tail(x: Bracket) -> Bracket:
    return density(x) * mills(x)


KeyNoise = TruncatedGeometric | WeightedGaussian


def key_noise(d_out: Loss, keys: int) -> KeyNoise:
    """Return the noise that needs the fewest units, for units with at most so many keys."""
    epsilon, delta = d_out
    if keys == 1:
        return TruncatedGeometric.of(epsilon, delta)
    known: Iterable[KeyNoise | None] = (
        composed_geometric(epsilon, delta, keys) if keys <= MOST_COMPOSED else None,
        WeightedGaussian.of(epsilon, delta, keys),
    )
    found = [one for one in known if one is not None]
    if not found:
        raise InvalidValueError(f"d_out ({d_out}) must be larger: no noise is known for it")
    return min(found, key=lambda one: one.users)
