"""Combine several interactive mechanisms into one. Each message names its recipient."""

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
from ..queryables.mechanism import ConcurrentMeasurement, pinned, read_map
from ..queryables.session import validate_d_in
from ..queryables.stream_domain import feeds_many, is_stream
from ..types import Answer, Distance, Query
from .concurrent_composition import make_concurrent_composition
from .constructor import constructor
from .inside import check_inside, check_measurement_on
from .postprocessing import ANSWER, QUERY, Tag, make_interactive_postprocessing
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
    measurements = checks.elements("measurements", measurements=measurements)
    if not measurements:
        raise InvalidValueError("measurements must have at least one element")
    measurements = [
        pinned(check_measurement_on(f"measurements[{index}]", one, input_domain, input_metric))
        for index, one in enumerate(measurements)
    ]
    streams = is_stream(input_domain)
    for index, one in enumerate(measurements):
        name = f"measurements[{index}]"
        if one.output_measure != output_measure:
            raise SpaceMismatchError(f"{name}.output_measure", output_measure, one.output_measure)
        check_inside(name, one)
    if streams and len(measurements) > 1 and not feeds_many(output_measure):
        raise UnsupportedMeasureError(
            f"measurements must have only one element on a stream under {measure.name}, for "
            "which continual mechanisms compose with bounded messages only [HSV25, "
            "Definition 6.1]; launch them on make_concurrent_continual(composition, "
            "max_messages=...)"
        )
    if measure.sequential_reason and len(measurements) > 1:
        raise UnsupportedMeasureError(
            f"{measure.name} composes one interactive mechanism at a time: {measure.reason}"
        )
    try:
        d_mids = [read_map(one, d_in) for one in measurements]
    except PrivacyMapError:
        raise
    except OpenDPException as error:
        raise PrivacyMapError(d_in, str(error).strip()) from error
    compositor = make_concurrent_composition(
        input_domain, input_metric, output_measure, d_in, d_mids, orders=orders
    )

    def make_machine(launch: Ask) -> Ask:
        children = [as_answering(launch(one)) for one in measurements]

        def answer(message: Query) -> Answer:
            index, query = _pair(message, len(children))
            return children[index](query)

        return answer

    # all of its mechanisms are launched together with it
    return wrap_queries(compositor, make_machine, "IndexedComposition", composes=False)


def _pair(message: Query, count: int) -> tuple[int, Any]:
    parts = tuple(message) if isinstance(message, tuple) else ()
    if len(parts) != 2 or type(parts[0]) is not int:
        raise InvalidTypeError(
            f"the message must be a pair (index, query), found {type(message).__name__}"
        )
    if not 0 <= parts[0] < count:
        raise InvalidValueError(
            f"the index ({checks.shown(parts[0])}) must be from 0 to {count - 1}"
        )
    return parts[0], parts[1]


@constructor
def make_ordered_composition(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    measurements: Sequence[Measurement],
    *,
    orders: Sequence[float] | None = None,
) -> ConcurrentMeasurement:
    """Compose interactive mechanisms that are queried in turn: first to last, then again.

    This is the ordered concurrent composition of [VW21, Definition 7]. It postprocesses
    :func:`.make_indexed_composition`: the person in the middle only counts messages. It is equally
    general if each mechanism has a :func:`.make_null_query_extension` [VW21, Lemma 2].

    Guarantee: that of :func:`.make_indexed_composition` [HSTVVXZ23, Theorem 2.17].

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data
    :param input_metric: metric of the data
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs
    :param measurements: interactive or not, on this space and measure
    :param orders: for Rényi curves only, as in :func:`.make_concurrent_composition`
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError, SpaceMismatchError, UnsupportedMeasureError: as
        :func:`.make_indexed_composition`

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> ordered = oc.c.make_ordered_composition(*space, dp.max_divergence(), 1, [count, count])
    >>> queryable = ordered([1, 2, 3])
    >>> first, second, again = queryable(None), queryable(None), queryable(None)
    >>> first == again
    True
    """
    measurements = checks.elements("measurements", measurements=measurements)
    indexed = make_indexed_composition(
        input_domain, input_metric, output_measure, d_in, measurements, orders=orders
    )
    count = len(measurements)

    def in_turn(turn: int, tag: Tag, message: Query) -> tuple[int, Tag, Any]:
        if tag is QUERY:
            return turn, QUERY, (turn, message)
        return (turn + 1) % count, ANSWER, message

    return make_interactive_postprocessing(indexed, in_turn, initial_state=0)


@constructor
def make_null_query_extension(measurement: Measurement) -> ConcurrentMeasurement:
    """Let an interactive mechanism accept null queries.

    This is the null-query extension of [VW21, Definition 8]. The message ``(0, anything)`` returns
    None and does not reach the mechanism. The message ``(1, query)`` goes to the mechanism.

    Guarantee: that of ``measurement`` [HSTVVXZ23, Theorem 2.17].

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive, or noninteractive and wrapped by :func:`.make_interactive`
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument, or if a message is not a pair

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> queryable = oc.c.make_null_query_extension(count)([1, 2, 3])
    >>> print(queryable((0, None)))
    None
    """

    def skip(state: None, tag: Tag, message: Query) -> tuple[None, Tag, Any]:
        if tag is ANSWER:
            return None, ANSWER, message
        asked, query = _pair(message, 2)
        return (None, QUERY, query) if asked else (None, ANSWER, None)

    return make_interactive_postprocessing(measurement, skip)


then_indexed_composition = _native.to_then(make_indexed_composition)
then_ordered_composition = _native.to_then(make_ordered_composition)
