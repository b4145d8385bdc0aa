"""Random allocation: each unit takes part in one of t rounds, drawn uniformly and independently.

Rounds add Gaussian noise of standard deviation σ to sums in which a unit has norm at most 1. With
and without the unit, all t rounds of an epoch are a postprocessing of z ~ P and z ~ Q, with
P = (1/t) Σ N(e_i, σ²I) and Q = N(0, σ²I), also if a round depends on the answers before it: fix the
allocation of the others, which has the same law either way; round i is its base + v_i z_i + noise
N(0, σ²(I - v_i v_iᵀ)), where the base and v_i depend on the answers before it [CGHLKKMSZ25].

The ratio of the densities is A = (1/t) Σ R_i, with independent ln R_i ~ N(-1/(2σ²), 1/σ²) under Q.
So the profiles are E_Q[(A - e^ε)₊] if the unit is removed, and E_Q[(1 - e^ε A)₊] if it is added.
Both are convex in A. The bound is computed from a law of R on a grid, which is larger in the convex
order but for a deviation that is measured:

* The mass of each cell is divided between its ends, which keeps mass and mean; what is above the
  grid is at its end. Let d bound |E(R̂ - K)₊ - E(R - K)₊| for all K on the grid. Between two points
  the former is linear and the latter convex, and above the grid it falls: so d bounds what is
  missing everywhere. A convex function of one R has slopes in a range of length 1/t, or e^ε/t, so
  t replacements miss at most d, or 2 e^ε d and e^ε t times the deviation of the whole mass, as
  (K - R)₊ is (R - K)₊ + K - R.
* The sum of t copies is computed by FFT. It misses the sums beyond the length N of the FFT, for
  which E[S; S > N] <= N e^(-θN) E[e^(θR̂)]^t if θN >= 1; that they are added elsewhere only adds to
  a bound. Each value of an FFT has an error of at most 8 log₂(N) roundings of Σ|x|. By Parseval
  that of the probabilities has a small L2 norm, which is multiplied with that of the function.

Profiles are also at most those of Gaussian noise without allocation, by joint convexity.
"""

from __future__ import annotations

from functools import lru_cache
from math import asinh, exp, expm1, fsum, log, log2, sqrt

import numpy as np
import scipy

from .atoms import partial_sums, partial_sums_error
from .bounds import ELEMENTARY, UNIT, Array
from .finite import Finite
from .gaussian import SPECIAL, gaussian_profile
from .shapes import described
from .vertices import from_vertices

LEAST_SIGMA, MOST_SIGMA, MOST_BATCHES = 0.5, 100.0, 10**5
_SIZE = 2**21  # longest FFT
_STEPS = 200  # of the grid in a standard deviation of R, if the FFT is long enough
_POINTS = 500  # of each profile


@lru_cache(maxsize=64)
def allocation(sigma: float, batches: int) -> Finite:
    """The pair of one epoch, as a bound on neighbours with a unit removed."""
    law = _Epoch(sigma, batches)
    spread = sqrt(law.variance / batches)
    top = 8 / sigma + 0.5 / sigma**2
    steps = np.linspace(0.0, asinh(top / spread), _POINTS)
    epsilon = np.unique(np.minimum(spread * np.sinh(steps), top))
    whole = gaussian_profile(1 / sigma * (1 + 2 * UNIT), epsilon).upper
    sides = [
        np.minimum.accumulate(np.minimum(side, whole)).tolist()
        for side in (law.removed(epsilon), law.added(epsilon))
    ]
    points = epsilon.tolist()
    pair = from_vertices(
        zip(points, sides[0], strict=True),
        zip(points, sides[1], strict=True),
        described("random allocation", sigma, batches),
    )
    return pair.one_way("removed")


class _Epoch:
    """The law of S = t A on a grid, and how much the expectations of it may miss."""

    def __init__(self, sigma: float, batches: int) -> None:
        self.batches, self._mu = batches, 1 / sigma
        self.variance = expm1(self._mu**2)
        far = np.linspace(4.0, 8.0, 41)  # ends of the grid, in standard deviations of ln R
        tops = np.exp(far * self._mu + self._mu**2 / 2)
        # about what is above the grid, and the error of an FFT
        rough = scipy.special.ndtr(-far) + 5e-15 * (4 * tops + batches) ** 1.5
        top = float(tops[np.argmin(rough)])
        length = 4 * top + batches + 24 * sqrt(batches * self.variance)
        self._step = max(sqrt(self.variance) / _STEPS, length / (_SIZE - 2))
        self._size = 1 << int(log2(length / self._step) + 1)
        ends = self._step * np.arange(int(top / self._step) + 1, dtype=np.float64)
        with np.errstate(divide="ignore"):
            score = np.log(ends) / self._mu
        masses = self._cells(score)
        missing, self._extra = self._missing(ends, score, masses)
        self._deviation = missing + batches * self._extra * 1.01  # of t masses
        self._beyond = self._missed(ends, masses)
        self._sum(masses)

    def _cells(self, score: Array) -> Array:
        """Masses at the points, each rounded; the deviation is measured afterwards."""
        cells = []
        for shift in (self._mu / 2, -self._mu / 2):  # of Q, and of P, whose masses are means
            right, left = scipy.special.ndtr(-score - shift), scipy.special.ndtr(score + shift)
            cells.append(np.where(left[:-1] < 0.5, np.diff(left), -np.diff(right)))
        whole, mean = cells
        share = np.clip(mean / self._step - np.arange(len(whole)) * whole, 0.0, whole)
        beyond = scipy.special.ndtr(-score[-1] - self._mu / 2)
        masses = np.append(whole - share, beyond)
        masses[1:] += share
        masses[0] += max(0.0, 1 - fsum(masses.tolist()))
        return masses

    def _missing(self, ends: Array, score: Array, masses: Array) -> tuple[float, float]:
        """The largest deviation of E(R̂ - K)₊, and that of the mass."""
        tails = partial_sums(masses[::-1])[::-1]  # mass from each point on
        calls = self._step * partial_sums(tails[-2:0:-1])[::-1]
        true = scipy.special.ndtr(self._mu / 2 - score)
        true = true - ends * scipy.special.ndtr(-score - self._mu / 2)
        # both terms are at most 1; an error of the score is multiplied with a density
        rounding = 3 * SPECIAL + 8 * ELEMENTARY * (1 + 1 / self._mu)
        rounding += 4 * partial_sums_error(len(masses))
        deviation = (float(np.max(np.abs(calls - true))) + rounding) * (1 + 2.0**-20)
        return deviation, abs(fsum(masses.tolist()) - 1) + 4 * UNIT

    def _missed(self, ends: Array, masses: Array) -> float:
        """E[A; S is longer than the FFT], at the best θ."""
        length, found = self._step * (self._size - 1), [0.0]
        for rate in np.geomspace(1.0, 1e7, 140).tolist():
            if rate * ends[-1] < 600.0 * length:
                log_mgf = log(float(masses @ np.exp(rate / length * ends)))
                found.append(log(length) - rate + self.batches * log_mgf)
        return exp(min(found)) / self.batches * (1 + 1e-6)

    def _sum(self, masses: Array) -> None:
        """The law of the sum of t copies, by FFT."""
        t, size = self.batches, self._size
        single = np.abs(wave := scipy.fft.rfft(masses, size))
        power = _power(wave, t)
        self._masses = np.maximum(scipy.fft.irfft(power, size), 0.0)
        one = 8 * UNIT * (log2(size) + 1) * (1 + self._extra)
        # of t factors with an error each, and of the multiplications
        near = t * (one + 8 * UNIT) * np.minimum(single + one, 1 + one) ** (t - 1)
        weights = np.where(np.arange(len(wave)) % (size // 2), 2.0, 1.0) / size
        self._error = sqrt(float(weights @ near**2))
        self._error += one * sqrt(2 * float(weights @ (np.abs(power) + near) ** 2))
        self._values = self._step * np.arange(size) / t
        self._relative = 2 * partial_sums_error(size) + 2 * ELEMENTARY + 8 * UNIT

    def removed(self, epsilon: Array) -> Array:
        """A bound on E(A - e^ε)₊."""
        ratio = np.exp(epsilon)
        order = np.searchsorted(self._values, ratio)
        masses, weighted = self._masses[::-1], (self._masses * self._values)[::-1]
        mass, mean = (partial_sums(one)[::-1][order] for one in (masses, weighted))
        spacing, top = self._step / self.batches, float(self._values[-1])
        # of the function, from an integral that is above the sum of its squares
        norm = np.sqrt((np.maximum(top - ratio, 0.0) + spacing) ** 3 / (3 * spacing))
        error = (mean + ratio * mass) * self._relative + self._error * norm
        return np.asarray(mean - ratio * mass + error + self._deviation + self._beyond)

    def added(self, epsilon: Array) -> Array:
        """A bound on E(1 - e^ε A)₊."""
        ratio = np.exp(epsilon)
        order = np.searchsorted(self._values, 1 / ratio)
        masses, weighted = self._masses, self._masses * self._values
        mass, mean = partial_sums(masses)[order], partial_sums(weighted)[order]
        value, error = mass - ratio * mean, (mass + ratio * mean) * self._relative
        error = error + self._error * np.sqrt(order)  # a function of at most 1
        return np.asarray(value + error + ratio * 2 * self._deviation)


def _power(wave: Array, count: int) -> Array:
    """By repeated squaring: each multiplication errs by a few roundings."""
    result = np.ones_like(wave)
    while count:
        if count & 1:
            result = result * wave
        wave, count = wave * wave, count >> 1
    return result
