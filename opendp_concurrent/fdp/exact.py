"""Profiles without inversion: of Gaussian noise by a formula, of finitely many outcomes by sums.

The Gaussian family is N(0, 1) against N(μ, 1), whose squares add up [DRS22, Corollary 2].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, exp, inf, isqrt, pi, sin
from typing import Any

import numpy as np
import scipy

from . import bounds
from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, probabilities

SPECIAL = 2e-13  # relative error of SciPy's erfcx, ndtr, log_ndtr and wofz; it claims 1e-13
ROOT, SQRT2 = float(np.sqrt(np.pi / 2)), float(np.sqrt(2.0))
_LARGEST = 1e150  # μ whose square is a double
_UNDERFLOW = 37.0  # standard deviations where densities come near the least doubles


def mills(x: Array) -> Array:
    """Mills' ratio (1 - Φ)/φ."""
    value: Array = ROOT * scipy.special.erfcx(x / SQRT2)
    return value


def gaussian_profile(mu: float, epsilon: Array) -> Bounds:
    """δ(ε) = φ(a) (R(a) - R(a + μ)), a = ε/μ - μ/2, with Mills' ratio R [DRS22, Corollary 1]."""
    below = np.minimum(epsilon, 0.0)
    flat = -np.expm1(below)  # 1 - e^ε for ε < 0: δ without privacy loss
    if mu == 0.0:
        return probabilities(flat * (1 - ELEMENTARY), flat * (1 + ELEMENTARY))
    if not mu < _LARGEST:
        return probabilities(flat * (1 - ELEMENTARY), np.ones_like(flat))
    # the pair is symmetric: below 0, δ(ε) = 1 - e^ε + e^ε δ(-ε)
    above, factor = _above_zero(mu, np.abs(epsilon)), np.exp(below)
    return probabilities(
        flat * (1 - ELEMENTARY) + factor * above.lower * (1 - 2 * ELEMENTARY) - UNIT * flat,
        flat * (1 + ELEMENTARY) + factor * above.upper * (1 + 2 * ELEMENTARY) + UNIT * flat,
    )


def _above_zero(mu: float, epsilon: Array) -> Bounds:
    """δ at ε >= 0; from 10^4 standard deviations on, where δ is below ``TINY``, that at 10^4."""
    with np.errstate(over="ignore"):
        ratio = np.minimum(epsilon / mu, mu / 2 + 1e4)
    a = ratio - mu / 2
    b = a + mu
    shift = 4 * UNIT * (ratio + mu)  # error of a and of b
    # for a > 0: Mills' ratios, which keep relative accuracy
    right, special = np.maximum(a, 0.0), scipy.special
    first, second = mills(right), mills(right + mu)
    density = np.exp(-right * right / 2) / np.sqrt(2 * np.pi)
    tail = density * (first - second)
    relative = (right + 2) * shift + 8 * UNIT * (1 + right * right) + ELEMENTARY
    # R' is between -1 and 0 there: an error in a moves R by at most that much
    tail_error = density * (SPECIAL * (first + second) + 2 * shift) + np.abs(tail) * relative
    # for a <= 0: Φ(-a) - e^ε Φ(-b), where both terms are at most 1
    power = np.minimum(epsilon + special.log_ndtr(-b), 0.0)
    one, two = special.ndtr(-a), np.exp(power)
    plain_error = (
        one * SPECIAL
        + shift
        + two * (SPECIAL * (1 + np.abs(power) + 2 * np.abs(epsilon)) + (1 + np.abs(b)) * shift)
    )
    value = np.where(a > 0, tail, one - two)
    error = np.where(a > 0, tail_error, plain_error) + np.where(a > _UNDERFLOW, TINY, 0.0)
    return probabilities(value - error, value + error)


@dataclass(frozen=True)
class Gaussian(bounds.TwoSided):
    """N(0, 1) against N(μ, 1)."""

    mu: float

    infinite = mass_error = 0.0
    largest_loss = largest_loss_lower = gaussian = inf
    symmetric = True

    @property
    def variance(self) -> float:
        """μ², which is exactly the variance of the loss."""
        return self.mu * self.mu

    def log_mgf(self, tau: Array) -> Array:
        """τ (τ + 1) μ² / 2."""
        return tau * (tau + 1) * (self.variance / 2)

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """A few roundings, that of μ among them."""
        return 8 * UNIT * self.log_mgf(np.asarray(tau))

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """Of the normal distribution with mean (τ + 1/2) μ² and variance μ²."""
        omega = step * np.arange(nodes)
        exponent = -omega * omega * (self.variance / 2)
        phase = omega * ((tau + 0.5) * self.variance)
        # |value| * (relative error of exponent and phase); x e^-x is below 1/2
        error = 4 * ELEMENTARY + 12 * UNIT * (0.5 + float(np.max(np.exp(exponent) * phase)))
        return bounds.Transform(np.exp(exponent + 1j * phase), error)

    def log_decay(self, tau: float, omega: Array) -> Array:
        """-ω² μ² / 2."""
        del tau
        return -omega * omega * (self.variance / 2) * (1 - 4 * UNIT)

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε."""
        return gaussian_profile(self.mu, epsilon)

    def swapped(self) -> Gaussian:
        """The pair (Q, P), which is the same."""
        return self


# The discrete Gaussian by its theta series [CKS20]: no outcome is listed.
#
# X has masses in proportion to e^(-x²/(2σ²)), and the loss is L = (s - 2X) s / (2σ²). Let v =
# s²/σ², p = 2πσ²/s and G(ω) = e^(-ω²v/2 + iω(τ + 1/2)v). By Poisson's formula,
#
#     E[e^((τ+iω)L)] = e^((τ²+τ)v/2) Σ_m (-1)^(ms) G(ω - mp) / (1 + 2 Σ_(m>0) e^(-2π²m²σ²)).
#
# At ω = 0 the sum is 1 + 2 Σ_(m>0) e^(-2π²m²σ²) cos(2πmsτ). Beyond m = ±1 from the nearest multiple
# of p, terms are at most 2 e^(-44σ²) together, below rounding for σ >= 1.

LEAST_SCALE = 1.0
_ZERO = 1e-14  # sums that are smaller are replaced by this


@dataclass(frozen=True)
class Theta:
    """A discrete Gaussian of a scale σ >= 1, moved by the integer s > 0."""

    scale: float
    shift: int

    @property
    def variance(self) -> float:
        """v, which is nearly the variance of the loss."""
        ratio = self.shift / self.scale
        return ratio * ratio

    @property
    def period(self) -> float:
        """P."""
        return 2 * pi * self.scale * (self.scale / self.shift)

    @property
    def _ripple(self) -> float:
        """2 e^(-2π²σ²): how far the sum at ω = 0 is from 1; at most 6e-9."""
        return 2 * exp(-2 * (pi * self.scale) ** 2)

    def log_mgf(self, tau: Array) -> Array:
        """(τ² + τ) v / 2, and the ratio of two sums that are nearly 1."""
        tau = np.asarray(tau, dtype=float)
        value: Array = tau * (tau + 1) * (self.variance / 2)
        if self._ripple:
            waves = np.cos(2 * pi * np.mod(self.shift * tau, 1.0))
            value = value + (np.log1p(self._ripple * waves) - np.log1p(self._ripple))
        return value

    def mgf_error(self, tau: bounds.Numbers) -> Any:
        """Roundings of v and of the angle sτ; what is left out is below the fourth power."""
        tau, small = np.asarray(tau, dtype=float), self._ripple
        angle = np.minimum(2.0, 16 * UNIT * self.shift * tau)
        smooth = 12 * UNIT * (tau * (tau + 1) * (self.variance / 2))
        return smooth + small * (4 * ELEMENTARY + 8 * angle) + small**4

    def logs(self, tau: float, step: float, nodes: int) -> tuple[bounds.ComplexArray, Array]:
        """Ln ρ at the nodes, and bounds on the relative errors of ρ."""
        v, p = self.variance, self.period
        omega = step * np.arange(nodes)
        turns = np.round(omega / p)
        near = omega - turns * p
        turn = pi * np.mod(turns * (self.shift % 2), 2.0)
        mean = (tau + 0.5) * v
        value: bounds.ComplexArray = -near * near * (v / 2) + 1j * (near * mean + turn)
        # of v, of p and of ω: an error d of ω moves the exponent by d (|ω'| v + mean)
        moved = 8 * UNIT * np.where(turns == 0.0, np.abs(near), omega)
        error: Array = 8 * UNIT * (near * near * v / 2 + np.abs(near) * mean)
        error = error + moved * (np.abs(near) * v + mean) + 2 * UNIT * np.abs(turn)
        error = np.expm1(np.minimum(error, 600.0))
        if self.scale < 12.0:  # else neighbours are below e^-708, where G is least
            more, wrong = self._neighbours(tau, near, step * nodes)
            value, error = value + more, error + wrong + error * wrong
        return value, error

    def _neighbours(self, tau: float, near: Array, end: float) -> tuple[bounds.ComplexArray, Array]:
        """Ln Σ_m (-1)^(ms) G(ω' - mp) / G(ω'), less that at ω = 0; and bounds on the errors.

        G(ω' ± p) / G(ω') is (-1)^s e^(-2πs (p/2 ± ω') ± 2πisτ).
        """
        rate, angle = 2 * pi * self.shift, 2 * pi * ((self.shift * tau) % 1.0)
        ahead, behind = (np.exp(-rate * (self.period / 2 + side * near)) for side in (1, -1))
        both = (ahead + behind) * cos(angle) + 1j * ((ahead - behind) * sin(angle))
        size = np.abs(1 + both)
        both = np.where(size < _ZERO, _ZERO - 1.0, both)
        size = np.maximum(size, _ZERO)
        less = float(np.log1p(self._ripple * cos(angle)))
        # of the exponents, of ω', of the angle, and of functions; what is left out is below 1e-19
        wrong = 32 * UNIT * ((pi * self.scale) ** 2 + self.shift * (end + tau)) + 4 * ELEMENTARY
        error: Array = ((ahead + behind) * min(wrong, 4.0) + 1e-19) / size
        error = error + np.where(size <= 2 * _ZERO, 2.0, 0.0) + self._ripple * min(wrong, 4.0)
        return bounds.log1p_complex(both) - less, error

    def transform(self, tau: float, step: float, nodes: int) -> bounds.Transform:
        """ρ at the nodes."""
        logs, error = self.logs(tau, step, nodes)
        values = np.exp(logs)
        whole = np.abs(values) * (error + 2 * UNIT * np.abs(logs)) + 2 * ELEMENTARY
        return bounds.Transform(values, 1.01 * float(np.max(whole)))


# Sums over finitely many outcomes: profiles that are exact up to rounding.

_SLICE = 2**16  # outcomes times values of ε that are worked on together
_PIECE = 16.0  # losses whose Q-masses are added up with the same scale


def partial_sums(values: Array) -> Array:
    """Sums of the first 0, 1, ..., all of some positive numbers, added up row by row."""
    size, rows = len(values), max(1, isqrt(len(values)))
    if not size:
        return np.zeros(1)
    table = np.zeros((rows, -(-size // rows)))
    table.ravel()[:size] = values
    inner = np.cumsum(table, axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])
    return np.concatenate([[0.0], (inner + before[:, None]).ravel()[:size]])


def partial_sums_error(size: int) -> float:
    """Bound on their relative error: that of a row, of the rows before it, and of their sum."""
    return (2 * isqrt(size) + 8) * UNIT


@dataclass(frozen=True, eq=False)
class Atoms:
    """Losses, increasing, with P-masses; and the sums of the masses above each loss.

    :ivar infinite: P-probability of an infinite loss
    :ivar mass_error: relative error of the masses
    :ivar loss_error: absolute error of the losses
    :ivar slack: bound on how much too large ``infinite`` is
    :ivar infinite_error: bound on how much too small ``infinite`` is, relative to it
    :ivar omitted: bound on the P-probability of the outcomes that were left out
    """

    losses: Array
    masses: Array
    infinite: float = 0.0
    mass_error: float = 0.0
    loss_error: float = 0.0
    slack: float = 0.0
    infinite_error: float = 0.0
    omitted: float = 0.0

    def times(self, other: Atoms) -> Atoms:
        """The outcomes of this pair and of another, independent one."""
        losses = np.add.outer(self.losses, other.losses).ravel()
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        order = np.argsort(losses, kind="stable")
        largest = float(np.max(np.abs(losses), initial=0.0))
        return Atoms(
            losses[order],
            masses[order],
            self.infinite + other.infinite - self.infinite * other.infinite,
            self.mass_error + other.mass_error + 2 * UNIT,
            self.loss_error + other.loss_error + UNIT * largest,
            self.slack + other.slack,
            self.infinite_error + other.infinite_error + ELEMENTARY,
            self.omitted + other.omitted,
        )

    @cached_property
    def above(self) -> tuple[Array, Array]:
        """P- and Q-mass of the last n outcomes, n = 0, 1, ...

        Q-masses are e^(loss) times smaller, so both sums begin at the largest loss. Where a Q-mass
        leaves the doubles, the P-mass is below ``TINY``.
        """
        p, q = self.masses, self.masses * np.exp(np.minimum(-self.losses, 700.0))
        return partial_sums(p[::-1]), partial_sums(q[::-1])

    @cached_property
    def _scaled(self) -> tuple[Array, Array, Array]:
        """For the last n outcomes: e^r times their Q-mass, r, and how many pieces they are in.

        The losses are cut into pieces, and r is the least loss of the last piece: so nothing
        underflows.
        """
        losses, masses = self.losses[::-1], self.masses[::-1]
        scaled, least, pieces = np.zeros((3, len(losses) + 1))
        whole, known, start, number = 0.0, 0.0, 0, 0
        while start < len(losses):
            end = int(np.searchsorted(-losses, _PIECE - losses[start], side="right"))
            end = max(end, start + 1)
            low = float(losses[end - 1])
            if number:
                whole *= exp(low - known)
            part, number = slice(start + 1, end + 1), number + 1
            inside = masses[start:end] * np.exp(low - losses[start:end])
            scaled[part] = whole + partial_sums(inside)[1:]
            least[part], pieces[part] = low, number
            whole, known, start = float(scaled[end]), low, end
        return scaled, least, pieces

    @cached_property
    def _at_losses(self) -> tuple[Array, Array, Array]:
        """For the last n outcomes, r being the least loss of them: r, δ at r, and e^r times Q-mass.

        From one loss down to the next, r', δ grows by (1 - e^(r' - r)) times the latter. So nothing
        is subtracted, but losses that are near each other.
        """
        scaled, least, _ = self._scaled
        losses = self.losses[::-1]
        at = np.concatenate([losses[:1], losses])
        q = np.exp(at - least) * scaled
        return at, np.concatenate([[0.0], partial_sums(-np.expm1(np.diff(losses)) * q[1:-1])]), q

    def _sum(self, epsilon: Array) -> tuple[Array, Array]:
        """Σ p - e^ε Σ q over losses above ε, and its error."""
        size = len(self.losses)
        if not size:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        at, known, q = self._at_losses
        count = size - np.searchsorted(self.losses, epsilon, side="right")
        value = known[count] - np.expm1(np.minimum(epsilon - at[count], 0.0)) * q[count]
        value = np.where(count > 0, value, 0.0)
        # of Q-masses, whose exponents are below _PIECE; of differences; of sums
        relative = (self._scaled[2][count] + 4) * (ELEMENTARY + 2 * UNIT) + self.mass_error
        relative = relative + 2 * partial_sums_error(size) + 8 * UNIT * _PIECE
        relative = relative + 2 * UNIT * np.abs(at[0] - at[count])  # between pieces
        # TINY for what underflows
        return value, value * relative + np.where(count > 0, TINY, 0.0)

    def profile(self, epsilon: Array, mu: float = 0.0) -> Bounds:
        """δ at each real ε, of these outcomes and a Gaussian."""
        epsilon = np.asarray(epsilon, dtype=float)
        if mu:
            return self._beside(mu, epsilon)
        shift = self.loss_error
        low, low_error = self._sum(epsilon + shift if shift else epsilon)
        high, high_error = self._sum(epsilon - shift if shift else epsilon)
        flat = -np.expm1(np.minimum(epsilon, 0.0))  # δ is never below 1 - e^ε
        infinite, finite = self._infinite_bounds, self.omitted + (high + high_error)
        return probabilities(
            np.maximum(
                flat * (1 - ELEMENTARY), (infinite.lower + (low - low_error)) * (1 - 2 * UNIT)
            ),
            np.where(finite > 0.0, (infinite.upper + finite) * (1 + 2 * UNIT), infinite.upper),
        )

    def _beside(self, mu: float, epsilon: Array) -> Bounds:
        """Beside a Gaussian: a mixture of shifted profiles."""
        lower, upper = np.empty((2, epsilon.size))
        chunk = max(1, _SLICE // max(1, len(self.losses)))
        for start in range(0, epsilon.size, chunk):
            part = slice(start, start + chunk)
            moved = np.subtract.outer(epsilon.ravel()[part], self.losses)
            pad = self.loss_error + 2 * UNIT * np.abs(moved)
            lower[part] = gaussian_profile(mu, moved + pad).lower @ self.masses
            upper[part] = gaussian_profile(mu, moved - pad).upper @ self.masses
        lower, upper = lower.reshape(epsilon.shape), upper.reshape(epsilon.shape)
        relative = self.mass_error + (len(self.losses) + 4) * UNIT
        infinite, finite = self._infinite_bounds, upper * (1 + relative)
        return probabilities(
            (infinite.lower + lower * (1 - relative)) * (1 - 2 * UNIT),
            (infinite.upper + self.omitted + TINY + finite) * (1 + 4 * UNIT),
        )

    @property
    def _infinite_bounds(self) -> Bounds:
        """Bounds on the infinite part, which is a sum of masses, rounded up, or a product."""
        error = self.slack + self.infinite * (2 * ELEMENTARY + 4 * self.mass_error)
        return Bounds(self.infinite - error, self.infinite * (1 + self.infinite_error))
