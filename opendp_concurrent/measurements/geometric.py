"""Two-sided geometric noise, sampled by OpenDP, certified under more measures."""

from __future__ import annotations

from opendp.measurements import make_geometric as opendp_geometric
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Finite
from ..arguments.checks import guard, integer, optional, pair
from ..combinators.constructor import constructor
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..types import Argument
from .certify import built, certify
from .laplace import make_certified_laplace
from .noise_accuracy import laplace_accuracy


@guard("bounds", None, 1, (1,), (1, 2, 3), (1.0, 2.0), [1, 2])
def _bounds(name: str, value: Argument) -> tuple[int, int]:
    """Return a pair of integers, or raise."""
    lower, upper = pair.check(name, value)
    return integer.check(f"{name}[0]", lower), integer.check(f"{name}[1]", upper)


@constructor(bounds=optional(_bounds))
def make_certified_geometric(
    input_domain: Domain,
    input_metric: Metric,
    scale: Finite,
    output_measure: Measure,
    bounds: tuple[int, int] | None = None,
) -> ConcurrentMeasurement:
    """Add two-sided geometric noise to integers, certified under ``output_measure``.

    :func:`~opendp.measurements.make_geometric` samples the noise. Without ``bounds`` it is Laplace
    noise on the integers, and :func:`.make_certified_laplace` certifies it: exactly for f-DP.
    With ``bounds`` the loss is the one that ε-DP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: integers or vectors of integers, as in OpenDP
    :param input_metric: absolute or L1 distance
    :param scale: scale of the noise, finite, at least 0
    :param output_measure: how privacy is measured
    :param bounds: bounds of the output, for sampling in nearly constant time
    :return: a measurement
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    >>> oc.m.make_certified_geometric(*space, 1.0, oc.tradeoff()).map(1)
    TradeoffFunction(pure(epsilon=1.0))
    """
    geometric = built(
        opendp_geometric,
        input_domain=input_domain,
        input_metric=input_metric,
        scale=scale,
        bounds=bounds,
    )
    if bounds is not None:
        accuracy = laplace_accuracy(input_domain, scale, None)  # the bounds cut noise off
        return certify(geometric, output_measure, {}, accuracy)
    return make_certified_laplace(input_domain, input_metric, scale, output_measure)


then_certified_geometric = _native.to_then(make_certified_geometric)
