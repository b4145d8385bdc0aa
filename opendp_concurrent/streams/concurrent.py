"""One stream for many mechanisms: compositions, parts, and measurements on the rows so far.

Each update goes to all continual mechanisms of a composition. The root is a composition on the
stream. Every child is launched on the root, and each continual mechanism in it subscribes to the
stream. Each launch is a branch; it ends if it refuses an update.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast
from weakref import ref

import numpy as np

from .. import _opendp as _native
from .. import composition, errors, measures, queryables
from .._checks import Count, function
from .._opendp import dp
from ..accounting import Lifecycle, innermost_running
from ..composition import constructor, make_measurement, with_handles
from .mechanism import IS_OPEN, Checked, ContinualQueryable, hand_out
from .stream import (
    Categories,
    Integers,
    Items,
    event_change,
    event_presence,
    items_of,
    require_events,
    whole_distance,
)

NESTED = (
    "the children of a composition would not receive the updates of this stream; make it by "
    "make_concurrent_composition or make_concurrent_filter, wrap it in make_concurrent_continual "
    "and launch the result"
)
OF_ODOMETER = (
    "the query is an odometer, whose children would not receive the updates of this stream; launch "
    "these on this handle itself, or give them a bound of their own: launch "
    "make_concurrent_continual(make_concurrent_filter(odometer, d_in, d_out))"
)
MISSED = (
    "this child has missed updates: it reached its horizon or its limit of messages, or halted; "
    "launch another"
)


# the branches whose launch, or query, runs in this thread
_WITHIN: ContextVar[tuple[Branch, ...]] = ContextVar("_WITHIN", default=())


class Branch(queryables.Stream):
    """The part of a stream for one launch; it ends if anything in it refuses an update.

    :param limit: largest number of updates and queries; unlimited if None
    :param whole: the stream that it is a part of
    :ivar ended: whether it gets no more updates
    """

    def __init__(self, limit: int | None, whole: Branches | None = None) -> None:
        self.meter = None if limit is None else queryables.Meter(limit)
        super().__init__(many=True, meter=self.meter)
        self.ended, self.whole = False, whole

    def receive(self, message: queryables.DataMessage) -> None:
        """Pass an update on. A branch that refuses it gets no more; the stream continues."""
        with self.lock:
            if self.ended:
                return
            try:
                super().receive(message)
            except BaseException as error:
                self.ended = True
                errors.pass_interrupt(error)  # of a user's machine

    def check(self) -> None:
        """Raise if updates were missed."""
        if self.ended:
            raise errors.StreamError(MISSED)

    def asking(self, answer: errors.Answer) -> Any:
        """Return the answer with its handles wrapped, so that each query to them is counted."""
        return with_handles(answer, self._counted)

    def _counted(self, ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(query: errors.Query) -> errors.Answer:
            self.check()
            if self.meter is None:
                return ask(query)
            self.meter.spend(1)
            return self.asking(self.within(ask, query))

        return counted

    def within(self, ask: Callable[[Any], Any], query: errors.Query) -> Any:
        """Return ``ask(query)``. What subscribes to the whole stream meanwhile joins this part."""
        token = _WITHIN.set((*_WITHIN.get(), self))
        try:
            return ask(query)
        finally:
            _WITHIN.reset(token)


class Branches(queryables.Stream):
    """A stream with branches: a subscriber joins the running launch's branch, or gets its own.

    :param limit: largest number of messages of a branch; unlimited if None
    """

    def __init__(self, limit: int | None) -> None:
        super().__init__(many=True)
        self.limit, self.counts = limit, limit is not None

    def subscribe(self, feed: queryables.Feed) -> queryables.Stream:
        """Send all later updates to ``feed``."""
        branch = next((one for one in reversed(_WITHIN.get()) if one.whole is self), None)
        if branch is None:
            if self.counts:  # a thread of a mechanism, whose messages would not be counted
                raise errors.InvalidTypeError(NESTED)
            branch = Branch(None)
        with self._listing:
            self._feeds = [one for one in self._feeds if one() is not None]
            if all(one() is not branch for one in self._feeds):  # once: threads may subscribe
                self._feeds.append(ref(branch))
        return branch.subscribe(feed)

    @property
    def live(self) -> list[queryables.Feed]:
        """Branches that are still referenced and have not ended."""
        return [one for one in super().live if isinstance(one, Branch) and not one.ended]

    def receive(self, message: queryables.DataMessage) -> None:
        """Pass an update on to all branches."""
        with self.lock:
            stopped: list[BaseException] = []
            for branch in self.live:
                try:
                    branch.receive(message)
                except BaseException as error:  # raised below, after the others have received it
                    stopped.append(error)
            if stopped:
                raise stopped[0]


def require_fed(query: errors.Query) -> None:
    """Raise, before any charge, for a composition of this package."""
    if isinstance(query, dp.Odometer):
        raise errors.InvalidTypeError(OF_ODOMETER)
    if isinstance(query, queryables.ConcurrentMeasurement) and query.composes:
        raise errors.InvalidTypeError(NESTED)


class _FanOut:
    """State machine of a stream: an update goes to all children; a query launches a child."""

    def __init__(self, root: Any, stream: Branches) -> None:
        self._root, self._stream = root, stream

    def update(self, item: errors.Item) -> None:
        self._stream.receive(queryables.Update(item))

    def update_all(self, items: errors.ItemSequence) -> None:
        self._stream.receive(queryables.Updates(items))

    def ask(self, query: errors.Query) -> errors.Answer:
        require_fed(query)
        branch = Branch(self._stream.limit, self._stream)
        answer = branch.within(self._root, query)
        return branch.asking(answer) if branch.subscribed or self._stream.counts else answer


class _Launches(queryables.MachineQueryable):
    """Handle of a stream with many children.

    :ivar root: handle of the odometer, filter or compositor that is charged
    :ivar require: raises for what may not be launched
    """

    root: Any
    require: Callable[[Any], None]

    def admits(self, query: errors.Query) -> bool:
        """Whether a launch of a measurement would be admitted now; runs and charges nothing.

        Another thread or process may launch in between. Only a launch decides.

        :param query: a measurement on the stream's domain, metric and measure
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        self.require(query)
        return bool(self.root.admits(query)) and self._halted() is None

    def describe(self, query: errors.Query, d_in: errors.Distance = None) -> queryables.Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param query: a measurement on the stream's domain, metric and measure
        :param d_in: distance between neighbouring streams; it may be left out where there is a
            bound
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used

        :example:

        >>> space = oc.integer_stream(0, 1), oc.event_presence()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
        >>> stream = oc.c.make_concurrent_continual(budget)([])
        >>> found = stream.describe(oc.m.make_counter(*space, dp.max_divergence(), scale=0.5))
        >>> found.interactive, found.loss, found.admitted
        (True, 2.0, False)
        """
        self.require(query)
        described = self.root.describe
        found: queryables.Description = described(query) if d_in is None else described(query, d_in)
        return replace(found, refusal=self._halted() or found.refusal)

    def _halted(self) -> errors.StreamHaltedError | None:
        """Return why no launch is admitted, whatever it costs."""
        try:
            self(IS_OPEN)
        except errors.StreamHaltedError as error:
            return error.with_traceback(None)
        return None

    def privacy_loss(self, d_in: errors.Distance = None) -> Any:
        """Return the loss so far; ``d_in`` may be left out where there is a bound."""
        return self.root.privacy_loss() if d_in is None else self.root.privacy_loss(d_in)

    def remaining(self) -> Any:
        """Return the budget that remains below the bound."""
        return self.root.remaining()


class StreamQueryable(_Launches, ContinualQueryable):
    """Handle of a stream with many children: takes updates and launches children.

    :ivar root: handle of the odometer, filter or compositor that is charged
    """


class FedStreamQueryable(_Launches, queryables.FedQueryable):
    """Handle of a stream inside another stream, which sends its updates; launches children."""


def launching_handle(
    root: Any,
    machine: Checked,
    require: Callable[[Any], None],
    stream: queryables.Stream | None,
) -> StreamQueryable | FedStreamQueryable:
    """Return a handle that launches on ``root``: fed by ``stream``, or with its own stream."""
    handle: Any = hand_out(machine, stream, "Stream", kinds=(StreamQueryable, FedStreamQueryable))
    handle.root, handle.require = root, require
    return cast(StreamQueryable | FedStreamQueryable, handle)


@constructor
def make_concurrent_continual(
    composition: queryables.ConcurrentMeasurement | queryables.ConcurrentOdometer,
    *,
    max_messages: Count | None = None,
) -> Any:
    """Send the updates of one stream to all continual mechanisms launched on a composition.

    Without this function, each child has its own stream and its handle takes updates. With it, the
    returned handle launches children and takes updates. Each update goes to all children that were
    launched before; their handles take queries only. A child that reaches its horizon gets no more
    updates, and refuses later queries with a ``StreamError``.

    Guarantee: that of ``composition``, against a strongly adaptive adversary, who chooses
    neighbouring streams, launches and queries adaptively. Pure children need no bound on messages
    [HSV25, Corollary 7.2]; others need one under (ε, δ)-DP, Gaussian DP and f-DP [HSV25, Corollary
    6.3, 6.4]: ``max_messages``, or :func:`.make_bounded_interactive`. Rényi DP, zCDP and tCDP need
    none [LW22, Theorem 2 and Corollary 1]. Filters are those of [HSTVVXZ23]; [HSV25, version 4]
    states filters and Rényi DP for continual mechanisms in its abstract. A child's stream is the
    end of the whole stream. Under this package's metrics, ends of neighbouring streams are
    neighbours; for a metric of your own, you promise this. Transform first: ``transformation >>
    make_concurrent_continual(...)``.

    Required features: `contrib`, `honest-but-curious`

    :param composition: a :func:`.make_concurrent_composition`, :func:`.make_concurrent_filter` or
        :func:`.make_concurrent_odometer` on a stream
    :param max_messages: largest number of updates and queries of each child; unlimited if left out
    :return: a measurement that spawns a :class:`.StreamQueryable`; for an odometer, a function from
        the empty stream to a :class:`.StreamQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: under approximate zCDP, whose theorem is for static data

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    >>> stream = oc.c.make_concurrent_continual(budget)([])
    >>> forever = stream(oc.m.make_counter(*space, dp.max_divergence(), scale=2.0))
    >>> stream.update_all([1, 0, 1])
    >>> recent = stream(oc.m.make_window_counter(*space, dp.max_divergence(), scale=4.0, window=7))
    >>> stream.update(1)
    >>> answers = forever.read(), recent.read()
    >>> stream.privacy_loss()
    0.75
    """
    if not isinstance(composition, queryables.ConcurrentOdometer) and not (
        isinstance(composition, queryables.ConcurrentMeasurement) and composition.composes
    ):
        raise errors.InvalidTypeError(
            "composition must be made by make_concurrent_composition, make_concurrent_filter or "
            f"make_concurrent_odometer, found {type(composition).__name__}"
        )
    odometer = (
        composition
        if isinstance(composition, queryables.ConcurrentOdometer)
        else composition.odometer
    )
    if odometer is not None and odometer.transformation is not None:
        raise errors.InvalidTypeError(
            "composition must not be chained: wrap it first and then chain it, so that its "
            "children receive the transformed items: transformation >> "
            "make_concurrent_continual(...)"
        )
    measure = measures.composition_measure(composition.output_measure)
    if measure.exclusive_reason:
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) is not supported: {measure.reason}"
        )
    if max_messages is not None:
        max_messages = queryables.MESSAGES(max_messages=max_messages)
    items = items_of(composition.input_domain)
    carrier_type = composition.input_domain.carrier_type
    if isinstance(composition, queryables.ConcurrentOdometer):

        def open_odometer(data: errors.Data) -> queryables.MachineQueryable:
            queryables.start_of(queryables.seal(_native.to_pointer(data, carrier_type)))
            stream = Branches(max_messages)
            root = composition(stream)
            return launching_handle(root, Checked(_FanOut(root, stream), items), require_fed, None)

        return open_odometer
    spawn_root = composition.inside.spawn

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        outer, stream = queryables.start_of(token), Branches(max_messages)
        root = spawn_root(stream.token(carrier_type))
        return launching_handle(root, Checked(_FanOut(root, stream), items), require_fed, outer)

    return make_measurement(
        (composition.input_domain, composition.input_metric),
        composition.output_measure,
        spawn,
        composition.map,
        f"ConcurrentContinual({composition})",
        takes_updates=True,
    )


# Parallel composition on a stream: each item goes to one part, which has its own mechanism.
#
# Under pure DP the loss is the maximum over the parts that an event touches: all other factors of
# the transcript's likelihood ratio are 1. Under measures with δ this is false. An adversary may
# wait until one of many mechanisms has failed, and then send the unequal update to it, so δ grows
# with the number of mechanisms [HSV25, version 4]. So other measures than pure DP are refused.


class _Parts:
    """State machine of the parts: an item goes to its part, and None to all others."""

    def __init__(
        self,
        key: Callable[[Any], Hashable],
        branches: dict[Hashable, Branch],
        answers: dict[Hashable, Any],
    ) -> None:
        self._key, self._branches, self._answers = key, branches, answers

    def _part(self, item: errors.Item) -> Branch | None:
        """Return the part of an item; None if it has no part, or if its key raises."""
        if item is None:
            return None
        try:
            return self._branches.get(self._key(item))
        except BaseException as error:  # it would reveal this item; so it is in no part
            errors.pass_interrupt(error)
            return None

    def update(self, item: errors.Item) -> None:
        self.update_all([item])

    def update_all(self, items: errors.ItemSequence) -> None:
        plain = items.tolist() if isinstance(items, np.ndarray) else items
        parts = list(map(self._part, plain))
        for branch in self._branches.values():
            branch.receive(
                queryables.Updates(
                    [
                        item if part is branch else None
                        for item, part in zip(plain, parts, strict=True)
                    ]
                )
            )

    def ask(self, query: errors.Query) -> errors.Answer:
        try:
            return self._branches[query].asking(self._answers[query])
        except Exception:  # no such part, or not hashable
            raise errors.InvalidValueError(
                f"the part must be one of {', '.join(map(repr, self._answers))}"
            ) from None


@constructor(key=function)
def make_parallel_continual(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    key: Callable[[Any], Hashable],
    measurements: Mapping[Hashable, dp.Measurement],
) -> queryables.ConcurrentMeasurement:
    """Split a stream into parts with one continual mechanism each; for pure DP only.

    ``queryable[part]``, or ``queryable(part)``, returns the handle of a part, which takes queries.
    Send updates to the queryable. Each item goes to the part that ``key`` returns; the other parts
    get None at that step. An item whose key is not in ``measurements`` goes to no part.

    Guarantee: the maximum over the parts for one added or removed event. A changed event may leave
    one part and enter another, so it counts as two. Under pure DP this holds against adversaries
    who choose updates adaptively; for measures with a δ it is false. Both are in the abstract of
    [HSV25, version 4], and proven in ``docs/proofs/concurrent-continual.rst``. For Rényi
    divergences it is false, too. On data that do not change, use
    :func:`.make_parallel_composition`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``
    :param key: function from an item to its part; the caller promises that it depends on the item
        only. An item for which it raises, or returns an unhashable value, is in no part
    :param measurements: mapping from each part to a continual measurement on this stream
    :return: a measurement on the empty stream
    :raises SpaceMismatchError: if a measurement is not on this stream
    :raises UnsupportedMeasureError: for other measures than pure DP
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = oc.integer_stream(0, 9), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=36.0)
    >>> parts = oc.c.make_parallel_continual(
    ...     *space, lambda item: item % 2, {0: counter, 1: counter}
    ... )
    >>> parts.map(1)
    0.25
    >>> queryable = parts([])
    >>> queryable.update_all([1, 2, 3])
    >>> even, odd = queryable[0].read(), queryable[1].read()
    """
    items = items_of(input_domain)
    factor = 2 if require_events(input_metric) else 1
    if not isinstance(measurements, Mapping) or not measurements:
        raise errors.InvalidTypeError(
            "measurements must be a nonempty mapping from a part's key to one"
        )
    parts = dict(measurements)
    for part, one in parts.items():
        name = f"measurements[{part!r}]"
        composition.check_inside(
            name, composition.check_measurement_on(name, one, input_domain, input_metric)
        )
        known = measures.composition_measure(one.output_measure)
        if not known.adaptive_updates:
            raise errors.UnsupportedMeasureError(
                f"{name} is under {known.name}: with adaptive updates the loss of "
                "parts is the maximum for pure DP only [HSV25, version 4]; compose them instead"
            )
    carrier_type = input_domain.carrier_type
    measure = measures.composition_measure(next(iter(parts.values())).output_measure)
    loss = composition.ParallelLoss(measure, parts)

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        stream, branches, answers = queryables.start_of(token), {}, {}
        for part, one in parts.items():
            branches[part] = Branch(None)
            answer = queryables.run(one, branches[part].token(carrier_type))
            if not branches[part].subscribed:
                raise errors.InvalidTypeError(f"measurements[{part!r}] {queryables.NOT_CONTINUAL}")
            answers[part] = queryables.adopt(answer, Lifecycle(innermost_running()), None)
        machine = Checked(_Parts(key, branches, answers), items)
        return hand_out(machine, stream, "Parallel", queryables.PARTS)

    return make_measurement(
        (input_domain, input_metric),
        measure.opendp(),
        spawn,
        lambda d_in: loss.at(factor * whole_distance(input_metric, d_in)),
        f"ParallelContinual({len(measurements)} parts)",
        takes_updates=True,
    )


then_parallel_continual = _native.to_then(make_parallel_continual)


# Any measurement as a question on a stream: it runs on the rows that have arrived.
#
# A launch runs on the rows so far, which are fixed when it begins. So it costs what it costs on
# data, at the distance of the rows of two neighbouring streams. Rows that arrive later reach only
# the launches of a composition, each on the rows of its time, and the queries of a sparse vector.
# For other interactive mechanisms this is false: one that repeats an exact difference from its
# first answer is private on data, but shows each row that arrives (``docs/proofs/on-stream.rst``).


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


@constructor
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
    if (
        live
        and (known := measures.composition_measure(measurement.output_measure)).exclusive_reason
    ):
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

    return make_measurement(
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
