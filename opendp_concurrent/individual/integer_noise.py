"""OpenDP's noise on the sum of whole steps."""

from __future__ import annotations

from typing import Any

from opendp.domains import atom_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance

from ..native import opendp as _native
from .noise_loss import NoiseLoss

ATOM = "i64"
LARGEST_SUM = 2**62


class IntegerNoise:
    """Noise of one scale on integers. Made before a charge, drawn after it."""

    def __init__(self, loss: NoiseLoss, scale: float) -> None:
        make = make_laplace if loss.is_laplace else make_gaussian
        self._release = make(atom_domain(T=ATOM), absolute_distance(T=ATOM), scale)

    def add(self, total: int) -> int:
        """Return a noisy sum. Saturation is clamping, and clamping increases no distance."""
        clamped = max(-LARGEST_SUM, min(LARGEST_SUM, total))  # of 2^32 people or more
        noisy: Any = _native.invoke(self._release, _native.to_pointer(clamped, ATOM))
        return int(noisy)
