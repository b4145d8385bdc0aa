"""Laplace noise; and Gaussian and Laplace noise on sampled units, between pairs with few losses.

Laplace noise is continuous or on a grid, at a shift of ``epsilon`` scales. For noise on a grid at a
shift of d steps, let α = e^(-ε/d). Then P(X <= n) = 1 - α^(n+1)/(1 + α) for n >= 0, and the loss is
(d - 2x) ε/d for 0 <= x <= d. One step is randomized response; infinitely many steps are the Laplace
distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, exp, expm1, factorial, inf, isinf, log, log1p, nextafter, pi, sqrt
from typing import Any, TypeAlias, Union

import numpy as np
import scipy

from .._checks import tagged
from . import bounds
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, probabilities
from .exact import SPECIAL, Atoms, Gaussian
from .finite import Finite, response

_FEW = 4096  # steps up to which outcomes are listed
_FINE = 2.0**60  # a finer grid becomes this one and loses no less (proof: measures/tradeoffs.py)


@tagged("laplace", "epsilon", "steps")
@dataclass(frozen=True)
class Laplace(bounds.Lasting):
    """Two-sided exponential noise against the same noise, shifted.

    :ivar epsilon: shift over scale; the largest loss
    :ivar steps: shift over step of the grid, an integer; infinite for continuous noise
    """

    epsilon: float
    steps: float = inf

    infinite = mass_error = slack = 0.0
    gaussian = inf
    symmetric, stands_for, unit = True, "", ""

    @property
    def largest_loss(self) -> float:
        """ε."""
        return self.epsilon

    largest_loss_lower = largest_loss

    @property
    def variance(self) -> float:
        """Twice the Kullback-Leibler divergence of the continuous distribution."""
        return 2 * (self.epsilon + expm1(-self.epsilon)) if self.epsilon > 1e-5 else self.epsilon**2

    @property
    def _cell(self) -> float:
        return self.epsilon / self.steps

    def _weights(self) -> tuple[float, float]:
        """Weights of cosh(uε) and of the ratio of hyperbolic sines, without e^(-ε/2)."""
        if isinf(self.steps):
            return 1.0, 0.5
        alpha = exp(-self._cell)
        return 2 / (1 + alpha), -expm1(-self._cell) / (1 + alpha)

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of e^(-ε/2) (a cosh(uε) + b sinh(uε(1 - 1/d)) / sinh(uε/d)), u = τ + 1/2.

        All exponentials are scaled by e^(-uε).
        """
        u = np.asarray(tau, dtype=float) + 0.5
        a, b = self._weights()
        scaled = a * (1 + np.exp(-2 * u * self.epsilon)) / 2 + b * self._ratio(u)
        value: Array = (u - 0.5) * self.epsilon + np.log(scaled)
        return value

    def _ratio(self, u: Array) -> Array:
        """e^(-uε) sinh(uε(1 - 1/d)) / sinh(uε/d), or its limit e^(-uε) sinh(uε) / u."""
        u = np.where(u == 0.0, 1e-9, u)  # continuous at 0
        whole, cell = u * self.epsilon, u * self._cell
        if isinf(self.steps):
            return -np.expm1(-2 * whole) / (2 * u)
        return np.exp(-2 * cell) * np.expm1(-2 * (whole - cell)) / np.expm1(-2 * cell)

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Errors of the exponentials, and of the sum of two large numbers."""
        return 4 * ELEMENTARY + 4 * UNIT * (1 + tau) * self.epsilon

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """As :meth:`log_mgf`, with u = τ + 1/2 + iω."""
        omega = step * np.arange(nodes)
        u = (tau + 0.5) + 1j * omega
        a, b = self._weights()
        phase = _phase(omega * self.epsilon)
        # e^(-(τ+1/2)ε) cosh(uε) = (phase + decay / phase) / 2
        back = exp(-(2 * tau + 1) * self.epsilon) * np.conj(phase)
        if isinf(self.steps):
            ratio = (phase - back) / (2 * u)
        else:
            cell = self._cell
            angle, less = omega * cell, exp(-(2 * tau + 1) * cell)
            shrink = less * _phase(-2 * angle)  # e^(-2uε/d)
            rest = 2 * np.sin(angle) ** 2 + 1j * np.sin(2 * angle)  # 1 - e^(-2iωε/d)
            ratio = (phase * shrink - back) / (less * rest - expm1(-(2 * tau + 1) * cell))
        values = a * (phase + back) / 2 + b * ratio
        whole = values[0].real
        largest = float(omega[-1]) * self.epsilon
        error = (16 * ELEMENTARY + 16 * UNIT * (largest + self.epsilon * (tau + 1))) / whole
        return bounds.Transform(values / whole, error)

    def profile(self, epsilon: Array) -> Bounds:
        """For |ε| < ε₀: 1 - e^((ε-ε₀)/2) if continuous; piecewise linear in e^ε on a grid."""
        e0 = self.epsilon
        inside = np.clip(epsilon, -e0, e0)
        if isinf(self.steps):
            value = -np.expm1((inside - e0) / 2)
            error = ELEMENTARY * (value + np.exp((inside - e0) / 2) * (np.abs(inside) + e0) / 2)
        else:
            cell, d = self._cell, self.steps
            # n counts the x in 0, 1, ... with a loss above ε; another n gives a lower bound
            n = np.clip(np.ceil((e0 - inside) / (2 * cell)), 1, d)
            odd = log1p(exp(-cell))
            # 1 - α^n / (1 + α) - e^ε α^(d+1-n) / (1 + α)
            one = np.exp(-n * cell - odd)
            two = np.exp(inside - (d + 1 - n) * cell - odd)
            value = (1 - one) - two
            error = ELEMENTARY * (
                1 + (n * cell + e0 + 1) * one + (np.abs(inside) + 2 * e0 + 1) * two
            )
        left = np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0)))  # where every loss is above ε
        value = np.where(epsilon >= e0, 0.0, np.where(epsilon <= -e0, left, value))
        error = np.where(epsilon <= -e0, ELEMENTARY * left, error)
        error = np.where(epsilon >= e0, 0.0, error + TINY)  # a small ε underflows
        return probabilities(value - error, value + error)

    def swapped(self) -> Laplace:
        """The pair (Q, P), which is the same."""
        return self


def _phase(angle: Any) -> bounds.ComplexArray:
    phase: bounds.ComplexArray = np.exp(1j * angle)
    return phase


def laplace(epsilon: float, steps: float = inf) -> Finite | Laplace:
    """The Laplace mechanism; a finite pair if the shift has few steps."""
    if epsilon == 0.0 or steps > _FEW:
        return Laplace(epsilon, steps if isinf(steps) else min(steps, _FINE))
    if steps == 1.0:
        return response(epsilon)
    count = int(steps)
    cell = epsilon / count
    x = np.arange(count, -1, -1.0)
    odd = log1p(exp(-cell))
    masses = np.exp(-x * cell - odd) * -expm1(-cell)
    masses[0], masses[-1] = exp(-epsilon - odd), exp(-odd)
    error = 3 * ELEMENTARY + 4 * UNIT * (1 + epsilon)
    return Finite(
        *((count - 2 * x) * cell, masses, 0.0, 0.0, error, 4 * UNIT * epsilon + TINY),
        symmetric=True,
        limit=epsilon,
    )


# Pairs with few losses below and above sampled noise: what ``sandwich.py`` starts from.
#
# Let y = ln dP₀/dQ of the noise, which rises with x, and cut the line into cells. N and M are the
# Q- and P₀-mass of a cell. With a unit that takes part with probability q, its ratios are
# r = 1 - q + q e^y.
#
# *Above.* The Q-mass t = (M - e^a N) / (e^b - e^a) of a cell goes to its right end y = b, and N - t
# to its left end a. This keeps both masses, whatever q is. An outer cell goes to the largest loss
# that it has.
#
# *Below.* All of a cell goes to the ratio 1 - q + q M/N.
#
# Bounds on N, M and y are known; what is above has larger masses and losses, what is below smaller.
# So the masses of these outcomes need not add up to 1.

_CELLS = 600  # of a noise
_FLAT = 60.0  # -y from which on 1 - q + q e^y is 1 - q: the first cell
_TERMS = 7  # of a series for the mass of a narrow cell
LEAST_EPSILON = 1e-9  # of Laplace noise: with less, cells have no width
_MOST_RATIO = 600.0  # largest |y|, for exponentials that stay in the doubles


@dataclass(frozen=True, eq=False)
class Noise:
    """Cells of a noise, the outer two among them.

    :ivar ends: y at the ends of the inner cells
    :ivar wrong: bound on the errors of the ends
    :ivar q: N of each cell
    :ivar p: M of each cell
    :ivar q_error: bound on the errors of N
    :ivar p_error: bound on the errors of M
    :ivar top: the largest y
    """

    ends: Array
    wrong: Array
    q: Array
    p: Array
    q_error: Array
    p_error: Array
    top: float


@lru_cache(maxsize=512)
def gaussian_cells(mu: float, rate: float, tail: float, cell: float = 0.0) -> Noise | None:
    """N(μ, 1) against N(0, 1), cut at points x = y/μ + μ/2; None if ratios leave the doubles.

    :param tail: P-mass that may count as infinite loss
    :param cell: width of cells in standard deviations; by default they are narrow
    """
    half = max(tail / 2, TINY)
    ends = scipy.special.ndtri([half, min(half / rate, 0.5)])
    high = max(-float(ends[0]), mu - float(ends[1]))
    low = max(-high, mu / 2 - _FLAT / mu)
    x = np.linspace(low, high, _number(high - low, cell) + 1)
    y = mu * x - mu * mu / 2
    wrong = 2 * UNIT * (np.abs(mu * x) + mu * mu)
    if not np.max(np.abs(y)) < _MOST_RATIO:
        return None
    q, q_error = _normal(x)
    p, p_error = _normal(x - mu)
    return Noise(y, wrong, q, p, q_error, p_error, inf)


def _normal(x: Array) -> tuple[Array, Array]:
    """Masses of N(0, 1) between increasing points, each rounded once, and bounds on the errors."""
    ends = np.concatenate([[-inf], x, [inf]])
    right = ends[:-1] >= 0.0
    near = np.where(right, -ends[:-1], ends[1:])  # the larger tail, and the smaller
    far = np.where(right, -ends[1:], ends[:-1])
    one, two = scipy.special.ndtr(near), scipy.special.ndtr(far)
    # φ <= (1 + |x|) Φ(x) for x <= 0, and at most 1/2 elsewhere
    relative = SPECIAL + 2 * UNIT * (1 + np.where(np.isinf(x), 0.0, x * x)) + 2 * UNIT
    worst = np.concatenate([relative[:1], np.maximum(relative[1:], relative[:-1]), relative[-1:]])
    mass, error = one - two, worst * (one + two) + TINY
    inner, inner_error = _narrow((x[1:] + x[:-1]) / 2, (x[1:] - x[:-1]) / 2)
    better = inner_error < error[1:-1]
    mass[1:-1] = np.where(better, inner, mass[1:-1])
    error[1:-1] = np.where(better, inner_error, error[1:-1])
    return mass, error


def _narrow(middle: Array, half: Array) -> tuple[Array, Array]:
    """Masses of N(0, 1) around points, and bounds on their errors, which are small in narrow cells.

    The mass is 2 h φ(m) Σ He_2k(m) h^2k / (2k + 1)!, with Hermite polynomials, which are at most
    1.09 sqrt(n!) e^(m²/4) [Cramér].
    """
    square, term, total, size = middle * middle, np.ones_like(half), 0.0 * half, 0.0 * half
    before, now = np.zeros_like(half), np.ones_like(half)  # He_(n-1) and He_n
    least, most = before, now  # the same without a minus sign: what is rounded
    for n in range(0, 2 * _TERMS, 2):
        total += now * term
        size += most * term
        for more in (n, n + 1):
            before, now = now, middle * now - more * before
            least, most = most, np.abs(middle) * most + more * least
        term = term * (half * half) / ((n + 2) * (n + 3))
    n = 2 * _TERMS
    rest = 2.2 * np.exp(np.minimum(square / 4, 600.0)) * sqrt(factorial(n)) * term
    front = 2 * half * np.exp(-square / 2) / sqrt(2 * pi)
    error = size * (ELEMENTARY + (4 * square + 8 * n + 32) * UNIT)
    error += np.where(half < 0.5, rest, inf)
    return front * total, front * error * (1 + 1e-9) + TINY


def _number(length: float, cell: float) -> int:
    """The number of cells."""
    return min(ceil(length / cell) + 1, _CELLS) if cell else _CELLS


@lru_cache(maxsize=512)
def laplace_cells(epsilon: float, steps: float = inf, cell: float = 0.0) -> Noise | None:
    """Laplace noise at a shift of ``epsilon``: y = 2x - ε for x from 0 to ε, and constant outside.

    On a grid, x is a multiple of ε/steps; a cell has its left end, and the first one lacks 0.
    """
    if not LEAST_EPSILON < epsilon < _MOST_RATIO:
        return None
    unit, grid, right = 1.0, 0.0, np.linspace(0.0, epsilon, _number(epsilon, cell) + 1)
    if steps < inf:
        unit = grid = epsilon / steps
        right = np.round(np.linspace(0.0, steps, int(min(_CELLS, steps)) + 1))  # in steps
    left = right[:-1].copy()
    left[0] = 1.0 if grid else 0.0
    odds, gone = 1 / (1 + np.exp(-grid)), -np.expm1(-(right[1:] - left) * unit)
    near, far = np.exp(-left * unit) * gone, np.exp(right[1:] * unit - epsilon - grid) * gone
    q = odds * np.concatenate([[1.0], near, [np.exp(-epsilon)]])
    p = odds * np.concatenate([[np.exp(-epsilon)], far, [1.0]])
    y, wrong = 2 * right * unit - epsilon, np.full(len(right), 8 * UNIT * epsilon)
    error = 6 * ELEMENTARY + 16 * UNIT * (1 + epsilon)
    return Noise(y, wrong, q, p, q * error, p * error, epsilon)


def losses(power: Array, wrong: Array | float, rate: float) -> tuple[Array, Array]:
    """ln(1 - q + q r) of ratios r with relative errors, and bounds on the errors."""
    ratio = (1 - rate) + rate * power
    near = ratio > 0.5
    value: Array = np.where(near, np.log1p(np.maximum(rate * (power - 1), -0.5)), np.log(ratio))
    moved = rate * power * wrong + 4 * UNIT * np.where(near, rate * (power + 1), ratio)
    return value, 2 * moved / ratio + (ELEMENTARY + 4 * UNIT) * (np.abs(value) + ~near)


def _spread(noise: Noise) -> tuple[Array, Array, Array]:
    """Q-masses of the inner cells at e^y of their ends, rounded up; e^y; and its relative error."""
    power: Array = np.exp(noise.ends)
    q, p = noise.q[1:-1], noise.p[1:-1]
    q_error, p_error = noise.q_error[1:-1], noise.p_error[1:-1]
    step = power[1:] - power[:-1]
    wrong = noise.wrong + ELEMENTARY + 2 * UNIT
    share = np.clip((p - power[:-1] * q) / step, 0.0, q)
    slack = p_error + power[:-1] * q_error + (p + power[:-1] * q) * (wrong[:-1] + 4 * UNIT)
    slack += share * (power[1:] * wrong[1:] + power[:-1] * wrong[:-1])
    slack = slack / step * (1 + 1e-9) + q_error + 4 * UNIT * q
    whole = q + q_error
    right, left = np.minimum(share + slack, whole), np.minimum((q - share) + slack, whole)
    masses = np.zeros(len(power))
    masses[1:] += right
    masses[:-1] += left
    return masses * (1 + 4 * UNIT), power, wrong


def above(noise: Noise, rate: float, removed: bool) -> Atoms:
    """The masses of each cell at its ends, each rounded up."""
    masses, power, wrong = _spread(noise)
    values, error = losses(power, wrong * (1 + 1e-9), rate)
    outer: Array = noise.q[[0, -1]] + noise.q_error[[0, -1]]
    if removed:
        masses *= ((1 - rate) + rate * power) * (1 + wrong)
        outer = (1 - rate) * outer + rate * (noise.p[[0, -1]] + noise.p_error[[0, -1]])
    masses = masses * (1 + 24 * UNIT)
    first, last = (float(one) * (1 + 8 * UNIT) for one in outer)
    if noise.top < inf:
        masses[[0, -1]] += first, last
    else:  # the losses of the left cell end at ln(1 - q), and those of the right one do not
        masses[0 if removed else -1] += first if removed else last
    masses = masses * (1 + 2 * UNIT)
    if removed:
        return Atoms(values + error, masses, 0.0 if noise.top < inf else last)
    values = (error - values)[::-1]
    if noise.top < inf:
        return Atoms(values, masses[::-1])
    most = -log1p(-rate) * (1 + 2 * ELEMENTARY)
    return Atoms(np.append(values, most), np.append(masses[::-1], first))


def below(noise: Noise, rate: float, removed: bool) -> Atoms:
    """The mass of each cell at the ratio of its masses, each rounded down."""
    side = 1.0 if removed else -1.0
    q, p = noise.q + side * noise.q_error, noise.p - side * noise.p_error
    kept = (noise.q - noise.q_error > TINY) & (noise.p - noise.p_error > TINY)
    q, p = q[kept], p[kept]
    ratio = p / q
    values, error = losses(ratio, 4 * UNIT, rate)
    low = noise.q[kept] - noise.q_error[kept]
    if removed:
        low = (1 - rate) * low + rate * p
    order = slice(None, None, 1 if removed else -1)
    found = side * values - error
    return Atoms(found[order], (low * (1 - 8 * UNIT))[order])


# Poisson subsampling: a unit takes part with probability ``rate`` [ZDW22].
#
# Q is the law without the unit, and (1 - q) Q + q P₀ the law with it, where (P₀, Q) is the pair of
# the noise. If the unit is removed, the pair is ((1 - q) Q + q P₀, Q); if it is added, the swapped
# one. The direction is that of the neighbours, so it is the same for a whole session.
#
# With the profile δ₀ of (P₀, Q), and ε' = ln(1 + (e^ε - 1)/q), the profiles are
#
#     removed:  δ(ε) = q δ₀(ε') where e^ε > 1 - q, and 1 - e^ε elsewhere;
#     added:    δ(ε) = (1 - (1 - q) e^ε) δ₀(-ln(1 + (e^-ε - 1)/q)) where (1 - q) e^ε < 1, and 0.
#
# For Σ p - e^ε q over an event is q (P₀ - e^ε' Q) and, if the unit is added, e^-ε' times the factor
# in front, because (Q, P₀) has the profile δ₀, too: the pair of the noise is symmetric.

_HUGE = 1e300  # larger odds count as this
_TAIL = 1e-12  # P-mass that may be missing where only a scale is asked for


@tagged("subsampled", "noise", "size", "rate", "unit")
@dataclass(frozen=True)
class Subsampled(bounds.TwoSided):
    """Gaussian or Laplace noise with a subsampled unit.

    :ivar noise: "gaussian" or "laplace"
    :ivar size: μ of Gaussian noise, ε of Laplace noise
    :ivar rate: probability with which the unit takes part, in (0, 1)
    :ivar unit: "removed" or "added"
    """

    noise: str
    size: float
    rate: float
    unit: str

    infinite = mass_error = 0.0
    symmetric = False

    @property
    def whole(self) -> Gaussian | Laplace:
        """The noise without subsampling."""
        return Gaussian(self.size) if self.noise == "gaussian" else Laplace(self.size)

    @property
    def gaussian(self) -> float:
        """μ of the Gaussian noise: whoever knows that the unit took part can leave it out."""
        return self.size if self.noise == "gaussian" else inf

    @cached_property
    def largest_loss(self) -> float:
        """If the unit is added: -ln(1 - q); else that of r at the largest loss of the noise."""
        if self.unit == "added":
            found = -log1p(-self.rate)
        elif self.noise == "gaussian":
            return inf
        else:
            value, error = losses(np.exp([self.size]), ELEMENTARY, self.rate)
            found = float(value[0] + error[0])
        return nextafter(found * (1 + 2 * ELEMENTARY), inf)

    @property
    def largest_loss_lower(self) -> float:
        """The same, rounded down."""
        if self.unit == "removed" and self.noise == "laplace":
            value, error = losses(np.exp([self.size]), ELEMENTARY, self.rate)
            return float(value[0] - error[0]) * (1 - 2 * ELEMENTARY)
        return self.largest_loss * (1 - 8 * ELEMENTARY)

    def cells(self, tail: float, cell: float = 0.0) -> Noise | None:
        """Cells of the noise; None if there are none."""
        if self.noise == "gaussian":
            return gaussian_cells(self.size, self.rate, tail, cell)
        return laplace_cells(self.size, cell=cell)

    @cached_property
    def _near(self) -> Atoms:
        """Losses with P-masses that are near the pair: for scales, and not for bounds."""
        noise = self.cells(_TAIL)
        nothing = Atoms(np.zeros(1), np.ones(1))
        return below(noise, self.rate, self.unit == "removed") if noise else nothing

    @cached_property
    def variance(self) -> float:
        """Of the loss, approximately."""
        near = self._near
        mean = float(near.masses @ near.losses)
        return float(near.masses @ (near.losses - mean) ** 2)

    def log_mgf(self, tau: Array) -> Array:
        """The logarithm of E_P[e^(τL)], approximately."""
        near = self._near
        found: Array = np.log(np.exp(np.multiply.outer(tau, near.losses)) @ near.masses)
        return found

    def log_mgf_above(self, tau: Array) -> Array:
        """Upper bound on ln E_P[e^(τL)], τ > 0: ln(1 - q + q e^K(τ)), as powers are convex."""
        whole = self.whole.log_mgf(tau) + self.whole.mgf_error(tau)
        error = 4 * ELEMENTARY * (1 + abs(log(self.rate)) + np.abs(whole))
        found: Array = np.logaddexp(log1p(-self.rate), log(self.rate) + whole) + error
        return found

    def swapped(self) -> Subsampled:
        """The pair (Q, P): the unit is added where it was removed."""
        return replace(self, unit="added" if self.unit == "removed" else "removed")

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε, from that of the noise."""
        epsilon = np.asarray(epsilon, dtype=float)
        flat = -np.expm1(np.minimum(epsilon, 0.0))  # δ is never below 1 - e^ε
        if self.unit == "removed":
            low, high = self.inner(epsilon)
            front, front_error = self.rate, 2 * UNIT
            factors = np.full_like(flat, front), np.full_like(flat, front)
        else:
            low, high = (-one for one in self.inner(-epsilon)[::-1])
            power = epsilon + log1p(-self.rate)
            wrong = ELEMENTARY * abs(log1p(-self.rate)) + 2 * UNIT * np.abs(power)
            factors = (
                -np.expm1(np.minimum(power + wrong, 0.0)),
                -np.expm1(np.minimum(power - wrong, 0.0)),
            )
            front_error = ELEMENTARY + 2 * UNIT
        least, most = self.whole.profile(high).lower, self.whole.profile(low).upper
        lower = factors[0] * least * (1 - front_error)
        upper = factors[1] * most * (1 + front_error)
        upper = np.where(factors[1] > 0.0, upper + TINY, 0.0)
        lower = np.where(lower < TINY, 0.0, lower)  # a small rate underflows
        return probabilities(
            np.maximum(lower, flat * (1 - ELEMENTARY)), np.maximum(upper, flat * (1 + ELEMENTARY))
        )

    def inner(self, epsilon: Array) -> tuple[Array, Array]:
        """The number ln(1 + (e^ε - 1)/q), between two bounds; -∞ where there is none."""
        q = self.rate
        y = np.clip(np.expm1(np.minimum(epsilon, 1.0)) / q, -_HUGE, _HUGE)
        wrong = np.abs(y) * (ELEMENTARY + 4 * UNIT)
        low, high = (np.log1p(np.maximum(y + side * wrong, -1.0)) for side in (-1, 1))
        far = epsilon - log(q) + np.log1p((q - 1) * np.exp(-np.maximum(epsilon, 1.0)))
        size = np.abs(epsilon) + abs(log(q)) + 1
        ends = []
        for side, near in ((-1, low), (1, high)):
            near = near + side * (ELEMENTARY * np.where(np.isinf(near), 0.0, np.abs(near)))
            away = far + side * 4 * ELEMENTARY * np.where(np.isinf(size), 0.0, size)
            if side > 0:  # beyond, δ is below ``TINY``
                near = np.where(y < _HUGE, near, np.inf)
            ends.append(np.where(epsilon > 1.0, away, near))
        return ends[0], ends[1]


# The factors of a product: Gaussian and Laplace noise, also subsampled; finite pairs.
#
# A factor is a pair of distributions (P, Q), known by its loss L = ln P/Q. It is frozen and
# hashable, and has
#
# * ``infinite``: P-probability that the loss is infinite; it may be too large by ``slack``, and by
#   the relative ``mass_error`` of the masses that it is a sum of;
# * ``largest_loss``: largest finite loss, rounded up; infinite if the finite losses have no bound;
# * ``largest_loss_lower``: the same, rounded down; a finite pair has its losses instead;
# * ``variance`` of the loss, approximately: a scale, not a bound;
# * ``symmetric``: whether the pair is known to equal ``swapped()``, which is the pair (Q, P);
# * ``gaussian``: μ of a Gaussian pair that is known to lose at least as much; infinite if none is;
# * ``unit``: "removed" or "added" if the pair bounds only neighbours where the second or the first
#   dataset lacks the unit; else empty;
# * ``stands_for``: what the pair bounds from above only; empty if it is known from both sides;
# * ``profile(epsilon)``: δ at each real ε;
# * ``log_mgf(tau)``: the logarithm of E_P[e^(τL); L finite] for real τ, about.
#
# A factor that is not sampled can be inverted, and has
#
# * ``mgf_error(tau)``: a bound on the error of ``log_mgf(tau)``;
# * ``transform(tau, step, nodes)``: the characteristic function on τ + iω at ω = 0, step, ...,
#   (nodes - 1) step;
# * ``log_decay(tau, omega)``: logarithm of a bound on the absolute value of the characteristic
#   function at all frequencies from ω on; 0 if none is known.

Invertible: TypeAlias = Union[Finite, Gaussian, Laplace]  # noqa: UP007 (evaluated on Python 3.10)
Factor: TypeAlias = Union[Invertible, Subsampled]  # noqa: UP007


def rank(factor: Factor) -> str:
    """A text by which factors have one order, in every process."""
    return factor.digest if isinstance(factor, Finite) else repr(factor)
