"""Noise for the nodes of a tree: integers that OpenDP draws, several ahead of use.

A node releases its sum plus noise. OpenDP's integers saturate at 63 bits, so releases are clamped
to 62 bits. Sums have at most 61 bits. So the clamped release is the same as with unbounded noise,
and clamping is postprocessing.
"""

from __future__ import annotations

from opendp.domains import atom_domain
from opendp.metrics import absolute_distance
from opendp.mod import Measure

from ..errors import UnsupportedMeasureError
from ..measurements.gaussian import make_certified_gaussian
from ..measurements.laplace import make_certified_laplace
from ..measurements.noise import ATOM, IntegerDraws
from ..measures import composition_measure
from ..measures.noise import Noise
from ..types import Loss

MOST_AHEAD = 256
LARGEST_SUM, LARGEST_RELEASE = 2**61, 2**62


def is_laplace(measure: Measure) -> bool:
    """Return True for Laplace noise, False for Gaussian; raise if ``measure`` has neither."""
    known = composition_measure(measure)
    if known.noise is not None:
        return known.noise is Noise.LAPLACE
    raise UnsupportedMeasureError(
        f"output_measure ({known.name}) has no noise of its own here; build for pure DP or zCDP, "
        "and use cast"
    )


def noise_loss(scale: float, shift: int, measure: Measure) -> Loss:
    """Return the privacy loss of moving one node by ``shift``."""
    space = atom_domain(T=ATOM), absolute_distance(T=ATOM)
    make = make_certified_laplace if is_laplace(measure) else make_certified_gaussian
    return make(*space, scale, measure).map(shift)


class NodeNoise(IntegerDraws):
    """Noise of one scale. Its draws must stay secret. Not thread-safe.

    :param laplace: draw Laplace noise if true, else Gaussian
    """

    def __init__(self, scale: float, laplace: bool) -> None:
        super().__init__(scale, laplace, MOST_AHEAD)

    def release(self, total: int) -> int:
        """Return ``total`` plus the next draw, clamped."""
        return max(-LARGEST_RELEASE, min(LARGEST_RELEASE, total + self._next()))
