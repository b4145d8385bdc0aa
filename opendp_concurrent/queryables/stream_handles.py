"""Handles of mechanisms on streams: who may send data, and who may only query.

A handle with a stream of its own takes updates. One that was launched on a parent's stream takes
queries only, and so does everything that is wrapped around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InvalidTypeError
from ..types import Answer, Item, ItemSequence, Query
from .data import check_process
from .machine import MachineQueryable
from .stream import Stream
from .updates import UPDATE_REFUSED, DataMessage, Update, Updates


class QueryOnlyQueryable(MachineQueryable):
    """A handle that takes queries only.

    :ivar stream: the stream inside; this reference keeps it alive
    :ivar holders: handles through which its updates come; these references keep them alive
    """

    stream: Stream | None = None
    holders: tuple[MachineQueryable, ...] = ()

    def __call__(self, query: Query) -> Answer:
        """Query the mechanism. An update is refused."""
        if isinstance(query, DataMessage):
            raise InvalidTypeError(UPDATE_REFUSED)
        return super().__call__(query)


class FedQueryable(QueryOnlyQueryable):
    """A handle of a continual mechanism that receives its updates from its parent's stream."""

    def __init__(self, machine: Callable[[Any], Any], description: str, stream: Stream) -> None:
        super().__init__(machine, description)
        self._stream = stream.subscribe(self)

    def __call__(self, query: Query) -> Answer:
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

    def update(self, item: Item, step: int | None = None) -> None:
        """Add one item, or none (None), to the stream.

        :param step: number of this step, from 1, so that late and repeated steps are refused
        :raises StreamError: if it is not the next step, or beyond the horizon; nothing changes
        :raises StreamHaltedError: if this or an earlier update was not an item of the stream
        """
        self._send(Update(item, step))

    def update_all(self, items: ItemSequence) -> None:
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

    def __call__(self, query: Query) -> Answer:
        """Query the mechanism, or add data, which go directly to the stream."""
        if isinstance(query, DataMessage):
            return self._send(query)
        return super().__call__(query)

    def _send(self, message: DataMessage) -> None:
        check_process(self._machine)  # before a lock, which a thread may have held at a fork
        self._stream.receive(message)


def query_side(answer: Answer) -> Callable[[Any], Any]:
    """Return a function that queries a queryable and refuses to send it data."""

    def ask(message: Query) -> Answer:
        if isinstance(message, DataMessage):
            raise InvalidTypeError(UPDATE_REFUSED)
        return answer(message)

    return ask
