"""Noise for the nodes of a tree: integers that OpenDP draws, several ahead of use.

A node releases its sum plus noise. OpenDP's integers saturate at 63 bits, so releases are clamped
to 62 bits. Sums have at most 61 bits. So the clamped release is the same as with unbounded noise,
and clamping is postprocessing.
"""

from __future__ import annotations

from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance, l1_distance, l2_distance
from opendp.mod import Measure

from ..errors import UnsupportedMeasureError
from ..measurements.gaussian import make_certified_gaussian
from ..measurements.laplace import make_certified_laplace
from ..measurements.noise import ATOM
from ..measures import composition_measure
from ..measures.noise import Noise
from ..native import opendp as _native

FIRST_AHEAD, MOST_AHEAD = 16, 256
LARGEST_SUM, LARGEST_RELEASE = 2**61, 2**62
HIGHEST, LOWEST = 2**63 - 1, -(2**63)  # OpenDP's integers saturate here


def is_laplace(measure: Measure) -> bool:
    """Return True for Laplace noise, False for Gaussian; raise if ``measure`` has neither."""
    known = composition_measure(measure)
    if known.noise is not None:
        return known.noise is Noise.LAPLACE
    raise UnsupportedMeasureError(
        f"output_measure ({known.name}) has no noise of its own here; build for pure DP or zCDP, "
        "and use cast"
    )


def noise_loss(scale: float, shift: int, measure: Measure) -> Any:
    """Return the privacy loss of moving one node by ``shift``."""
    space = atom_domain(T=ATOM), absolute_distance(T=ATOM)
    make = make_certified_laplace if is_laplace(measure) else make_certified_gaussian
    return make(*space, scale, measure).map(shift)


class NodeNoise:
    """Noise of one scale. Its draws must stay secret. Not thread-safe.

    :param laplace: draw Laplace noise if true, else Gaussian
    """

    __slots__ = ("_ahead", "_drawn", "_laplace", "_sample", "_scale", "_zeros")

    def __init__(self, scale: float, laplace: bool) -> None:
        self._scale, self._laplace, self._ahead = scale, laplace, 0
        self._sample: Any = None
        self._zeros: Any = None
        self._drawn: list[int] = []

    def _draw(self) -> list[int]:
        """Draw ahead: few draws at first, then more each time."""
        if self._ahead < MOST_AHEAD:
            self._ahead = min(max(FIRST_AHEAD, 4 * self._ahead), MOST_AHEAD)
            domain = vector_domain(atom_domain(T=ATOM), size=self._ahead)
            if self._laplace:
                self._sample = make_laplace(domain, l1_distance(T=ATOM), self._scale)
            else:
                self._sample = make_gaussian(domain, l2_distance(T="f64"), self._scale)
            carrier = self._sample.input_carrier_type
            self._zeros = _native.to_pointer([0] * self._ahead, carrier)
        drawn: list[int] = _native.invoke(self._sample, self._zeros)
        return drawn

    def _next(self) -> int:
        if not self._drawn:
            self._drawn = self._draw()
        return self._drawn.pop()

    def release(self, total: int) -> int:
        """Return ``total`` plus the next draw, clamped."""
        return max(-LARGEST_RELEASE, min(LARGEST_RELEASE, total + self._next()))

    def whole(self) -> int:
        """Return the next draw of Laplace noise, on all integers.

        At the highest integer the noise is that or more. By how much more has the law of noise that
        is not negative, since Laplace noise has no memory. The same holds at the lowest.
        """
        drawn = self._next()
        if LOWEST < drawn < HIGHEST:
            return drawn
        further = -1
        while further < 0:
            further = self.whole()
        return drawn + further if drawn > 0 else drawn - further
