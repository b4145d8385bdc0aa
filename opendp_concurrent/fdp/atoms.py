"""Sums over finitely many outcomes: profiles that are exact up to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, isqrt

import numpy as np

from .bounds import ELEMENTARY, TINY, UNIT, Array, Bounds, probabilities
from .gaussian import gaussian_profile

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
