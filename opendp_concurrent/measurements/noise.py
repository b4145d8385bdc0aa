"""Laplace noise on all integers, sampled by OpenDP in batches.

OpenDP's integers saturate. But the distribution is memoryless: the excess of a draw over the edge
is distributed as another draw, given that it is not negative. So a draw is any integer k, with
probability exactly proportional to exp(-|k|/scale), and a proof may shift noise by any amount.
"""

from __future__ import annotations

from math import exp, expm1

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance, l1_distance

from ..native import opendp as _native

ATOM = "i64"
EDGES = -(2**63), 2**63 - 1
AHEAD = 64


class LaplaceNoise:
    """Draw noise of one scale. Not thread-safe. Holds noise that must stay secret.

    :param scale: scale in steps of the grid of integers
    :param ahead: number of draws per batch
    """

    __slots__ = ("_drawn", "_sample", "_zeros")

    def __init__(self, scale: float, ahead: int = AHEAD) -> None:
        space = vector_domain(atom_domain(T=ATOM), size=ahead), l1_distance(T=ATOM)
        self._sample = make_laplace(*space, scale)
        self._zeros = _native.to_pointer([0] * ahead, self._sample.input_carrier_type)
        self._drawn: list[int] = []

    def draw(self) -> int:
        """Return the next draw."""
        if not self._drawn:
            self._drawn = _native.invoke(self._sample, self._zeros)
        noise = self._drawn.pop()
        lowest, highest = EDGES
        if noise == highest:
            return noise + self._magnitude()
        if noise == lowest:
            return noise - self._magnitude()
        return noise

    def _magnitude(self) -> int:
        """Return the excess over an edge: a draw, given that it is not negative."""
        while (noise := self.draw()) < 0:
            pass
        return noise


class OneSidedNoise:
    """Noise on 0, 1, 2, ...: Laplace noise, given that it is not negative. Not thread-safe.

    Its probabilities are exactly proportional to exp(-k/scale), so a shift up by one step costs as
    much as for Laplace noise. A shift down leaves its range.

    :param scale: scale in steps of the grid of integers
    :param ahead: number of two-sided draws per batch
    """

    __slots__ = ("_noise",)

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
