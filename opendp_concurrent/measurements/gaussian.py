"""Gaussian noise, sampled by OpenDP, certified under more measures.

OpenDP samples discrete Gaussians: N_Z(0, s²) on a grid, s the scale in steps. For a shift of d
steps it is d²/(2 s²)-zCDP [CKS20, Theorem 14]. In one dimension, for s >= 1/2, it is also
(d+1)/s-Gaussian DP. Proof: the trade-off function is linear between the points (P(X >= j),
P(X < j - d)), and G_μ is convex, so it is enough that z(j) - z(j-d) <= μ for all j, with z(j) the
normal quantile of P(X >= j) = 1 - Φ(z). For j >= 1, with g(x) = exp(-x²/(2 s²)) and
Z = sum of g(i) = s sqrt(2π) (1 + 2 sum of exp(-2 π² s² k²)) (Poisson):

* sum over i >= j of g(i) <= integral of g from j - 1, and Z >= s sqrt(2π): z(j) >= (j-1)/s;
* integral of g from i to i+1 <= g(i) (1 - e^(-y))/y, y = i/s², and y/(1 - e^(-y)) >= 1 + y/2, so
  the sum is at least 1 + 1/(2 s²) times the integral from j, which is more than Z exceeds
  s sqrt(2π) by: z(j) <= j/s.

For j <= 0 both follow from z(j) = -z(1-j). Hence z(j) - z(j-d) <= (j - (j-d-1))/s = (d+1)/s.

Coordinates compose to the root of the sum of squares: n of them, each (d_i + 1)/s, give at most
(|d|_2 + sqrt(n))/s. On the fine grid of floats the term sqrt(n)/s is negligible. For vectors of
integers it is not, and no certificate is offered.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from opendp.measurements import make_gaussian as opendp_gaussian
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..combinators.constructor import constructor
from ..errors import UnsupportedMeasureError
from ..exact.bracket import upper
from ..fdp.function import TradeoffFunction
from ..measures.conversions.products import zcdp_to_gaussian
from ..measures.measure import CompositionMeasure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..tradeoffs.gaussian_tradeoff import GAUSSIAN_TRADEOFF
from ..tradeoffs.tradeoff import TRADEOFF_DIVERGENCE
from .certify import Reading, built, certify
from .grid import FINEST, Exponent, atom_type, grid_step, is_vector
from .noise_accuracy import gaussian_accuracy

LISTED = 4096.0  # scale up to which the outcomes of a discrete Gaussian are listed
MOST_COORDINATES = 2.0**62  # more than a machine's memory holds


@constructor
def make_certified_gaussian(
    input_domain: Domain,
    input_metric: Metric,
    scale: Finite,
    output_measure: Measure,
    k: Exponent | None = None,
) -> ConcurrentMeasurement:
    """Add Gaussian noise, certified under ``output_measure``.

    :func:`~opendp.measurements.make_gaussian` samples the noise.

    * zCDP and tCDP: ρ. Rényi DP, of one order or as a curve: ρ α [CKS20, Theorem 14].
    * Gaussian DP: for floats, sensitivity / ``scale`` plus a term for the grid, which rounding
      absorbs unless ``k`` is coarse; for one integer, (sensitivity + 1) / ``scale``. The proof is
      in ``measurements/gaussian.py``.
    * f-DP: exact for one integer and a scale up to 4096; through Gaussian DP for floats; through
      zCDP for vectors of integers.
    * Other measures: the loss that zCDP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: numbers or vectors of numbers, as in OpenDP
    :param input_metric: absolute or L2 distance
    :param scale: standard deviation of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param k: use the grid of multiples of 2^k, for floats only; the finest grid if left out
    :return: a measurement
    :raises UnsupportedMeasureError: if zCDP does not convert to ``output_measure``; for Gaussian DP
        of vectors of integers
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> oc.m.make_certified_gaussian(*space, 2.0, oc.gaussian_tradeoff()).map(1.0)
    0.5000000000000001
    >>> oc.m.make_certified_gaussian(*space, 2.0, oc.fixed_renyi_divergence(alpha=8.0)).map(1.0)
    1.0
    """
    zcdp = built(
        opendp_gaussian,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        k=k,
    )
    many, whole = is_vector(input_domain), atom_type(input_domain) not in FINEST

    def gaussian() -> Reading:
        if whole and many:
            raise UnsupportedMeasureError(
                "output_measure (GaussianTradeoff) is not offered for vectors of integers: "
                "OpenDP's discrete Gaussian has no Gaussian DP certificate there; use zCDP, or "
                "floats"
            )
        step = grid_step(input_domain, scale, k)
        if not step <= 2.0:
            raise UnsupportedMeasureError(
                f"scale ({scale}) must be at least half a step of the grid for Gaussian DP"
            )
        coordinates = MOST_COORDINATES if many else 1.0
        extra = upper(lambda real: real(step) * real(coordinates).sqrt())
        return lambda rho: zcdp_to_gaussian(rho, extra)

    def tradeoff() -> Reading:
        if whole and scale <= LISTED:
            return lambda rho: _on_integers(rho, scale)
        mu = gaussian()
        return lambda rho: TradeoffFunction.gaussian(mu(rho))

    losses: dict[CompositionMeasure, Callable[[], Reading]] = {GAUSSIAN_TRADEOFF: gaussian}
    if not (whole and many):
        losses[TRADEOFF_DIVERGENCE] = tradeoff
    return certify(zcdp, output_measure, losses, gaussian_accuracy(input_domain, scale, k))


def _on_integers(rho: float, scale: float) -> TradeoffFunction:
    """Trade-off function of the discrete Gaussian for the shift with ρ = shift² / (2 scale²)."""
    if rho == 0.0 or scale == 0.0:
        return TradeoffFunction.worst() if rho else TradeoffFunction.identity()
    nearest = scale * sqrt(2 * rho)
    if not nearest <= LISTED:
        return TradeoffFunction.worst()
    shift = max(1, round(nearest))
    return TradeoffFunction.discrete_gaussian(scale, shift)


then_certified_gaussian = _native.to_then(make_certified_gaussian)
