"""The factorisation of counters with Gaussian noise: buffers, with columns of norm 1.

The matrix A of the prefix sums is written as (A D C^-1)(C D^-1). C is lower triangular, with the
generating function c(z) = 1 + Σ ω_i z/(1 - θ_i z), 0 < θ_i < 1 and ω_i > 0 [DMPST24]: its state is
one number for each i, a *buffer*. D is diagonal. What is released is C D^-1 x + z, with discrete
Gaussian noise z, on a grid of 2^-bits. The answers A D C^-1 (C D^-1 x + z) are
postprocessing of it.

With a horizon of T steps, d_t is the norm of the column t of C, which is cut after T - t + 1
entries. So each column of C D^-1 has norm 1, and an item costs the same at each step: at the end
there is less noise than without D. Without a horizon, and for windows, all d_t are the norm of the
first column.

Buffer i is the sum of past entries with weights θ_i^age, and C x is the current entry plus
Σ ω_i buffer_i. Both are computed in integers: the buffers with ``guard`` more bits than the grid,
and rounded down at each step. The entries are exact: an item times 2^bits/d_t, rounded down to an
integer.

Rounding. A buffer is too small by less than 1/(1 - θ_i) of its unit: it gets a new error below 1 at
each step, and the old one shrinks by θ_i. ``guard`` is so large that all buffers together make C x
too small by less than 1/16 step of the grid; rounding it down adds less than 1. All errors have the
same sign, so those of two streams differ by less than 17/16.
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import frexp, isqrt, sqrt
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..queryables import bounded_integer, fields, require, rows
from .digits import NodeNoise, plain, unplain

Buffers = tuple[tuple[int, int], ...]

BITS = 60  # of 1 - θ and ω
DIGITS = 128  # bits of powers, which are rounded down
GUARD = 4
FINE = 5  # significant bits of the lengths of columns
NORM_BITS = 64  # of norms
SCALE_BITS = 55  # noise of 2^55 steps of the grid is below 2^62 in 128 deviations
SUM_BITS = 60  # C x is at most 2^61 steps of the grid
SLACK = 3  # steps of the grid, for each step of the stream

# For each buffer 1 - θ and ω, in units of 2^-60, as ``benchmarks/design_buffers.py`` found them.
# The tables are for up to 2^m steps, or windows of up to 2^m. Privacy does not depend on how these
# were found: norms are computed from them, and rounded up.
_FOUND = json.loads(Path(__file__).with_name("buffers.json").read_text())
HORIZONS: dict[int, Buffers]
WINDOWS: dict[int, Buffers]
HORIZONS, WINDOWS = (
    {int(m): tuple((rate, weight) for rate, weight in one) for m, one in _FOUND[kind].items()}
    for kind in ("horizons", "windows")
)
ENDLESS: Buffers = tuple((rate, weight) for rate, weight in _FOUND["endless"])


class BufferedCoder:
    """The buffers of one stream, of integers or of arrays of integers."""

    def __init__(self, thetas: list[int], weights: list[int], guard: int) -> None:
        self._thetas, self._weights, self._guard = thetas, weights, guard
        self._shift = BITS + guard
        self._buffers: list[Any] = [0] * len(thetas)

    def encode(self, value: int | NDArray[Any]) -> Any:
        """Take the next entry of x, and return that of C x; both in steps of the grid."""
        past = self._past()
        self._absorb(value)
        return value + past

    def decode(self, value: int | NDArray[Any]) -> Any:
        """Take the next entry of C x + z, and return that of C^-1 of it."""
        value = value - self._past()
        self._absorb(value)
        return value

    def _past(self) -> Any:
        return sum(map(mul, self._weights, self._buffers)) >> self._shift

    def _absorb(self, value: int | NDArray[Any]) -> None:
        fine = value << self._guard
        shrunk = map(mul, self._thetas, self._buffers)
        self._buffers = [(one >> BITS) + fine for one in shrunk]

    def to_record(self) -> list[Any]:
        """Return the buffers as a JSON value."""
        return [plain(buffer) for buffer in self._buffers]

    def restore(self, record: list[Any], size: int | None) -> None:
        """Restore the buffers from a record."""
        count = len(self._thetas)
        self._buffers = [unplain(buffer, size) for buffer in rows(record, count, count)]


@dataclass(frozen=True)
class BufferedFactor:
    """C and D.

    :ivar buffers: for each buffer 1 - θ and ω, in units of 2^-60
    :ivar horizon: largest number of steps
    :ivar cut: whether d_t is the norm of its own column, and not that of the first one
    """

    buffers: Buffers
    horizon: int
    cut: bool

    def gain(self) -> int:
        """Return a bound on the sum of each row of C: 1 + Σ ω/(1 - θ), or the horizon."""
        return min(1 + sum(-(-omega // delta) for delta, omega in self.buffers), self.horizon)

    def norm_squared(self, length: int) -> int:
        """Return the squared norm of the first entries of c, times 4^64, rounded up.

        It is 1 + Σ ω_i ω_j (1 - r^(length-1))/(1 - r), with r = θ_i θ_j.
        """
        total = 0
        for delta, omega in self.buffers:
            for other, weight in self.buffers:
                ratio = ((1 << BITS) - delta) * ((1 << BITS) - other)  # times 2^120
                rest = (1 << DIGITS) - power_down(ratio, 2 * BITS, length - 1)
                total -= -(omega * weight * rest) // ((1 << 2 * BITS) - ratio)
        return (1 << 2 * NORM_BITS) - (-(total << 2 * NORM_BITS) >> DIGITS)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield lengths of blocks of steps, and the length of a column that bounds d_t in each.

        The last steps have a block each. Before, columns are taken to be longer by up to 1/16.
        """
        left = self.horizon
        while left > 0:
            unit = 1 << max(0, (left - 1).bit_length() - FINE) if self.cut else left
            whole = -(-left // unit) * unit
            yield left - (whole - unit), min(whole, self.horizon)
            left = whole - unit

    def coder(self) -> BufferedCoder:
        """Return buffers before the first step."""
        thetas = [(1 << BITS) - delta for delta, _ in self.buffers]
        weights = [omega for _, omega in self.buffers]
        gain = sum(-(-omega // delta) for delta, omega in self.buffers)
        return BufferedCoder(thetas, weights, gain.bit_length() + GUARD)

    def grid_bits(self, scale: float, largest: int) -> int:
        """Return the number of bits of the grid: as fine as 64-bit noise and sums allow."""
        return min(SCALE_BITS - frexp(scale)[1], SUM_BITS - (self.gain() * largest).bit_length())

    def sensitivity(self, bits: int, shift: int) -> int:
        """Return how far one item moves all releases together, in steps of the grid; rounded up.

        Columns of C D^-1 have a norm of at most 1, whatever the step of the item. Two steps of the
        grid at each step are for rounding. One more is for Gaussian DP, whose certificate for a
        shift of m steps is that of m + 1. In a histogram, the category of the item is rounded.
        """
        root = isqrt(self.horizon - 1) + 1
        return (shift << bits) + SLACK * root


@lru_cache(maxsize=4096)
def inverse_norm(factor: BufferedFactor, bits: int, length: int) -> int:
    """Return 2^bits over the norm of the first entries of c, rounded down: the entry of an item."""
    return isqrt((1 << 2 * (bits + NORM_BITS)) // factor.norm_squared(length))


def power_down(base: int, bits: int, exponent: int) -> int:
    """Return (base 2^-bits)^exponent 2^128, for a base of at most 1; rounded down."""
    result, square = 1 << DIGITS, base << DIGITS - bits
    while exponent:
        if exponent & 1:
            result = result * square >> DIGITS
        square = square * square >> DIGITS
        exponent >>= 1
    return result


def buffered(horizon: int) -> BufferedFactor:
    """Return the factor of a horizon: the buffers of the next power of two, or endless ones."""
    found = HORIZONS.get((horizon - 1).bit_length(), ENDLESS)
    return BufferedFactor(found, horizon, cut=True)


def windowed(window: int, horizon: int) -> BufferedFactor:
    """Return the factor of a window, for streams of so many steps."""
    found = WINDOWS.get((window - 1).bit_length(), ENDLESS)
    return BufferedFactor(found, horizon, cut=False)


def endless(horizon: int) -> BufferedFactor:
    """Return the factor of streams without a horizon; their norm is that of ``horizon`` steps."""
    return BufferedFactor(ENDLESS, horizon, cut=False)


# Errors of factorisations, in closed form.
#
# C has the generating function c(z) = 1 + Σ ω_i z/(1 - θ_i z). With δ_i = 1 - θ_i, the poles of 1/c
# are 1 - λ_i, where λ_i are the roots of the secular equation 1 + Σ ω_i/(δ_i - λ) = 0. So A C^-1
# has entries Σ A_i (1 - λ_i)^k with λ_0 = 0. Sums of their squares are geometric. All is computed
# in doubles; nothing about privacy depends on it.

Numbers = NDArray[np.float64]
SMALL = 1e-4
HALVINGS = 90


def parameters(buffers: Buffers) -> tuple[Numbers, Numbers]:
    """Return δ, which rises, and ω."""
    pairs = np.array(sorted(buffers), dtype=np.float64).reshape(-1, 2) * 2.0**-BITS
    return pairs[:, 0], pairs[:, 1]


def roots(delta: Numbers, omega: Numbers) -> tuple[Numbers, Numbers]:
    """Return the roots of the secular equation, and how far each is above its δ."""
    if not len(delta):
        return delta, delta
    gap = np.append(delta[1:], delta[-1] + omega.sum()) - delta
    away = delta[None, :] - delta[:, None]
    low, high = gap * 1e-18, gap.copy()
    for _ in range(HALVINGS):
        middle = np.where(high > 4 * low, np.sqrt(low * high), (low + high) / 2)
        below = 1 + np.sum(omega / (away - middle[:, None]), axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    excess = (low + high) / 2
    return delta + excess, excess


def decoder(delta: Numbers, omega: Numbers) -> tuple[Numbers, Numbers]:
    """Return λ, from λ_0 = 0, and A."""
    found, excess = roots(delta, omega)
    lam = np.concatenate([[0.0], found])
    numerators = np.subtract.outer(delta, lam)
    numerators[np.arange(len(delta)), np.arange(1, len(lam))] = -excess
    differences = np.subtract.outer(lam, lam)
    np.fill_diagonal(differences, 1.0)
    return lam, numerators.prod(axis=0) / differences.prod(axis=0)


def squared_norm(delta: Numbers, omega: Numbers, horizon: float | None = None) -> float:
    """Return the squared norm of a column of C; of all time without a horizon."""
    rate = np.add.outer(delta, delta) - np.outer(delta, delta)
    weight = 1.0 if horizon is None else -np.expm1((horizon - 1) * np.log1p(-rate))
    return 1 + float(np.sum(np.outer(omega, omega) * weight / rate))


def prefix_squares(delta: Numbers, omega: Numbers, steps: Numbers) -> tuple[Numbers, ...]:
    """Return the squared norms of rows of A C^-1, their sums up to there, and inner products.

    :return: for each of the steps: the squared norm of its row, which grows with the step; the sum
        of those of all rows up to it; its products with the rows (1 - λ_i)^age
    """
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    rate[0, 0], at = 0.5, steps[:, None, None]  # that of λ_0, 0, has other formulas: see below
    gone = np.expm1(at * np.log1p(-rate))
    products, sums = -gone / rate, (at + (1 - rate) * gone / rate) / rate
    products[:, 0, 0] = steps
    few = at * (at + 1) / 2 - rate * (at - 1) * at * (at + 1) / 6
    sums = np.where(rate * at < SMALL, few, sums)
    sums[:, 0, 0] = steps * (steps + 1) / 2
    inner = products @ factors
    return inner @ factors, np.einsum("i,tij,j->t", factors, sums, factors), inner


def variances(factor: BufferedFactor, steps: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the variances of the first sums, for noise of variance 1, in blocks of steps.

    In a block d is constant, so the noise at step t is E + d P_t: P_t is that of A C^-1, and E is
    the noise before the block, minus d P there. E and P are sums with weights that are at least 0,
    since d falls. So the variance is at most that with the covariance of E and P at the first step
    of the block, which falls, and the variance of P at the last one, which grows.

    :return: for each block its length, the sum of its variances, and a bound on each of them
    """
    delta, omega = parameters(factor.buffers)
    lam, factors = decoder(delta, omega)
    found, left = [], steps
    for length, column in factor.blocks():
        found.append((min(length, left), column))
        left -= length
        if left <= 0:
            break
    lengths, columns = np.array(found, dtype=np.float64).T
    norms = np.sqrt([squared_norm(delta, omega, column) for column in columns])
    ends = np.concatenate([[0.0], np.cumsum(lengths)])
    squares, sums, inner = prefix_squares(delta, omega, ends)
    kept = np.log1p(-lam)
    away = np.exp(np.outer(lengths, kept))
    ages = np.where(lam > 0, (1 - lam) * (1 - away) / np.where(lam > 0, lam, 1.0), lengths[:, None])
    totals, bounds = np.empty(len(lengths)), np.empty(len(lengths))
    variance, with_rows = 0.0, np.zeros(len(lam))  # of the noise, and its products with rows
    for block, norm in enumerate(norms):
        before = with_rows - norm * inner[block]
        own = variance - 2 * norm * (factors @ with_rows) + norm**2 * squares[block]
        shared = 2 * norm * factors * before
        totals[block] = lengths[block] * own + shared @ ages[block]
        totals[block] += norm**2 * (sums[block + 1] - sums[block])
        bounds[block] = own + shared @ np.exp(kept) + norm**2 * squares[block + 1]
        variance = own + shared @ away[block] + norm**2 * squares[block + 1]
        with_rows = away[block] * before + norm * inner[block + 1]
    return lengths, totals, bounds


def window_square(delta: Numbers, omega: Numbers, window: float) -> float:
    """Return the squared norm of a row of the last W steps' sum times C^-1, late in a stream."""
    lam, factors = decoder(delta, omega)
    rate = np.add.outer(lam, lam) - np.outer(lam, lam)
    with np.errstate(all="ignore"):
        sums = -np.expm1(window * np.log1p(-rate)) / rate
    inside = np.sum(np.outer(factors, factors) * np.where(rate == 0, window, sums))
    left = factors[1:] * -np.expm1(window * np.log1p(-lam[1:]))
    return float(inside + np.sum(np.outer(left, left) / rate[1:, 1:]))


def window_variance(factor: BufferedFactor, window: int) -> float:
    """Return the variance of the noise of the last W steps' sum, for noise of variance 1."""
    found = parameters(factor.buffers)
    return squared_norm(*found, factor.horizon) * window_square(*found, window)


def mean_error(factor: BufferedFactor, steps: int) -> float:
    """Return the root mean square error over the first steps, for noise of variance 1."""
    return sqrt(float(variances(factor, steps)[1].sum()) / steps)


# Noisy prefix sums of a stream by a factorisation: each step is released once, with noise.

MORE = 96  # bits of sums, besides those of the grid: an item is off by less than 2^-96 of itself


class ByItem:
    """A state that takes items one by one."""

    update: Callable[[Any], None]

    def update_all(self, items: NDArray[Any]) -> None:
        """Take the items of the next steps."""
        for item in items.tolist() if items.ndim == 1 else items:
            self.update(item)


class FactorPrefix(ByItem):
    """A prefix by a factor. Noise is drawn at each step.

    :param bits: of the grid
    :param noise: of one release, in steps of the grid
    """

    def __init__(self, factor: BufferedFactor, bits: int, noise: NodeNoise) -> None:
        self._factor, self._bits, self._noise = factor, bits, noise
        self._data = factor.coder()  # what is known of the items
        self._decoded = factor.coder()  # what follows from the releases
        self.fine_total: Any = 0
        self._begin(0)

    def _begin(self, steps: int) -> None:
        """Go to the block of a step."""
        self._blocks, self.steps, self._left = self._factor.blocks(), steps, 0
        while steps >= 0:
            length, column = next(self._blocks, (0, 0))
            if steps < length:
                self._open(length - steps, column)
                return
            if not length:  # the horizon is reached
                return
            steps -= length

    def _open(self, left: int, column: int) -> None:
        self._left, self._entry = left, inverse_norm(self._factor, self._bits, column)
        self._weight = (1 << self._bits + MORE) // self._entry

    def update(self, item: int | NDArray[Any]) -> None:
        """Take the item of the next step, and release the step."""
        if isinstance(item, np.ndarray):
            item = item.astype(object)  # 64 bits may be too few
        if not self._left:
            self._open(*next(self._blocks))
        self._left, self.steps = self._left - 1, self.steps + 1
        exact = self._data.encode(item * self._entry)
        self.fine_total = (
            self.fine_total + self._decoded.decode(self._release(exact)) * self._weight
        )

    def _release(self, exact: int | NDArray[Any]) -> Any:
        if isinstance(exact, np.ndarray):
            return np.array([self._noise.release(one) for one in exact.tolist()], dtype=object)
        return self._noise.release(exact)

    def total(self) -> Any:
        """Return the noisy sum so far, rounded to integers."""
        return self.nearest(self.fine_total)

    def nearest(self, total: int | NDArray[Any]) -> Any:
        """Return a sum or difference of :attr:`fine_total`, rounded to integers."""
        fine = self._bits + MORE
        return total + (1 << fine - 1) >> fine

    def to_record(self) -> dict[str, Any]:
        """Return sums, and what was released, as a JSON value."""
        return {
            "data": self._data.to_record(),
            "decoded": self._decoded.to_record(),
            "steps": self.steps,
            "sum": plain(self.fine_total),
        }

    def restore(self, record: dict[str, Any], size: int | None = None) -> None:
        """Restore the state from a record."""
        data, decoded, steps, total = fields(record, "data", "decoded", "steps", "sum")
        self._data.restore(data, size)
        self._decoded.restore(decoded, size)
        self._begin(bounded_integer(steps, most=self._factor.horizon))
        self.fine_total = unplain(total, size)


# Sliding windows by a factorisation: the difference of two of its noisy prefix sums.
#
# The releases C D^-1 x + z are those of a counter without a horizon. The sum of the last W steps is
# a difference of two prefix sums, so it is postprocessing of them. The state has W noisy prefix
# sums.


class FactorWindow(ByItem):
    """The window by a factorisation."""

    def __init__(self, window: int, prefix: FactorPrefix) -> None:
        self._prefix = prefix
        self._totals: deque[int] = deque([0], window + 1)

    def update(self, item: int) -> None:
        """Take the item of the next step, and release the step."""
        self._prefix.update(item)
        self._totals.append(self._prefix.fine_total)

    def total(self) -> int:
        """Return the noisy sum of the window."""
        return int(self._prefix.nearest(self._totals[-1] - self._totals[0]))

    def to_record(self) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {"prefix": self._prefix.to_record(), "totals": list(self._totals)}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        prefix, totals = fields(record, "prefix", "totals")
        most = self._totals.maxlen
        assert most is not None
        for total in rows(totals, 1, most):
            require(type(total) is int)
        self._prefix.restore(prefix)
        require(len(totals) == min(self._prefix.steps + 1, most))
        self._totals = deque(totals, most)
        require(bool(totals[-1] == self._prefix.fine_total))
