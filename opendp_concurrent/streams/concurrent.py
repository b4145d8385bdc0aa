"""One stream for many continual mechanisms: each update goes to all of them.

The root is a composition on the stream. Every child is launched on the root, and each continual
mechanism in it subscribes to the stream. Each launch is a branch; it ends if it refuses an update.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, cast
from weakref import ref

from opendp.mod import Odometer

from .. import _opendp as _native
from .. import errors, measures, queryables
from .._checks import Count
from ..composition import constructor, make_measurement, with_handles
from .mechanism import IS_OPEN, Checked, ContinualQueryable, hand_out
from .stream import items_of

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
    if isinstance(query, Odometer):
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
        admitted: bool = self.root.admits(query)
        return admitted and self._halted() is None

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
