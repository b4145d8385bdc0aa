"""Any measurement as a question on a stream: it runs on the rows that have arrived.

A launch runs on the rows so far, which are fixed when it begins. So it costs what it costs on data,
at the distance of the rows of two neighbouring streams. Rows that arrive later reach only the
launches of a composition, each on the rows of its time, and the queries of a sparse vector. For
other interactive mechanisms this is false: one that repeats an exact difference from its first
answer is private on data, but shows each row that arrives (``docs/proofs/on-stream.rst``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _opendp as _native
from .. import composition, errors, queryables
from .._opendp import dp
from ..accounting import Lifecycle, innermost_running
from ..measures import composition_measure
from .concurrent import launching_handle
from .mechanism import Checked, hand_out
from .stream import (
    Categories,
    Integers,
    Items,
    event_change,
    event_presence,
    items_of,
    whole_distance,
)


class _Rows:
    """The rows that have arrived, as data of a measurement. What is no row is left out.

    :param domain: in which each row must be, by itself; None if all items are
    """

    def __init__(self, carrier_type: str, domain: dp.Domain | None) -> None:
        self._carrier_type, self._domain = carrier_type, domain
        self._rows: list[Any] = []
        self._known: tuple[int, Any] = -1, None  # the number of rows, and these converted

    def add(self, item: errors.Item) -> None:
        if item is not None and (self._domain is None or _native.is_member(self._domain, [item])):
            self._rows.append(item)

    def so_far(self) -> Any:
        """Convert a copy: a mechanism may keep what it gets, and must not see it grow."""
        if self._known[0] != len(self._rows):
            pointer = _native.to_pointer(self._rows.copy(), self._carrier_type)
            self._known = len(self._rows), pointer
        return self._known[1]


class _Question:
    """State machine of a question: the first query launches the measurement, if nothing has.

    It is launched once, whatever becomes of it: an error is an answer, which was paid for.
    """

    def __init__(self, measurement: dp.Measurement, rows: _Rows) -> None:
        self._measurement, self._rows = measurement, rows
        self._ask: Callable[[Any], Any] | None = None

    def launch(self) -> Any:
        token = queryables.seal_live(self._rows.so_far)
        answer = queryables.run(self._measurement, token)
        answer = queryables.adopt(answer, Lifecycle(innermost_running()), None)
        self._ask = composition.as_answering(answer)
        return answer

    def update(self, item: errors.Item) -> None:
        self._rows.add(item)

    def update_all(self, items: errors.ItemSequence) -> None:
        for item in items if isinstance(items, Sequence) else items.tolist():
            self._rows.add(item)

    def ask(self, query: errors.Query) -> errors.Answer:
        if self._ask is None:
            self._ask = _failed
            self.launch()
        return self._ask(query)


def _failed(query: errors.Query) -> errors.Answer:
    raise errors.StreamError(
        "the measurement failed at its first query, and is run once for what it cost; to ask "
        "again, launch it on a filter that is on the stream"
    )


def _require_rows(items: Items, domain: dp.Domain) -> None:
    """Raise unless every list of the stream's items is a member of the domain."""
    lists: list[list[Any]] = [[]]
    if isinstance(items, Integers):
        lists += [[items.lower, items.upper]]
    elif isinstance(items, Categories):
        lists += [[0, items.count - 1] if items.names is None else list(items.names)]
    for rows in lists:
        if not _native.is_member(domain, rows):
            raise errors.InvalidTypeError(
                f"measurement must take lists of any length of the stream's items, and {domain} "
                f"does not have {errors.shown(rows)}; chain it with a transformation of such lists"
            )


def _rows_factor(input_metric: dp.Metric, metric: dp.Metric) -> int | None:
    """Return how many rows one event changes; None if both metrics are one, and not of events.

    :raises InvalidTypeError: if the distance of the rows is not known
    """
    if input_metric in (event_presence(), event_change()):
        if metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
            return 2 if input_metric == event_change() else 1
    elif input_metric == metric:
        return None
    raise errors.InvalidTypeError(
        f"measurement is under {metric}, and its distance of the rows of streams under "
        f"{input_metric} is not known; pass one under dp.symmetric_distance() on a stream of "
        "events, or under the metric of the stream"
    )


@composition.constructor
def make_on_stream(
    input_domain: dp.Domain, input_metric: dp.Metric, measurement: dp.Measurement
) -> queryables.ConcurrentMeasurement:
    """Turn a measurement on data into a question on a stream: it runs on the rows so far.

    The rows are the items of the stream, in their order, without None. Send updates to the
    queryable, and queries. What a query does depends on the measurement:

    * A filter or a compositor takes launches, as on data: each runs on the rows that have arrived,
      and is charged as on data. Limits may be opened on it.
    * :func:`.make_sparse_vector` and :func:`.make_above_threshold`, unless ``monotone``, answer
      each query on the rows that have arrived.
    * Any other measurement runs at the first query, on the rows so far, and does not see later
      ones. ``read()`` returns a release. To ask again later, also if it has failed, launch on a
      filter.

    Guarantee: the loss of ``measurement`` at the distance of the rows, against a strongly adaptive
    adversary [HSV25, Definition 3.3]. An event that is present or absent is one row added or
    removed; a changed event is two. A bound on messages is needed only where ``measurement`` needs
    one on data. ``docs/proofs/on-stream.rst`` has the proof.

    For users, chain with :func:`.make_bounded_contributions`: one user is then as many rows as
    each may contribute. Or pass a measurement of your own on lists of pairs under
    ``oc.user_presence()``, the distance by users all of whose pairs are added or removed.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream; each integer or category must be an element of the measurement's
        domain, and a record that is none is left out
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``; or the metric of the
        measurement, if that is no metric of events: you promise that the distance of two streams
        bounds the distance of their rows
    :param measurement: interactive or not, on lists: a vector domain of any size under
        ``dp.symmetric_distance()`` or ``dp.insert_delete_distance()``, or a domain of your own
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for a composition under approximate zCDP

    :example:

    >>> rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*rows, dp.max_divergence())
    >>> budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    >>> stream = oc.c.make_on_stream(oc.integer_stream(0, 100), oc.event_presence(), budget)([])
    >>> stream.update_all([12, None, 70])
    >>> before = stream(rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0))
    >>> stream.update_all([55] * 1000)
    >>> after = stream(rows >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0))
    >>> before < 500 < after, stream.privacy_loss()
    (True, 0.75)
    """
    items, domain = items_of(input_domain), measurement.input_domain
    composition.check_static(domain)
    composition.check_inside("measurement", measurement)
    _require_rows(items, domain)
    factor = _rows_factor(input_metric, measurement.input_metric)
    live = queryables.may_be_live(measurement)
    if live and (known := composition_measure(measurement.output_measure)).exclusive_reason:
        raise errors.UnsupportedMeasureError(
            f"measurement is under {known.name}: what it launches on a stream is not known to "
            f"compose: {known.reason}"
        )
    own = None if isinstance(items, Integers | Categories) else domain
    carrier_type = domain.carrier_type
    once = queryables.READ if not queryables.interactive(measurement) else queryables.NONE

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        stream = queryables.start_of(token)
        question = _Question(measurement, _Rows(carrier_type, own))
        machine = Checked(question, items)
        if not live:
            return hand_out(machine, stream, "OnStream", once)
        root = question.launch()
        if isinstance(root, (dp.OdometerQueryable, queryables.ConcurrentCompositionQueryable)):
            # what is launched runs on rows, and gets no updates: the composition decides
            return launching_handle(root, machine, lambda query: None, stream)
        return hand_out(machine, stream, "OnStream", queryables.queries_of(root))

    return composition.make_measurement(
        (input_domain, input_metric),
        measurement.output_measure,
        spawn,
        lambda d_in: queryables.read_map(
            measurement,
            d_in if factor is None else factor * whole_distance(input_metric, d_in),
        ),
        f"OnStream({measurement})",
        takes_updates=True,
        accuracy=queryables.known_accuracy(measurement),
        bounded=queryables.interactive(measurement) is False,  # it answers once
    )


then_on_stream = _native.to_then(make_on_stream)
