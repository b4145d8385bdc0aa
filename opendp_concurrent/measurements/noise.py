"""Laplace noise on the integers, without an end: drawn by OpenDP, some of it ahead.

OpenDP's integers saturate. The distribution has no memory: what is at the edge went beyond it by
another draw, of those that are not negative. So a draw is any integer k, with probability
proportional to exp(-|k|/scale), exactly, and a proof may shift noise by any amount.
"""

from __future__ import annotations

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance, l1_distance

from ..native import opendp as _native

ATOM = "i64"
EDGES = -(2**63), 2**63 - 1
AHEAD = 64


class LaplaceNoise:
    """Draws of one scale. Not thread-safe; holds noise that must stay secret.

    :param scale: in steps of the grid of integers
    :param ahead: how many are drawn at once
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
        """How far beyond an edge: a draw on the condition that it is not negative."""
        while (noise := self.draw()) < 0:
            pass
        return noise


def laplace_epsilon(scale: float, shift: int) -> float:
    """Privacy loss of a shift of the noise, rounded up: OpenDP's map.

    :param scale: in steps
    :param shift: in steps
    """
    laplace = make_laplace(atom_domain(T=ATOM), absolute_distance(T=ATOM), scale)
    epsilon: float = laplace.map(shift)
    return epsilon
