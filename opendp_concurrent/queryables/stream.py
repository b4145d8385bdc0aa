"""A dataset that is still to come: what is launched on it gets its updates, and nobody else.

Updates are data. So they do not take the way of questions, from handle to handle, past what the
analyst put in between. A :class:`Stream` stands in the place of the dataset, and goes the way of a
dataset: each continual mechanism that is run on it subscribes to it, however it is wrapped. A
wrapper passes the dataset on as any measurement does, wraps the question side, and has no part in
updates. There is no other way to subscribe, so what a postprocessor returns gets no data either.

* Subscribers are held weakly: a child is there as long as somebody holds its handle.
* What refuses an update, and why, is for the one who sends it.
* A :class:`Meter` bounds updates and questions together. It counts steps, which are public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Any, Protocol
from weakref import ref

import numpy as np
from opendp.measures import max_divergence
from opendp.mod import Domain, Measure

from .. import owned
from ..accounts.lifecycle import innermost_running
from ..checks import at_most, integer, shown
from ..errors import InvalidTypeError, InvalidValueError, MessageLimitError, StreamError
from ..native import opendp as _native
from .data import Sealed, check_process, seal, unseal
from .machine import MachineQueryable

MOST_ITEMS = 10**8  # at once
MESSAGES = at_most(2**63 - 1, "more are never sent")
NO_QUESTION = (
    "an update is data, and this handle takes questions; if it is of a continual mechanism, it "
    "gets its updates from the stream of its parent: update that"
)
NOBODY = (
    "nothing here takes updates: no continual mechanism of this package was launched on the stream"
)
NO_PART = (
    "the query takes updates, and would be launched below a part of static data: with updates that "
    "an adversary chooses, the loss is not the maximum over the parts [HSV25]; use "
    "make_parallel_continual"
)
ONE_ONLY = (
    "one stream feeds one continual mechanism here, except under pure DP: the theorems for other "
    "measures need bounded messages [HSV25, Definition 6.1]; use make_concurrent_continual with "
    "max_messages"
)


class DataMessage:
    """What is data, and no question."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Update(DataMessage):
    """A message: one item arrives, or nothing.

    :ivar item: an item of the stream, or None
    :ivar step: which step this is, from 1; refused unless it is the next

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.m.Update(1))  # as queryable.update(1)
    """

    item: Any
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Updates(DataMessage):
    """A message: items arrive, one a step.

    :ivar items: a sequence of items or None; for integers and categories also a NumPy array

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.m.Updates([1, None, 0]))  # as queryable.update_all([1, None, 0])
    """

    items: Any


@dataclass(frozen=True, slots=True)
class Room(DataMessage):
    """A message ahead of updates: are there so many steps left? Refused if not.

    :ivar steps: how many are to come
    """

    steps: int


class StreamItems:
    """What the items of a stream are: the descriptor of its domain."""


class Feed(Protocol):
    """What takes updates."""

    def receive(self, message: DataMessage) -> Any:
        """Take an update, or say whether there is room for some."""


def is_stream(domain: Domain) -> bool:
    """Whether the datasets of a domain are streams."""
    return isinstance(getattr(domain, "descriptor", None), StreamItems)


def check_static(input_domain: Domain) -> None:
    """Raise for a stream: what comes later would never reach a mechanism on data as they are."""
    if is_stream(input_domain):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) is a stream, whose items come later and would never "
            "reach this mechanism; use a continual one, such as make_counter or make_alarm"
        )


def feeds_many(measure: Measure) -> bool:
    """Whether one stream may feed several mechanisms without a bound on messages: pure DP only."""
    return bool(measure == max_divergence())


def check_items(items: Any) -> Any:
    """Return a copy of ``items``, which nobody changes once it is checked; what is masked is None.

    :raises InvalidTypeError: if they are no sequence
    :raises InvalidValueError: if they are too many
    """
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, np.ndarray)):
        raise InvalidTypeError(f"items must be a sequence, found {type(items).__name__}")
    if isinstance(items, np.ndarray) and not items.ndim:
        raise InvalidTypeError("items must be a sequence, found an array of one number")
    try:
        few = len(items) <= MOST_ITEMS
    except Exception:  # no length that can be told
        few = False
    if not few:
        raise InvalidValueError(
            f"items must have at most {MOST_ITEMS:,} elements; send them in parts"
        )
    if isinstance(items, np.ma.MaskedArray):
        return items.tolist()
    return owned.array(items) if isinstance(items, np.ndarray) else list(items)


def check_step(step: Any, steps: int) -> None:
    """Raise unless ``step`` is the one after ``steps``, or not said."""
    if step is None:
        return
    step = integer(step=step)
    if step != steps + 1:
        raise StreamError(
            f"the update's step ({shown(step)}) must be {steps + 1}: "
            + ("later ones have not come" if step > steps else "that one has come")
        )


def steps_of(message: DataMessage) -> int:
    """How many steps a message is about, whose items were copied."""
    if isinstance(message, Room):
        return message.steps
    return len(message.items) if isinstance(message, Updates) else 1


class Meter:
    """How many messages are left, updates and questions together.

    :param limit: how many there may be
    """

    __slots__ = ("_left", "_limit", "lock", "name")

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self.lock = RLock()
        self.name = f"Meter[{limit} messages]"

    def room(self, messages: int) -> None:
        """Raise unless so many are left."""
        if self._left == 0 and messages:
            raise MessageLimitError(self._limit)
        if self._left < messages:
            raise StreamError(
                f"{messages} updates would go beyond the limit ({self._limit} messages), of which "
                f"{self._left} are left; none was taken; build it with a larger max_messages"
            )

    def spend(self, messages: int) -> None:
        """Count messages that are about to be passed on, or raise."""
        with self.lock:
            self.room(messages)
            self._left -= messages

    def to_record(self) -> Any:
        """How many are left."""
        return self._left

    def restore(self, record: Any) -> None:
        """Go on from a record."""
        if not (type(record) is int and 0 <= record <= self._limit):
            raise ValueError
        self._left = record

    def stop(self) -> None:
        """Nothing: the mechanism behind it stops."""

    def watch(self, lineage: Any) -> None:
        """Nothing: what is counted reaches the mechanism behind it."""


class Stream:
    """The empty dataset, and who gets what is added to it.

    :param many: whether it may feed several mechanisms
    :param meter: what updates are counted by
    :param upstream: the stream that this one gets its updates from, if it is inside another
    """

    __slots__ = (
        "__weakref__",
        "_feeds",
        "_listing",
        "_many",
        "_meter",
        "_steps",
        "_upstream",
        "lock",
        "subscribed",
    )
    name = "Stream"

    def __init__(
        self, *, many: bool, meter: Meter | None = None, upstream: Stream | None = None
    ) -> None:
        self._many, self._meter, self._upstream = many, meter, upstream
        self._feeds: list[ref[Any]] = []
        # whoever subscribes may hold the lock of a mechanism that waits for an update, so it does
        # not wait for `lock`, but for this one, under which nothing else is waited for
        self._listing = Lock()
        self._steps, self.lock, self.subscribed = 0, RLock(), False

    # --- as a dataset: there is nothing yet -----------------------------------------------

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

    # --- as what feeds mechanisms ----------------------------------------------------------

    def subscribe(self, feed: Feed) -> Stream:
        """Let ``feed`` get what comes from now on, as long as somebody holds it.

        :return: the stream that ``feed`` has to hold
        """
        with self._listing:
            first, refused = not self.subscribed, self.subscribed and not self._many
            if not refused:
                self.subscribed = True
                self._feeds = [one for one in self._feeds if one() is not None]
                self._feeds.append(ref(feed))
        if refused:
            raise InvalidTypeError(ONE_ONLY)
        if first and self._upstream is not None:
            try:
                self._upstream = self._upstream.subscribe(self)
            except BaseException:  # nobody here is fed: the next one must ask again
                with self._listing:
                    self.subscribed, self._feeds = False, []
                raise
        return self

    @property
    def live(self) -> list[Feed]:
        """Those that get updates."""
        with self._listing:
            feeds = [feed() for feed in self._feeds]
            if None in feeds:
                self._feeds = [one for one in self._feeds if one() is not None]
        return [feed for feed in feeds if feed is not None]

    def receive(self, message: DataMessage) -> None:
        """Pass an update on to all, or raise; a refusal for want of room changes nothing."""
        if isinstance(message, Updates):
            message = Updates(check_items(message.items))  # all feeds get the same
        steps = steps_of(message)
        with self.lock:
            if isinstance(message, Update) and message.step is not None:
                check_step(message.step, self._steps)
                message = Update(message.item)
            if not self.subscribed:
                raise InvalidTypeError(NOBODY)
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
            self._steps += steps  # before: what was cut off by an interrupt does not come again
            failures = []
            for feed in feeds:
                try:
                    feed.receive(message)
                except Exception as error:
                    failures.append(error)  # raised below: the others get it all the same
            if failures:
                if len(feeds) == 1 and isinstance(failures[0], StreamError):
                    self._steps -= steps  # the only one has refused it
                raise failures[0]

    def check(self) -> None:
        """Raise if what subscribed here has missed updates."""

    def to_record(self) -> Any:
        """How many steps have come."""
        return self._steps

    def restore(self, record: Any) -> None:
        """Go on from a record."""
        self._steps = int(record)

    def stop(self) -> None:
        """Nothing: the mechanism behind it stops."""

    def watch(self, lineage: Any) -> None:
        """Nothing: updates reach the mechanism behind it."""


def stream_of(token: Sealed) -> Stream | None:
    """Return the stream that sealed data are; None if they are not one that is fed."""
    data = _native.to_python(unseal(token))
    return data if isinstance(data, Stream) else None


def start_of(token: Sealed) -> Stream | None:
    """Return the stream that a continual mechanism is launched on; None for one of its own.

    :raises InvalidTypeError: below a part of static data, whoever launched it there
    :raises InvalidValueError: to the owner of the data, if there is anything in it. Below a launch
        this would depend on data that nobody has paid for
    """
    data = _native.to_python(unseal(token))
    if isinstance(data, Stream):
        return data
    payer = innermost_running()
    if payer is not None and payer.static:
        raise InvalidTypeError(NO_PART)
    below = payer is not None or _native.inside_native_call()
    if not below and (not isinstance(data, Sized) or len(data)):
        raise InvalidValueError("a stream starts empty: pass [], and let items come by update_all")
    return None


# --- handles ---------------------------------------------------------------------------------


class QuestionQueryable(MachineQueryable):
    """A handle that takes questions only.

    :ivar stream: the stream inside, held for those that hold it weakly
    :ivar holders: handles that it needs to be fed, held for those that hold them weakly
    """

    stream: Stream | None = None
    holders: tuple[MachineQueryable, ...] = ()

    def __call__(self, query: Any) -> Any:
        """Ask the mechanism; an update is refused."""
        if isinstance(query, DataMessage):
            raise InvalidTypeError(NO_QUESTION)
        return super().__call__(query)


class FedQueryable(QuestionQueryable):
    """A handle of a continual mechanism that gets its updates from what it was launched on."""

    def __init__(self, machine: Callable[[Any], Any], description: str, stream: Stream) -> None:
        super().__init__(machine, description)
        self._stream = stream.subscribe(self)

    def __call__(self, query: Any) -> Any:
        """Ask the mechanism; an update is refused."""
        self._stream.check()
        answer = super().__call__(query)
        if isinstance(answer, QuestionQueryable) and all(one is not self for one in answer.holders):
            answer.holders += (self,)  # its updates come through here
        return answer

    def receive(self, message: DataMessage) -> Any:
        """Take an update from the stream."""
        return MachineQueryable.__call__(self, message)


class Updatable:
    """What a handle with a stream of its own can do besides."""

    def update(self, item: Any, step: int | None = None) -> None:
        """Let an item arrive, or nothing (None).

        :param step: which step this is, from 1, to refuse late and repeated ones
        :raises StreamError: it is not the next step, or the horizon has been reached; unchanged
        :raises StreamHaltedError: it is not an item of the stream, now or earlier
        """
        self._send(Update(item, step))

    def update_all(self, items: Any) -> None:
        """Let items arrive, one a step.

        :param items: a sequence of items or None, or a NumPy array of integers
        """
        self._send(Updates(items))

    def _send(self, message: DataMessage) -> None:
        raise NotImplementedError


class OwnStreamQueryable(Updatable, QuestionQueryable):
    """A handle of something wrapped around continual mechanisms, with a stream of its own."""

    def __init__(self, machine: Callable[[Any], Any], description: str, stream: Stream) -> None:
        super().__init__(machine, description)
        self._stream = stream

    @property
    def takes_updates(self) -> bool:
        """Whether a continual mechanism is inside."""
        return self._stream.subscribed

    def __call__(self, query: Any) -> Any:
        """Ask the mechanism, or let data arrive: these go past whatever answers questions."""
        if isinstance(query, DataMessage):
            return self._send(query)
        return super().__call__(query)

    def _send(self, message: DataMessage) -> None:
        check_process(self._machine)  # before a lock, which a thread may have held at a fork
        self._stream.receive(message)


def question_side(answer: Any) -> Callable[[Any], Any]:
    """What asks a queryable, and cannot send it data."""

    def ask(message: Any) -> Any:
        if isinstance(message, DataMessage):
            raise InvalidTypeError(NO_QUESTION)
        return answer(message)

    return ask
