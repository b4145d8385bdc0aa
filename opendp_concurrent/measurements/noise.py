"""Laplace noise on all integers, sampled by OpenDP in batches.

OpenDP's integers saturate. But the distribution is memoryless: the excess of a draw over the edge
is distributed as another draw, given that it is not negative. So a draw is any integer k, with
probability exactly proportional to exp(-|k|/scale), and a proof may shift noise by any amount.
"""

from __future__ import annotations

from math import exp, expm1
from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance, l1_distance, l2_distance

from ..native import opendp as _native

ATOM = "i64"
EDGES = -(2**63), 2**63 - 1
AHEAD = 64
FIRST_AHEAD = 16


class IntegerDraws:
    """OpenDP's noise of one scale on 64-bit integers, drawn ahead of use. Not thread-safe.

    Holds noise that must stay secret.

    :param laplace: draw Laplace noise if true, else Gaussian
    :param most: number of draws per batch; the first batches are smaller
    """

    def __init__(self, scale: float, laplace: bool, most: int) -> None:
        self._scale, self._laplace, self._most, self._ahead = scale, laplace, most, 0
        self._sample: Any = None
        self._zeros: Any = None
        self._drawn: list[int] = []

    def _prepare(self, ahead: int) -> None:
        domain = vector_domain(atom_domain(T=ATOM), size=ahead)
        if self._laplace:
            self._sample = make_laplace(domain, l1_distance(T=ATOM), self._scale)
        else:
            self._sample = make_gaussian(domain, l2_distance(T="f64"), self._scale)
        self._zeros = _native.to_pointer([0] * ahead, self._sample.input_carrier_type)
        self._ahead = ahead

    def _next(self) -> int:
        """Return the next draw, which saturates at the edges."""
        if not self._drawn:
            if self._ahead < self._most:
                self._prepare(min(max(FIRST_AHEAD, 4 * self._ahead), self._most))
            self._drawn = _native.invoke(self._sample, self._zeros)
        return self._drawn.pop()

    def whole(self) -> int:
        """Return the next draw of Laplace noise, on all integers."""
        noise = self._next()
        lowest, highest = EDGES
        if lowest < noise < highest:
            return noise
        excess = -1
        while excess < 0:  # a draw, given that it is not negative
            excess = self.whole()
        return noise + excess if noise > 0 else noise - excess


class LaplaceNoise(IntegerDraws):
    """Draw Laplace noise of one scale. Not thread-safe. Holds noise that must stay secret.

    :param scale: scale in steps of the grid of integers
    :param ahead: number of draws per batch
    """

    def __init__(self, scale: float, ahead: int = AHEAD) -> None:
        super().__init__(scale, True, ahead)
        self._prepare(ahead)  # a scale that OpenDP refuses is refused here

    def draw(self) -> int:
        """Return the next draw."""
        return self.whole()


class OneSidedNoise:
    """Noise on 0, 1, 2, ...: Laplace noise, given that it is not negative. Not thread-safe.

    Its probabilities are exactly proportional to exp(-k/scale), so a shift up by one step costs as
    much as for Laplace noise. A shift down leaves its range.

    :param scale: scale in steps of the grid of integers
    :param ahead: number of two-sided draws per batch
    """

    def __init__(self, scale: float, ahead: int = AHEAD) -> None:
        self._noise = LaplaceNoise(scale, ahead)

    def draw(self) -> int:
        """Return the next draw."""
        while (noise := self._noise.draw()) < 0:
            pass
        return noise


def one_sided_center(scale: float) -> int:
    """Return the mean of one-sided noise, rounded to a whole step."""
    return round(exp(-1 / scale) / -expm1(-1 / scale))


def laplace_epsilon(scale: float, shift: int) -> float:
    """Return the privacy loss of a shift of the noise, rounded up, from OpenDP's privacy map.

    :param scale: scale in steps
    :param shift: shift in steps
    """
    laplace = make_laplace(atom_domain(T=ATOM), absolute_distance(T=ATOM), scale)
    epsilon: float = laplace.map(shift)
    return epsilon
