"""How far noisy sums of a stream can be from the exact ones, with confidence.

A noisy sum is the exact one plus Σ a_i X_i, with independent noises X_i on the integers or a finer
grid. Sums with as many noises of each size are of one kind. Their tails add up over all sums (the
union bound), so what is bounded is the tail of each kind.

Gaussian noise of scale s on a grid has E exp(t X) <= exp(t² s²/2) [CKS20], so the tail of a kind of
variance v is at most exp(-x²/(2v)).

Laplace noise on the integers is floor(E) - floor(E') for exponential E and E' of its scale, whose
fractions are independent of the floors. So it is Laplace noise Y on the reals plus a difference of
fractions, which is symmetric, below 1, and independent of X. So P(Σ a X > x) is at most
2 P(Σ a Y > x), and at most P(Σ a Y > x - Σ a). If all a are equal, Σ a Y has the tail of a mixture
of Gamma distributions, which is exact. Else let K(t) = log E exp(t Σ a Y) = -Σ log(1 - a² t²), with
K'(t) = x. The tail is at most exp(K(t) - t x) times the smaller of 1 and 1/(t σ): tilted by t, the
density is still log-concave, with the variance σ² = K''(t), so it is at most 1/σ, and is integrated
with exp(-t (y - x)) over y > x. The first bound also holds for noise on the integers, where
E exp(t X) = (cosh(1/s) - 1)/(cosh(1/s) - cosh(t)), since (cosh(x) - 1)/x² increases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log, nextafter, sqrt

import numpy as np
import scipy
from numpy.typing import NDArray

from ..queryables.accuracy import Accuracy
from .digits import Digits
from .epochs import epochs
from .factors.buffered import BufferedFactor
from .factors.factor_error import errors, window_variance

Numbers = NDArray[np.float64]
HALVINGS = 45
CLOSE = 1e-6
EACH_PLACE = 2**20  # places of a block that are looked at one by one


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """The noises in the sums that are looked at.

    :ivar scales: sizes of noises, a_i times the scale, in ascending order
    :ivar kinds: for each kind of sum, how many noises of each size it has, or at most
    :ivar sums: how many sums are of each kind
    :ivar steps: for each kind, the sum of a_i: Laplace noise is on the integers
    :ivar offset: bound on the error of rounding
    """

    scales: Numbers
    kinds: Numbers
    sums: Numbers
    steps: Numbers
    offset: float = 0.0

    @staticmethod
    def of(scales: Sequence[float], kinds: Kinds, multiples: Sequence[int] | None = None) -> Spread:
        """Return the spread of kinds of sums.

        :param kinds: from the numbers of noises of each size to the number of sums
        :param multiples: the a_i; 1 if left out
        """
        numbers = np.array(list(kinds), dtype=np.float64).reshape(len(kinds), len(scales))
        weights = np.ones(len(scales)) if multiples is None else np.array(multiples, dtype=float)
        sums = np.array(list(kinds.values()), dtype=np.float64)
        return Spread(np.array(scales), numbers, sums, numbers @ weights)

    @property
    def squares(self) -> Numbers:
        """The sum of squares of the sizes, for each kind."""
        squares: Numbers = self.kinds @ np.square(self.scales)
        return squares

    def largest(self, laplace: bool, failing: float) -> float:
        """Return a bound that all sums are within, but with probability ``failing``."""

        def excess(bound: float) -> float:
            tails = self._laplace(bound) if laplace else -(bound**2) / (2 * self.squares)
            return float(np.sum(2 * self.sums * np.exp(np.minimum(tails, 0.0)))) - failing

        high = float(self.scales[-1])
        while excess(high) > 0.0:
            high *= 2
        if excess(0.0) <= 0.0:
            return 0.0
        return float(scipy.optimize.brentq(excess, 0.0, high, rtol=CLOSE)) * (1 + 2 * CLOSE)

    def _laplace(self, bound: float) -> Numbers:
        """Return the logarithm of the tail of each kind."""
        rough, fine = self._tails(np.full(len(self.kinds), bound))
        _, nearer = self._tails(np.maximum(bound - self.steps, 0.0))
        return np.minimum(np.minimum(rough, fine + log(2)), nearer)

    def _tails(self, bounds: Numbers) -> tuple[Numbers, Numbers]:
        """Return logarithms: of Chernoff's bound, and of the tail on the reals."""
        squares, there = np.square(self.scales), self.kinds > 0
        low = np.zeros(len(bounds))
        high = 1 / np.max(np.where(there, self.scales, 0.0), axis=1, initial=2.0**-60)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rest = 1 - np.outer(np.square(middle), squares)
            slopes = np.divide(2 * self.kinds * squares, rest, where=there, out=np.zeros_like(rest))
            below = middle * slopes.sum(axis=1) < bounds
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        shares = np.where(there, np.outer(np.square(low), squares), 0.0)
        rough = -np.sum(self.kinds * np.log1p(-shares), axis=1) - low * bounds
        curve = np.sum(2 * self.kinds * squares * (1 + shares) / np.square(1 - shares), axis=1)
        fine = rough - np.log(np.maximum(low * np.sqrt(curve), 1.0))
        for kind in np.flatnonzero(there.sum(axis=1) == 1):
            (size,) = np.flatnonzero(there[kind])
            fine[kind] = _equal(int(self.kinds[kind, size]), bounds[kind] / self.scales[size])
        return rough, fine


Kinds = dict[tuple[float, ...], float]
SpreadOf = Callable[[int], Spread]  # from the number of steps


def _equal(count: int, bound: float) -> float:
    """Return the logarithm of the tail of a sum of Laplace noises of scale 1.

    Its part above 0 is the sum over j of C(n-1+j, j) 2^-(n+j) times a Gamma density of n - j.
    """
    earlier = np.arange(count)
    weights = scipy.special.gammaln(count + earlier) - scipy.special.gammaln(earlier + 1)
    weights -= scipy.special.gammaln(count) + (count + earlier) * log(2)
    tails = scipy.special.gammaincc(count - earlier, bound)
    total = float(np.exp(weights) @ tails)
    return log(total) if total > 0.0 else inf


def accuracy_of_steps(
    spread: SpreadOf, laplace: bool, scale: float, horizon: int | None, parts: int = 1
) -> Accuracy:
    """Return the accuracy of a counter at its first steps.

    :param horizon: largest number of steps
    :param parts: sums at each step
    """

    def error(beta: float, answers: int) -> float:
        found = spread(answers if horizon is None else min(answers, horizon))
        return found.largest(laplace, beta / parts) + found.offset

    return Accuracy("Laplace" if laplace else "Gaussian", scale, error)


def of_digits(scale: float, digits: Digits) -> SpreadOf:
    """Return the spread of a tree with signed digits."""
    return lambda answers: Spread.of(
        [scale], {(n,): many for n, many in enumerate(digits.sums(answers).tolist()) if n and many}
    )


def of_epochs(scale: float) -> SpreadOf:
    """Return the spread of epochs: nodes of the last sums, and those of sums of the open one.

    See :class:`.EpochsPrefix`.
    """

    def spread(answers: int) -> Spread:
        found = list(epochs(answers))
        before, kinds = [0.0] * len(found), dict[tuple[float, ...], float]()
        for number, (one, count) in enumerate(found):
            for nodes, many in enumerate(one.digits.sums(count).tolist()):
                kind = (*before[:number], float(nodes), *before[number + 1 :])
                if any(kind) and many:
                    kinds[kind] = kinds.get(kind, 0.0) + many
            before[number] = float(one.digits.nodes(one.length))
        return Spread.of([nextafter(one.digits.height * scale, inf) for one, _ in found], kinds)

    return spread


def of_window_digits(scale: float, digits: Digits, window: int) -> SpreadOf:
    """Return the spread of a window by digits: a node of two prefixes counts twice, or not."""
    most = digits.height * (digits.base // 2)

    def spread(answers: int) -> Spread:
        blocks, places = float(-(-answers // window)), min(answers, window)
        kinds: Kinds = {(most, most if blocks > 1 else 0): answers}
        if places <= EACH_PLACE:
            once, twice = digits.window_nodes(np.arange(1, places + 1), window, blocks > 1)
            pairs, many = np.unique(np.stack([once, twice]), axis=1, return_counts=True)
            kinds = {
                (one, two): blocks * count
                for (one, two), count in zip(pairs.T.tolist(), many.tolist(), strict=True)
            }
        return Spread.of([scale, 2 * scale], kinds, (1, 2))

    return spread


def of_factor(
    factor: BufferedFactor, scale: float, bits: int, window: int | None = None
) -> SpreadOf:
    """Return the spread of a factorisation, of all sums or of those of a window.

    The encoder and the decoder are each off by less than 17/16 steps of the grid at each step,
    which the decoder's row sums up: see ``factors/buffered.py``. The sum is rounded to an integer.
    """

    def spread(answers: int) -> Spread:
        if window is None:
            lengths, _, squares = errors(factor, answers)
        else:
            lengths, squares = (
                np.array([float(answers)]),
                np.array([window_variance(factor, window)]),
            )
        squares = squares * (1 + 2.0**-20)
        offset = 1.0 + 6 * sqrt(answers * float(squares.max())) * 2.0**-bits
        return Spread(np.array([scale]), squares[:, None], lengths, np.sqrt(squares), offset)

    return spread
