"""A stream of data: only mechanisms that are launched on it receive its updates.

Updates are data. So they do not pass from handle to handle as queries do, where the analyst may put
something in between. A :class:`Stream` replaces the dataset. Each continual mechanism that
runs on it subscribes to it, however the mechanism is wrapped. A wrapper passes the stream on as any
measurement passes a dataset on. It wraps queries only, never updates. There is no other way to
subscribe, so what a postprocessor returns receives no data.

* Subscribers are held weakly: a child exists as long as somebody holds its handle.
* The sender of an update is told when it is refused, and why.
* A :class:`Meter` bounds updates and queries together. It counts steps, which are public.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any, Protocol
from weakref import ref

from ..accounts.lifecycle import innermost_running
from ..errors import InvalidTypeError, InvalidValueError, MessageLimitError, StreamError
from ..failures import pass_interrupt
from ..interrupts import Lock
from ..native import opendp as _native
from .data import Sealed, seal, unseal
from .updates import DataMessage, Room, Update, Updates, check_items, check_step, steps_of

NOBODY = (
    "no continual mechanism of this package was launched on the stream, so nothing takes updates"
)
NO_PART = (
    "the query takes updates, and would be launched on a part of static data: if an "
    "adversary chooses the updates, the loss is not the maximum over the parts [HSV25]; "
    "use make_parallel_continual. This was known only when the query ran, so its charge stays"
)
ONE_ONLY = (
    "one stream feeds one continual mechanism here, except under pure DP: the theorems for other "
    "measures need bounded messages [HSV25, Definition 6.1]; use make_concurrent_continual with "
    "max_messages"
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
        self.lock = Lock()

    def room(self, messages: int) -> None:
        """Raise unless at least ``messages`` are left."""
        if self._left == 0 and messages:
            raise MessageLimitError(self._limit)
        if self._left < messages:
            raise StreamError(
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
        self._listing = Lock()
        self._steps, self.lock, self.subscribed = 0, Lock(), False

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
            raise InvalidTypeError(ONE_ONLY)
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
            self._steps += steps
            failures: list[BaseException] = []
            for feed in feeds:
                try:
                    feed.receive(message)
                except BaseException as error:  # an interrupt of a user's machine, too
                    failures.append(error)  # raised below, after the others have received it
            if failures:
                if len(feeds) == 1 and isinstance(failures[0], StreamError):
                    self._steps -= steps  # the only subscriber has refused it
                for failure in failures:
                    pass_interrupt(failure)
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
    payer = innermost_running()
    if payer is not None and payer.static:
        raise InvalidTypeError(NO_PART)
    below = payer is not None or _native.inside_native_call()
    if not below and (not isinstance(data, Sized) or len(data)):
        raise InvalidValueError("a stream starts empty: pass [], and send items with update_all")
    return None
