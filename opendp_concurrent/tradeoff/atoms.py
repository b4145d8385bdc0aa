"""Sums over finitely many outcomes: profiles that are exact up to rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log

import numpy as np

from .bounds import ELEMENTARY, UNIT, Array, Bounds, probabilities
from .gaussian import gaussian_profile

_SLICE = 2**16  # outcomes times questions that are looked at together


@dataclass(frozen=True, eq=False)
class Atoms:
    """Losses, increasing, with P-masses; what they add up to above each loss.

    :ivar infinite: P-probability of an infinite loss
    :ivar rest: bound on the P-probability of what was left out
    :ivar mass_error: relative error of the masses
    :ivar loss_error: absolute error of the losses
    """

    losses: Array
    masses: Array
    infinite: float
    rest: float
    mass_error: float
    loss_error: float

    def times(self, other: Atoms) -> Atoms:
        """Outcomes of both, independent."""
        losses = np.add.outer(self.losses, other.losses).ravel()
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        order = np.argsort(losses, kind="stable")
        largest = float(np.max(np.abs(losses), initial=0.0))
        return Atoms(
            losses[order],
            masses[order],
            self.infinite + other.infinite - self.infinite * other.infinite,
            self.rest + other.rest,
            self.mass_error + other.mass_error + 2 * UNIT,
            self.loss_error + other.loss_error + UNIT * largest,
        )

    @cached_property
    def above(self) -> tuple[Array, Array]:
        """P- and Q-mass of the last n outcomes, n = 0, 1, ...

        Q-masses are e^(loss) times smaller, so both sums are taken from the largest loss down.
        """
        p, q = self.masses[::-1], (self.masses * np.exp(-self.losses))[::-1]
        return (
            np.concatenate([[0.0], np.cumsum(p)]),
            np.concatenate([[0.0], np.cumsum(q)]),
        )

    def _sum(self, epsilon: Array) -> tuple[Array, Array]:
        """Σ p - e^ε Σ q over losses above ε, and the error of that."""
        p, q = self.above
        count = len(self.losses) - np.searchsorted(self.losses, epsilon, side="right")
        power = np.where(count > 0, np.exp(np.where(count > 0, epsilon, 0.0)), 0.0)
        one, two = p[count], power * q[count]
        largest = np.where(count > 0, np.abs(epsilon), 0.0)
        relative = 3 * ELEMENTARY + (count + 3) * UNIT + self.mass_error
        error = (one + two) * (relative + 2 * UNIT * largest)
        return one - two, error

    def profile(self, epsilon: Array) -> Bounds:
        """δ at each real ε, when these are all outcomes."""
        epsilon = np.asarray(epsilon, dtype=float)
        shift = self.loss_error
        low, low_error = self._sum(epsilon + shift if shift else epsilon)
        high, high_error = self._sum(epsilon - shift if shift else epsilon)
        flat = -np.expm1(np.minimum(epsilon, 0.0))  # δ is never below 1 - e^ε
        extra = self.infinite * ELEMENTARY
        return probabilities(
            np.maximum(flat * (1 - ELEMENTARY), self.infinite - extra + (low - low_error)),
            self.infinite + extra + self.rest + (high + high_error),
        )

    def profile_with(self, mu: float, epsilon: Array) -> Bounds:
        """δ at each real ε, of these outcomes beside a Gaussian: a mixture of shifted profiles."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=float))
        lower, upper = np.empty_like(epsilon), np.empty_like(epsilon)
        chunk = max(1, _SLICE // max(1, len(self.losses)))
        shift = self.loss_error
        for start in range(0, len(epsilon), chunk):
            part = slice(start, start + chunk)
            moved = np.subtract.outer(epsilon[part], self.losses)
            pad = shift + 2 * UNIT * np.abs(moved)
            lower[part] = gaussian_profile(mu, moved + pad).lower @ self.masses
            upper[part] = gaussian_profile(mu, moved - pad).upper @ self.masses
        relative = self.mass_error + (len(self.losses) + 4) * UNIT
        return probabilities(
            self.infinite * (1 - UNIT) + lower * (1 - relative),
            self.infinite * (1 + UNIT) + self.rest + upper * (1 + relative),
        )

    def epsilon_near(self, delta: float) -> float:
        """About the least ε >= 0 with δ(ε) <= delta, for delta above the infinite part."""
        p, q = self.above
        target = delta - self.infinite
        # δ at each loss, from the largest down: 0, ...
        at = p[:-1] - np.exp(np.minimum(self.losses[::-1], 700.0)) * q[:-1]
        count = int(np.searchsorted(np.maximum.accumulate(at), target, side="right"))
        if count == 0 or not p[count] - target > 0:
            return 0.0
        root = log((p[count] - target) / q[count])
        if count < len(self.losses):
            root = max(root, float(self.losses[::-1][count]))
        return max(0.0, min(root, float(self.losses[-1]) if len(self.losses) else -inf))
