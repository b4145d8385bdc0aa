"""Streams: messages that carry data, who receives them, and the handles of mechanisms on streams.

Updates are no queries. They go to the stream directly, and every subscriber gets the same copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import ref

import numpy as np

from .. import _checks as checks
from .. import _opendp as _native
from .. import accounting, errors
from .._opendp import dp
from .child import MachineQueryable
from .data import Sealed, check_process, seal, unseal

MOST_ITEMS = 10**8  # at once
UPDATE_REFUSED = (
    "an update is data, and this handle takes queries only; a continual mechanism launched "
    "on a parent gets its updates from the parent's stream: update the parent"
)


class DataMessage:
    """A message that carries data. It is not a query."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Update(DataMessage):
    """A message that adds one item, or none, to the stream.

    :ivar item: an item of the stream, or None
    :ivar step: number of this step, from 1; the update is refused unless it is the next step

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.handles.Update(1))  # as queryable.update(1)
    """

    item: errors.Item
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Updates(DataMessage):
    """A message that adds items to the stream, one per step.

    :ivar items: a sequence of items or None; for integers and categories also a NumPy array

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.handles.Updates([1, None, 0]))  # as queryable.update_all([1, None, 0])
    """

    items: Any


@dataclass(frozen=True, slots=True)
class Room(DataMessage):
    """A message before updates. It is refused unless this many steps are left.

    :ivar steps: number of steps of the updates that follow
    """

    steps: int


@dataclass(frozen=True, slots=True)
class Save(DataMessage):
    """A message that returns the state, with data and noise, to the owner of the data."""


@dataclass(frozen=True, slots=True)
class Restore(DataMessage):
    """A message that sets the state of a new mechanism.

    :ivar record: what the answer to :class:`Save` was
    """

    record: Any


def check_items(items: errors.Argument) -> Any:
    """Return a copy of ``items``, which nobody can change after the check; masked items are None.

    :raises InvalidTypeError: if they are not a sequence
    :raises InvalidValueError: if there are too many
    """
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, np.ndarray)):
        raise errors.InvalidTypeError(f"items must be a sequence, found {type(items).__name__}")
    if isinstance(items, np.ndarray) and not items.ndim:
        raise errors.InvalidTypeError("items must be a sequence, found an array of one number")
    try:
        few = len(items) <= MOST_ITEMS
    except Exception:  # the length cannot be determined
        few = False
    if not few:
        raise errors.InvalidValueError(
            f"items must have at most {MOST_ITEMS:,} elements; send them in parts"
        )
    if isinstance(items, np.ma.MaskedArray):
        return items.tolist()
    return checks.array(items) if isinstance(items, np.ndarray) else list(items)


def check_step(step: Any, steps: int) -> None:
    """Raise unless ``step`` is the one after ``steps``, or None."""
    if step is None:
        return
    step = checks.integer(step=step)
    if step != steps + 1:
        raise errors.StreamError(
            f"the update's step ({errors.shown(step)}) must be {steps + 1}: "
            + (
                "the steps before it have not been sent"
                if step > steps
                else "that step has been sent"
            )
        )


def steps_of(message: DataMessage) -> int:
    """Number of steps of a message whose items were copied."""
    if isinstance(message, Room):
        return message.steps
    return len(message.items) if isinstance(message, Updates) else 1


# A stream of data: only mechanisms that are launched on it receive its updates.
#
# Updates are data. So they do not pass from handle to handle as queries do, where the analyst may
# put something in between. A :class:`Stream` replaces the dataset. Each continual mechanism that
# runs on it subscribes to it, however the mechanism is wrapped. A wrapper passes the stream on as
# any measurement passes a dataset on. It wraps queries only, never updates. There is no other way
# to subscribe, so what a postprocessor returns receives no data.
#
# * Subscribers are held weakly: a child exists as long as somebody holds its handle.
# * The sender of an update is told when it is refused, and why.
# * A :class:`Meter` bounds updates and queries together. It counts steps, which are public.

NOBODY = (
    "no continual mechanism of this package was launched on the stream, so nothing takes updates"
)
NO_PART = (
    "the query takes updates, and would be launched on a part of static data: if an "
    "adversary chooses the updates, the loss is not the maximum over the parts [HSV25]; "
    "use make_parallel_continual. This was known only when the query ran, so its charge stays"
)
ONE_ONLY = (
    "one stream feeds one continual mechanism here, except under pure DP: what is no composition "
    "of this package asks the others for no bound on their messages [HSV25, Definition 6.1]; use "
    "make_concurrent_continual or make_indexed_composition"
)


class Feed(Protocol):
    """What takes updates."""

    def receive(self, message: DataMessage) -> Any:
        """Take an update, or say whether there is room for some."""


class Meter:
    """Count how many messages are left, updates and queries together.

    :param limit: largest number of messages
    """

    __slots__ = ("_left", "_limit", "lock")

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self.lock = _native.Lock()

    def room(self, messages: int) -> None:
        """Raise unless at least ``messages`` are left."""
        if self._left == 0 and messages:
            raise errors.MessageLimitError(self._limit)
        if self._left < messages:
            raise errors.StreamError(
                f"{messages} updates would exceed the limit ({self._limit} messages), of "
                f"which {self._left} are left; no update was taken; build it with a larger "
                "max_messages"
            )

    def spend(self, messages: int) -> None:
        """Count messages that are about to be passed on, or raise."""
        with self.lock:
            self.room(messages)
            self._left -= messages


class Stream:
    """An empty dataset, and the subscribers that receive what is added to it.

    :param many: whether it may feed several mechanisms
    :param meter: the meter that counts updates
    :param upstream: the stream that sends its updates to this one, if there is one
    """

    def __init__(
        self, *, many: bool, meter: Meter | None = None, upstream: Stream | None = None
    ) -> None:
        self._many, self._meter, self._upstream = many, meter, upstream
        self._feeds: list[ref[Any]] = []
        # a subscriber may hold the lock of a mechanism that waits for an update, so it must not
        # wait for `lock`; it waits for this lock, under which no other lock is taken
        self._listing = _native.Lock()
        self._steps, self.lock, self.subscribed = 0, _native.Lock(), False
        # whether the messages of each mechanism that is launched on it are counted
        self.counts = meter is not None

    # --- as a dataset, which is empty -----------------------------------------------------

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, (list, Stream)) and len(other) == 0)

    __hash__ = object.__hash__

    def __reduce__(self) -> Any:
        raise TypeError("a stream of sensitive data cannot be pickled or copied")

    def __repr__(self) -> str:
        return "[]"

    def token(self, carrier_type: Any) -> Sealed:
        """Seal this dataset, to run a measurement on."""
        return seal(_native.to_pointer(self, carrier_type))

    # --- as a source of updates ------------------------------------------------------------

    def subscribe(self, feed: Feed) -> Stream:
        """Send ``feed`` all updates from now on, as long as somebody holds it.

        :return: the stream that ``feed`` must hold
        """
        with self._listing:
            first, refused = not self.subscribed, self.subscribed and not self._many
            if not refused:
                self.subscribed = True
                self._feeds = [one for one in self._feeds if one() is not None]
                self._feeds.append(ref(feed))
        if refused:
            raise errors.InvalidTypeError(ONE_ONLY)
        if first and self._upstream is not None:
            try:
                self._upstream = self._upstream.subscribe(self)
            except BaseException:  # no subscriber gets updates: the next one must try again
                with self._listing:
                    self.subscribed, self._feeds = False, []
                raise
        return self

    @property
    def live(self) -> list[Feed]:
        """The subscribers that still exist."""
        with self._listing:
            feeds = [feed() for feed in self._feeds]
            if None in feeds:
                self._feeds = [one for one in self._feeds if one() is not None]
        return [feed for feed in feeds if feed is not None]

    def receive(self, message: DataMessage) -> None:
        """Pass an update on to all subscribers, or raise. If steps run out, nothing changes."""
        if isinstance(message, Updates):
            message = Updates(check_items(message.items))  # all feeds get the same
        steps = steps_of(message)
        with self.lock:
            if isinstance(message, Update) and message.step is not None:
                check_step(message.step, self._steps)
                message = Update(message.item)
            if not self.subscribed:
                raise errors.InvalidTypeError(NOBODY)
            feeds = self.live
            if self._meter is not None:
                self._meter.room(steps)
            if isinstance(message, Room):
                for feed in feeds:
                    feed.receive(message)
                return
            if len(feeds) > 1:
                for feed in feeds:
                    feed.receive(Room(steps))
            if self._meter is not None:
                self._meter.spend(steps)
            self._steps += steps
            failures: list[BaseException] = []
            for feed in feeds:
                try:
                    feed.receive(message)
                except BaseException as error:  # an interrupt of a user's machine, too
                    failures.append(error)  # raised below, after the others have received it
            if failures:
                if len(feeds) == 1 and isinstance(failures[0], errors.StreamError):
                    self._steps -= steps  # the only subscriber has refused it
                for failure in failures:
                    errors.pass_interrupt(failure)
                raise failures[0]

    def check(self) -> None:
        """Raise if a subscriber has missed updates."""


def start_of(token: Sealed) -> Stream | None:
    """Return the stream that a continual mechanism is launched on; None if it needs its own.

    :raises InvalidTypeError: for any launch below a part of static data
    :raises InvalidValueError: if the data are not empty. It is raised for the data's owner only:
        below a launch the error would depend on data without a charge
    """
    data = _native.to_python(unseal(token))
    if isinstance(data, Stream):
        return data
    payer = accounting.innermost_running()
    if payer is not None and payer.static:
        raise errors.InvalidTypeError(NO_PART)
    below = payer is not None or _native.inside_native_call()
    if not below and (not isinstance(data, Sized) or len(data)):
        raise errors.InvalidValueError(
            "a stream starts empty: pass [], and send items with update_all"
        )
    return None


def counts_messages(token: Sealed) -> bool:
    """Whether data are a stream that bounds the messages of each mechanism launched on it."""
    data = _native.to_python(unseal(token))
    return isinstance(data, Stream) and data.counts


# Which datasets are streams, what one stream may feed, and how many messages a session has: all
# that a mechanism on static data knows of streams.

NOT_CONTINUAL = (
    "must be a continual mechanism: on a stream, what is not one would run once, on the empty "
    "stream, before any item arrives; use make_counter, make_alarm or make_continual"
)
MESSAGES = checks.at_most(2**63 - 1, "no session has more")


class StreamItems:
    """What the items of a stream are: the descriptor of its domain."""


def is_stream(domain: dp.Domain) -> bool:
    """Whether the datasets of a domain are streams."""
    return isinstance(_native.descriptor(domain), StreamItems)


def same_domain(one: dp.Domain, other: dp.Domain) -> bool:
    """Whether two domains are equal. OpenDP compares names; a stream is what its items are."""
    items, others = _native.descriptor(one), _native.descriptor(other)
    if isinstance(items, StreamItems) or isinstance(others, StreamItems):
        return bool(one == other and items == others)
    return bool(one == other)


def feeds_many(measure: dp.Measure) -> bool:
    """Whether one stream may feed several mechanisms without a bound on messages: pure DP only."""
    return bool(measure == dp.max_divergence())


# Handles of mechanisms on streams: who may send data, and who may only query.
#
# A handle with a stream of its own takes updates. One that was launched on a parent's stream takes
# queries only, and so does everything that is wrapped around it.


class QueryOnlyQueryable(MachineQueryable):
    """A handle that takes queries only.

    :ivar stream: the stream inside; this reference keeps it alive
    :ivar holders: handles through which its updates come; these references keep them alive
    """

    stream: Stream | None = None
    holders: tuple[MachineQueryable, ...] = ()

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Query the mechanism. An update is refused."""
        if isinstance(query, DataMessage):
            raise errors.InvalidTypeError(UPDATE_REFUSED)
        return super().__call__(query)


class FedQueryable(QueryOnlyQueryable):
    """A handle of a continual mechanism that receives its updates from its parent's stream."""

    def __init__(self, machine: Callable[[Any], Any], description: str, stream: Stream) -> None:
        super().__init__(machine, description)
        self._stream = stream.subscribe(self)

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Query the mechanism. An update is refused."""
        self._stream.check()
        answer = super().__call__(query)
        if isinstance(answer, QueryOnlyQueryable) and all(
            one is not self for one in answer.holders
        ):
            answer.holders += (self,)  # its updates come through here
        return answer

    def receive(self, message: DataMessage) -> Any:
        """Take an update from the stream."""
        return MachineQueryable.__call__(self, message)


class Updatable:
    """The methods of a handle with a stream of its own. It sends itself what is added."""

    def update(self, item: errors.Item, step: int | None = None) -> None:
        """Add one item, or none (None), to the stream.

        :param step: number of this step, from 1, so that late and repeated steps are refused
        :raises StreamError: if it is not the next step, or beyond the horizon; nothing changes
        :raises StreamHaltedError: if this or an earlier update was not an item of the stream
        """
        self._send(Update(item, step))

    def update_all(self, items: errors.ItemSequence) -> None:
        """Add items to the stream, one per step.

        :param items: a sequence of items or None, or a NumPy array of integers
        """
        self._send(Updates(items))

    def _send(self: Any, message: DataMessage) -> None:
        self(message)


class OwnStreamQueryable(Updatable, QueryOnlyQueryable):
    """A handle of something wrapped around continual mechanisms, with a stream of its own."""

    def __init__(self, machine: Callable[[Any], Any], description: str, stream: Stream) -> None:
        super().__init__(machine, description)
        self._stream = stream

    @property
    def takes_updates(self) -> bool:
        """Whether a continual mechanism is inside."""
        return self._stream.subscribed

    def __call__(self, query: errors.Query) -> errors.Answer:
        """Query the mechanism, or add data, which go directly to the stream."""
        if isinstance(query, DataMessage):
            return self._send(query)
        return super().__call__(query)

    def _send(self, message: DataMessage) -> None:
        check_process(self._machine)  # before a lock, which a thread may have held at a fork
        self._stream.receive(message)


def query_side(answer: errors.Answer) -> Callable[[Any], Any]:
    """Return a function that queries a queryable and refuses to send it data."""

    def ask(message: errors.Query) -> errors.Answer:
        if isinstance(message, DataMessage):
            raise errors.InvalidTypeError(UPDATE_REFUSED)
        return answer(message)

    return ask


# How the records of a stream's state are read: a record is of a stranger until it is checked.

MOST = 2**62  # steps, contributions
NOT_SAVED = "record must be what to_record returned"


def canonical(record: errors.Json) -> str:
    """Return the JSON text of a record; there is one."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def require(holds: bool) -> None:
    """Raise unless a condition on a record holds."""
    if not holds:
        raise errors.InvalidValueError(NOT_SAVED)


def bounded_integer(value: errors.Json, least: int = 0, most: int = MOST) -> int:
    """Return an integer between two bounds, or raise."""
    require(type(value) is int and least <= value <= most)
    number: int = value
    return number


def fields(record: errors.Json, *names: str) -> list[Any]:
    """Return the values of a record that has these names and no other, or raise."""
    require(type(record) is dict and record.keys() == set(names))
    return [record[name] for name in names]


def rows(record: errors.Json, least: int = 0, most: int = MOST) -> list[Any]:
    """Return a list whose length is between two bounds, or raise."""
    require(type(record) is list and least <= len(record) <= most)
    found: list[Any] = record
    return found


def restore_exactly(part: Any, record: errors.Json, *more: Any) -> None:
    """Restore a part of the state, or raise unless it then saves the same record.

    So a record has no value that is not used, lacks none, and has each in its own type: noise that
    is missing would be drawn.
    """
    part.restore(record, *more)
    require(canonical(part.to_record()) == canonical(record))
