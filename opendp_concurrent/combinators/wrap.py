"""Wrap a measurement so that it answers other queries; the privacy map is unchanged.

Only queries are wrapped. Updates of a stream are data: the wrapped measurement is launched on the
stream itself (:mod:`..queryables.stream`) and receives the updates from there.
"""

from __future__ import annotations

from collections.abc import Callable

from opendp.mod import Measurement, OdometerQueryable, Queryable

from ..accounts.lifecycle import Lifecycle, innermost_running
from ..queryables.accuracy import Accuracy
from ..queryables.child import adopt
from ..queryables.data import Sealed, run
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import (
    ConcurrentMeasurement,
    known_accuracy,
    may_feed_many,
    read_map,
)
from ..queryables.named_queries import NONE, READ, Queries, answering, queries_of
from ..queryables.stream import Meter, Stream, start_of
from ..queryables.stream_domain import is_stream
from ..queryables.stream_handles import OwnStreamQueryable, QueryOnlyQueryable, query_side
from ..types import Answer, Query
from .constructor import constructor
from .inside import check_inside, check_measurement
from .interactive_measurement import make_measurement

Ask = Callable[[Query], Answer]


def unchanged(answer: Ask) -> Ask:
    """Return the answer function unchanged: every message is passed on."""
    return answer


def wrap(
    measurement: Measurement,
    make_machine: Callable[[Ask], Ask],
    name: str,
    *,
    queries: Queries = NONE,
    accuracy: Accuracy | None = None,
) -> ConcurrentMeasurement:
    """Return ``measurement`` with its queryable behind a machine; the privacy map is unchanged.

    The machine receives queries.

    :param make_machine: takes the measurement's answer function and returns another one
    :param queries: the named queries that the machine answers
    :param accuracy: the error of the machine's answers
    """
    check_inside("measurement", check_measurement("measurement", measurement))
    return wrap_queries(measurement, make_machine, name, queries=queries, accuracy=accuracy)


def wrap_queries(
    measurement: Measurement,
    make_machine: Callable[[Ask], Ask],
    name: str,
    *,
    limit: int | None = None,
    composes: bool | None = None,
    queries: Queries | None = NONE,
    accuracy: Accuracy | None = None,
) -> ConcurrentMeasurement:
    """Wrap the queries of a measurement that was checked before.

    :param limit: the largest number of messages that are passed on in all
    :param composes: whether it launches mechanisms; as the measurement if left out
    :param queries: the named queries that the machine answers; None for those of the measurement,
        if messages are passed on unchanged
    :param accuracy: the error of the machine's answers; that of the measurement if messages are
        passed on unchanged
    """
    if queries is None:
        accuracy = known_accuracy(measurement)
    fed, many = is_stream(measurement.input_domain), may_feed_many(measurement)
    carrier_type = measurement.input_domain.carrier_type

    def spawn(token: Sealed) -> MachineQueryable:
        meter = None if limit is None else Meter(limit)
        outer = start_of(token) if fed else None
        inner = outer
        if fed and (outer is None or meter is not None):
            inner = Stream(many=many, meter=meter, upstream=outer)
            token = inner.token(carrier_type)
        answer = adopt(run(measurement, token), Lifecycle(innermost_running()), None)
        machine = make_machine(_metered(as_answering(answer), meter))
        named = _queries_of(answer) if queries is None else queries
        handle: MachineQueryable
        if inner is not None and outer is None:
            handle = answering(OwnStreamQueryable, named)(machine, name, inner)
        else:
            handle = answering(QueryOnlyQueryable, named)(machine, name)
            handle.stream = inner  # the stream's subscribers hold it weakly
        handle.passes_on = True
        return handle

    return make_measurement(
        measurement.input_space,
        measurement.output_measure,
        spawn,
        lambda d_in: read_map(measurement, d_in),
        f"{name}({measurement.output_measure})",
        around=measurement,
        takes_updates=fed,
        composes=composes,
        accuracy=accuracy,
    )


def _metered(answer: Ask, meter: Meter | None) -> Ask:
    if meter is None:
        return answer

    def counted(message: Query) -> Answer:
        meter.spend(1)
        return answer(message)

    return counted


def _queries_of(answer: Answer) -> Queries:
    """Return the named queries; a release has the query ``read``."""
    queryable = isinstance(answer, (Queryable, OdometerQueryable))
    return queries_of(answer) if queryable else READ


def as_answering(answer: Answer) -> Ask:
    """Return a queryable as it is, or a function that returns the release at each query."""
    if isinstance(answer, (Queryable, OdometerQueryable)):
        return query_side(answer)
    return lambda _: answer


@constructor
def make_interactive(measurement: Measurement) -> ConcurrentMeasurement:
    """Return a measurement as an interactive mechanism.

    A noninteractive measurement is released once, when it is launched. ``read()`` returns this
    release, and so does every message; its content is ignored. An interactive measurement answers
    as before.

    Guarantee: that of ``measurement``; reading a release again is postprocessing.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive or not
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError: if it is not a measurement; or if it is a composition on a stream

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> queryable = oc.c.make_interactive(count)([1, 2, 3])
    >>> queryable.read() == queryable("again")
    True
    """
    check_inside("measurement", measurement)
    return wrap_queries(measurement, unchanged, "Interactive", queries=None)
