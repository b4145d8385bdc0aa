"""How large the noise on linear queries is, with confidence, for normal and Laplace noise.

OpenDP samples noise on a grid, here the finest one of floats. Sums of its draws are within a step
of the grid per draw from sums of draws of the distributions on the reals: coupled by their
quantiles, a draw and a real draw differ by at most a step. So the formulas are those on the reals,
rounded up by a part of 2^-30.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log, log1p, sqrt
from typing import ClassVar, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from ..noise_accuracy import UP
from .histogram import Array

CHUNK = 2**22  # entries of a matrix that are kept at a time


@dataclass(frozen=True, slots=True)
class Shape:
    """A matrix A, as far as it matters to the tails of A w for independent noises w.

    :ivar norms: of its rows
    :ivar top: largest magnitude of an entry
    :ivar repeated: how many rows have each of the norms
    :ivar independent: whether A is the identity, with rows that are independent
    """

    norms: Array
    top: float
    repeated: int | NDArray[np.int64] = 1
    independent: bool = False

    @staticmethod
    def of(matrix: Array) -> Shape:
        """Return the shape of a matrix."""
        return Shape(np.sqrt(np.square(matrix).sum(axis=1)), float(np.abs(matrix).max()))

    @staticmethod
    def identity(rows: int) -> Shape:
        """Return the shape of the identity."""
        return Shape(np.ones(1), 1.0, rows, independent=True)

    @staticmethod
    def of_product(left: Array, right: Array) -> Shape:
        """Return the shape of a product, of which only some rows are kept at a time."""
        step = max(1, CHUNK // right.shape[1])
        parts = [Shape.of(left[at : at + step] @ right) for at in range(0, len(left), step)]
        return Shape(np.concatenate([one.norms for one in parts]), max(one.top for one in parts))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(np.broadcast_to(self.repeated, self.norms.shape).sum())

    @property
    def trace(self) -> float:
        """The sum of squares of the entries."""
        return float((np.square(self.norms) * self.repeated).sum())

    @property
    def longest(self) -> float:
        """The largest norm of a row."""
        return float(self.norms.max())


class Tails(Protocol):
    """Bounds on noise of scale 1, most of them with probability at least 1 - β.

    :cvar variance: of one draw
    """

    variance: ClassVar[float]

    def largest(self, shape: Shape, beta: float) -> float:
        """Bound on the largest magnitude of A w."""

    def expected(self, shape: Shape) -> float:
        """Bound on the expectation of the largest magnitude of A w."""

    def largest_of(self, count: int, beta: float) -> float:
        """Bound on the largest magnitude of so many independent draws; exact."""

    def energy(self, dimensions: int, beta: float) -> float:
        """Bound on the squared norm of w, projected onto a space of so many dimensions."""


class NormalTails:
    """Standard normal noise."""

    variance: ClassVar[float] = 1.0

    def largest(self, shape: Shape, beta: float) -> float:
        """By Šidák's inequality: P(all within) is at least the product [Sid67]."""
        if shape.independent:
            return self.largest_of(shape.rows, beta)
        if not shape.longest > 0.0:
            return 0.0
        norms = np.maximum(shape.norms, shape.longest * 2.0**-60)
        target = log1p(-beta)

        def excess(bound: float) -> float:
            outside = 2 * np.exp(scipy.special.log_ndtr(-bound / norms))
            inside = np.log1p(-np.minimum(outside, 1 - 2.0**-53))
            return float((shape.repeated * inside).sum()) - target

        most = shape.longest * sqrt(2 * log(2 * shape.rows / beta))  # by the union bound
        low = shape.longest * 1e-9
        return (
            most
            if excess(low) >= 0.0
            else float(scipy.optimize.brentq(excess, low, most, rtol=1e-12)) * UP
        )

    def expected(self, shape: Shape) -> float:
        """By Jensen's inequality for the moment generating function."""
        return shape.longest * sqrt(2 * log(2 * shape.rows)) * UP

    def largest_of(self, count: int, beta: float) -> float:
        """All are within α with probability (1 - 2 Φ(-α))^count."""
        one = -expm1(log1p(-beta) / count) / 2
        return (
            float(
                scipy.optimize.brentq(
                    lambda x: scipy.special.log_ndtr(-x) - log(one), 0.0, 60.0, rtol=1e-14
                )
            )
            * UP
        )

    def energy(self, dimensions: int, beta: float) -> float:
        """Chi squared."""
        return float(scipy.special.chdtri(dimensions, beta)) * UP


class LaplaceTails:
    """Laplace noise of scale 1, whose variance is 2 and fourth moment 24."""

    variance: ClassVar[float] = 2.0

    def largest(self, shape: Shape, beta: float) -> float:
        """By Chernoff's inequality and the union bound."""
        if shape.independent:
            return self.largest_of(shape.rows, beta)
        return self._chernoff(shape, log(2 * shape.rows / beta))

    def expected(self, shape: Shape) -> float:
        """By Jensen's inequality for the moment generating function."""
        return self._chernoff(shape, log(2 * shape.rows))

    @staticmethod
    def _chernoff(shape: Shape, tail: float) -> float:
        """Return the least (tail + log E exp(t a w)) / t.

        E exp(t w) = 1/(1 - t²), and -log(1 - x)/x increases. So for a row a of norm s with entries
        up to m, log E exp(t a w) <= -(s/m)² log(1 - (t m)²).
        """
        if shape.top == 0.0:
            return 0.0
        parts = (shape.longest / shape.top) ** 2

        def bound(share: float) -> float:
            return (tail - parts * log1p(-share * share)) / share

        found = scipy.optimize.minimize_scalar(bound, bounds=(1e-6, 1 - 1e-12), method="bounded")
        return shape.top * float(bound(float(found.x))) * UP

    def largest_of(self, count: int, beta: float) -> float:
        """All are within α with probability (1 - exp(-α))^count."""
        return -log(-expm1(log1p(-beta) / count)) * UP

    def energy(self, dimensions: int, beta: float) -> float:
        """By Cantelli's inequality.

        For a projection P with diagonal p, wᵀP w has mean 2 Σ p and variance 8 Σ p + 12 Σ p².
        """
        return (2 * dimensions + sqrt(20 * dimensions * (1 - beta) / beta)) * UP
