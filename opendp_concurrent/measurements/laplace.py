"""Laplace noise, sampled by OpenDP, certified more tightly than by its pure DP guarantee."""

from __future__ import annotations

from opendp.measurements import make_laplace as opendp_laplace
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..combinators.constructor import constructor
from ..measures.conversions.laplace import laplace_to_renyi, laplace_to_zcdp
from ..measures.renyi_divergence import RENYI_DIVERGENCE
from ..measures.zero_concentrated_divergence import ZERO_CONCENTRATED_DIVERGENCE
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..tradeoffs.laplace import laplace_to_tradeoff
from ..tradeoffs.tradeoff import TRADEOFF_DIVERGENCE
from .certify import Losses, built, certify
from .grid import Exponent, grid_step
from .noise_accuracy import laplace_accuracy


@constructor
def make_certified_laplace(
    input_domain: Domain,
    input_metric: Metric,
    scale: Finite,
    output_measure: Measure,
    k: Exponent | None = None,
) -> ConcurrentMeasurement:
    """Add Laplace noise, certified under ``output_measure``.

    :func:`~opendp.measurements.make_laplace` samples the noise, on a grid: the integers, or
    multiples of 2^k. The guarantee holds for the noise on this grid. On a fine grid it is the
    guarantee of the Laplace distribution. For a sensitivity of one step it is the guarantee of
    randomized response.

    * zCDP and tCDP: the Kullback-Leibler divergence, ε + e^(-ε) - 1 for a fine grid [HM25];
    * Rényi DP, of one order or as a curve: exact; [Mir17, Table II] for a fine grid;
    * f-DP: the exact trade-off function of the noise on its grid;
    * other measures: the loss that ε-DP implies, by :func:`.cast`.

    ``measures/conversions/laplace.py`` and ``laplace_to_tradeoff.py`` have formulas and proofs.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: numbers or vectors of numbers, as in OpenDP
    :param input_metric: absolute or L1 distance
    :param scale: scale of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param k: use the grid of multiples of 2^k, for floats only; the finest grid if left out
    :return: a measurement
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> oc.m.make_certified_laplace(*space, 1.0, dp.zero_concentrated_divergence()).map(1.0)
    0.36787944117144233
    >>> whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> oc.m.make_certified_laplace(*whole, 1.0, dp.zero_concentrated_divergence()).map(1)
    0.4621171572600098
    """
    pure = built(
        opendp_laplace,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        k=k,
    )
    step = grid_step(input_domain, scale, k)
    accuracy = laplace_accuracy(input_domain, scale, k)
    return certify(pure, output_measure, laplace_losses(step), accuracy)


def laplace_losses(step: float) -> Losses:
    """Return the readings of ε of Laplace noise on a grid, for each measure that has one.

    :param step: step of the grid over the scale of the noise
    """
    return {
        ZERO_CONCENTRATED_DIVERGENCE: lambda: lambda e: laplace_to_zcdp(e, step),
        RENYI_DIVERGENCE: lambda: lambda e: lambda alpha: laplace_to_renyi(e, alpha, step),
        TRADEOFF_DIVERGENCE: lambda: lambda e: laplace_to_tradeoff(e, step),
    }


then_certified_laplace = _native.to_then(make_certified_laplace)
