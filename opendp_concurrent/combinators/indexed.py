"""The papers' protocol: several interactive mechanisms as one, whose messages name a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opendp.mod import Domain, Measure, Measurement, Metric, OpenDPException

from ..arguments import checks
from ..errors import (
    InvalidTypeError,
    InvalidValueError,
    PrivacyMapError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement, read_map
from ..queryables.session import validate_d_in
from ..queryables.stream_domain import feeds_many, is_stream
from ..types import Answer, Distance, Query
from .concurrent_composition import make_concurrent_composition
from .constructor import constructor
from .inside import check_inside, check_measurement_on
from .wrap import Ask, as_answering, wrap_queries


@constructor
def make_indexed_composition(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    measurements: Sequence[Measurement],
    *,
    orders: Sequence[float] | None = None,
) -> ConcurrentMeasurement:
    """Compose interactive mechanisms into one whose messages are pairs of an index and a query.

    This is Algorithm 1 of [HSTVVXZ23], ConComp. All mechanisms are launched at once, and the
    message ``(j, query)`` goes to the mechanism at index ``j``, from 0. On a stream each update
    reaches every mechanism, because all of them run on the same dataset.

    Guarantee: that of :func:`.make_concurrent_composition` with d_mids their losses at ``d_in``.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data
    :param input_metric: metric of the data
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs
    :param measurements: interactive or not, on this space and measure
    :param orders: for Rényi curves only, as in :func:`.make_concurrent_composition`
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument, or if a message is not a pair
    :raises SpaceMismatchError: if a measurement is not on this space and measure
    :raises UnsupportedMeasureError: for two or more measurements under approximate zCDP, where
        concurrency is an open question; for two or more on a stream, except under pure DP

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> alarm = oc.m.make_above_threshold(*space, dp.max_divergence(), 1, scale=4.0, threshold=9)
    >>> both = oc.c.make_indexed_composition(*space, dp.max_divergence(), 1, [alarm, alarm])
    >>> both.map(1) == 2 * alarm.map(1)
    True
    >>> count = space >> dp.t.then_count()
    >>> queryable = both([1, 2, 3])
    >>> answers = queryable((0, count)), queryable((1, count)), queryable((0, count))
    """
    measure = composition_measure(output_measure)
    d_in = validate_d_in(input_metric, d_in)
    parts = []
    for index, one in enumerate(checks.elements("measurements", measurements=measurements)):
        name = f"measurements[{index}]"
        part = check_measurement_on(name, one, input_domain, input_metric)
        if part.output_measure != output_measure:
            raise SpaceMismatchError(f"{name}.output_measure", output_measure, part.output_measure)
        check_inside(name, part)
        parts.append(part)
    if not parts:
        raise InvalidValueError("measurements must have at least one element")
    if len(parts) > 1:
        if is_stream(input_domain) and not feeds_many(output_measure):
            raise UnsupportedMeasureError(
                f"measurements must have only one element on a stream under {measure.name} "
                "[HSV25, Def. 6.1]; launch them on make_concurrent_continual(..., max_messages=...)"
            )
        if measure.sequential_reason:
            raise UnsupportedMeasureError(
                f"{measure.name} composes one interactive mechanism at a time: {measure.reason}"
            )
    try:
        d_mids = [read_map(one, d_in) for one in parts]
    except PrivacyMapError:
        raise
    except OpenDPException as error:
        raise PrivacyMapError(d_in, str(error).strip()) from error
    compositor = make_concurrent_composition(
        input_domain, input_metric, output_measure, d_in, d_mids, orders=orders
    )

    def make_machine(launch: Ask) -> Ask:
        children = [as_answering(launch(one)) for one in parts]

        def answer(message: Query) -> Answer:
            index, query = _pair(message, len(children))
            return children[index](query)

        return answer

    # all of its mechanisms are launched together with it
    return wrap_queries(compositor, make_machine, "IndexedComposition", composes=False)


def _pair(message: Query, count: int) -> tuple[int, Any]:
    if not (isinstance(message, tuple) and len(message) == 2 and type(message[0]) is int):
        raise InvalidTypeError(
            f"the message must be a pair (index, query), found {type(message).__name__}"
        )
    index, query = message
    if not 0 <= index < count:
        raise InvalidValueError(f"the index ({checks.shown(index)}) must be from 0 to {count - 1}")
    return index, query


then_indexed_composition = _native.to_then(make_indexed_composition)
