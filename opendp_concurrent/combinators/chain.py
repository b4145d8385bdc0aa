"""The chain ``transformation >> odometer``."""

from __future__ import annotations

from opendp.mod import Transformation

from ..errors import InvalidTypeError, SpaceMismatchError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentOdometer, replace
from ..queryables.stream_domain import is_stream
from .constructor import constructor
from .guards import check_odometer


def check_no_stream(transformation: Transformation) -> None:
    """Raise if the transformation returns a stream: OpenDP's would not see later items."""
    if is_stream(transformation.output_domain):
        raise InvalidTypeError(
            f"transformation returns a stream ({transformation.output_domain}), and would "
            "run only once, on the empty stream, before any item arrives; use "
            "make_stream_map, make_stream_filter, make_stream_clamp or "
            "make_bounded_contributions"
        )


@constructor(features=("contrib",))
def make_chain_ot(
    odometer: ConcurrentOdometer, transformation: Transformation
) -> ConcurrentOdometer:
    """Return ``transformation >> odometer``.

    Mechanisms run on the transformed data. ``privacy_loss(d_in)`` takes d_in in units of the
    transformation's input metric, and applies the stability map.

    Required features: `contrib`

    :param odometer: made by :func:`.make_concurrent_odometer`
    :param transformation: maps to the odometer's input domain and metric
    :return: an odometer on the transformation's input space
    :raises InvalidTypeError: naming the argument
    :raises SpaceMismatchError: if domains or metrics do not match

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> clamp = space >> dp.t.then_clamp((0, 10))
    >>> chained = clamp >> oc.then_concurrent_odometer(dp.max_divergence())
    >>> chained.input_domain
    VectorDomain(AtomDomain(T=i32))
    """
    inner = check_odometer(odometer)
    if not isinstance(transformation, Transformation):
        raise InvalidTypeError(
            f"transformation must be a transformation, found {type(transformation).__name__}"
        )
    check_no_stream(transformation)
    if transformation.output_domain != inner.input_domain:
        raise SpaceMismatchError("input_domain", inner.input_domain, transformation.output_domain)
    if transformation.output_metric != inner.input_metric:
        raise SpaceMismatchError("input_metric", inner.input_metric, transformation.output_metric)
    _native.refuse(transformation, flows=True)  # an odometer may read no map before it runs
    head = (
        transformation if inner.transformation is None else transformation >> inner.transformation
    )
    return replace(inner, transformation=head)
