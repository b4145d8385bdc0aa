"""Loss of one person when a sum is released with noise: a power of the value over the scale.

Sums are of whole steps and noise is on the integers, so no floating-point error enters:

* Laplace: a shift of d steps has a divergence of |d|/s, for pure DP;
* Gaussian: α d²/(2 s²) at every order α, so ρ = d²/(2 s²) for zCDP [CKS20, Theorem 14].

A group of k people shifts the sum by at most the sum of their values. For Laplace noise, their
losses add up. For Gaussian noise, the square of a sum of k numbers is at most k times the sum of
their squares [Cauchy and Schwarz]. So over all queries the divergence is at most k times the sum of
k people's losses, k² times the budget of one. This holds at each order, so at one fixed order, too.
"""

from __future__ import annotations

from ..errors import UnsupportedMeasureError
from ..measures import composition_measure
from ..measures.noise import NoiseLoss as NoiseLoss
from ..types import Argument


def noise_loss(output_measure: Argument) -> NoiseLoss:
    """Return the loss of the noise that belongs to a measure.

    :raises UnsupportedMeasureError: for measures whose losses are not such a power
    """
    measure = composition_measure(output_measure)
    if measure.noise_loss is not None:
        return measure.noise_loss
    raise UnsupportedMeasureError(
        f"output_measure ({measure.name}) must be pure DP, for Laplace noise, or zero-concentrated "
        "DP or Rényi DP of a fixed order, for Gaussian noise; build for one of these, and use cast"
    )
