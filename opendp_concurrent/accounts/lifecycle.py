"""The lifecycle of an account or child: its states and transitions, as a table.

Every event that can close an account or child is in this file. A lifecycle knows its ancestors,
which it was launched from. A child is open while it and all of its ancestors are open.

A running mechanism is marked in a context of its own (:func:`contextvars.copy_context`). The
context ends with the call, so no interrupt leaves a mark behind.

A mechanism that runs must not launch on an account that pays for it: what it launched could depend
on the data. It may use the handles that it makes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from enum import Enum
from typing import Any

from ..errors import (
    ClosedChildError,
    EndedRunError,
    HaltedError,
    InterruptedHandleError,
    ReentrantLaunchError,
)


class State(Enum):
    """States of a lifecycle."""

    OPEN = "open"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    CLOSED = "closed"
    ENDED = "ended"


class Event(Enum):
    """Events that change a lifecycle."""

    REFUSED_WITH_HALT = "a launch was refused and the filter was built with halt=True"
    INTERRUPTED = "its mechanism was interrupted in the middle of an answer or an update"
    SUPERSEDED = "a newer launch under a measure that composes sequentially"
    ENDED = "it was one run of a private selection, and this run is over"


_STAY = (State.HALTED, State.INTERRUPTED, State.CLOSED)
TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.OPEN, Event.INTERRUPTED): State.INTERRUPTED,
    **{(state, event): state for state in _STAY for event in Event},  # unless a line below says
    **{(state, Event.SUPERSEDED): State.CLOSED for state in State},
    **{(state, Event.ENDED): State.ENDED for state in State},
    **{(State.ENDED, event): State.ENDED for event in Event},
}

_RUNNING: ContextVar[tuple[Lifecycle, ...]] = ContextVar("_RUNNING", default=())


class Lifecycle:
    """State of one account or child, and of the ancestors that it was launched from.

    The state changes only as in ``TRANSITIONS``. No event leads back to ``OPEN``. A reader without
    the lock at worst sees the state before an event that is happening.

    :param parent: lifecycle that it was launched from
    :param reason: why a newer launch closes it; empty if none does
    :param halts: whether a refusal closes it
    :param opaque: whether errors of its mechanisms are hidden from the analyst
    :param static: whether mechanisms below are forbidden to have a stream of their own
    :param name: its name; empty if it has none
    """

    __slots__ = ("_name", "_of_note", "_opaque", "_parents", "_reason", "_static", "state")

    def __init__(
        self,
        parent: Lifecycle | None = None,
        reason: str = "",
        *,
        halts: bool = False,
        opaque: bool = False,
        static: bool = False,
        name: str = "",
    ) -> None:
        self.state = State.OPEN
        self._reason, self._opaque, self._static = reason, opaque, static
        self._name = name
        self._of_note = bool(reason) or halts or opaque or static
        self._parents: tuple[Lifecycle, ...] = () if parent is None else (parent,)

    @property
    def lineage(self) -> list[Lifecycle]:
        """The lifecycle itself and all of its ancestors. All of them must be open."""
        found = [self]
        if not self._parents:
            return found
        for one in found:  # the list grows in the loop
            for parent in one._parents:
                if parent not in found:
                    found.append(parent)
        return found

    @property
    def _to_root(self) -> Iterator[Lifecycle]:
        """The lifecycles that have a name, from this one to the root."""
        one: Lifecycle | None = self
        while one is not None:
            if one._name:
                yield one
            one = one._parents[0] if one._parents else None

    @property
    def named(self) -> Lifecycle | None:
        """The lifecycle itself if it has a name, else its nearest ancestor that has one."""
        return next(self._to_root, None)

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the root to this lifecycle."""
        return tuple(one._name for one in self._to_root)[::-1]

    def adopt_by(self, parent: Lifecycle) -> None:
        """Add ``parent`` to the ancestors of this lifecycle, and so to those of its descendants.

        The lifecycle may have been made where its parent was not known, such as in a thread.
        """
        if self not in parent.lineage and parent not in self.lineage:
            self._parents = (*self._parents, parent)

    @property
    def matters(self) -> bool:
        """Whether it, or an ancestor, can close a handle, hides errors or forbids streams."""
        known = self._of_note
        return known or (bool(self._parents) and any(one._of_note for one in self.lineage))

    @property
    def opaque(self) -> bool:
        """Whether errors of mechanisms are hidden from the analyst."""
        return self._opaque or (bool(self._parents) and any(one._opaque for one in self.lineage))

    @property
    def static(self) -> bool:
        """Whether mechanisms below are forbidden to have a stream of their own."""
        return any(one._static for one in self.lineage)

    def happen(self, event: Event) -> None:
        """Change the state as in ``TRANSITIONS``."""
        self.state = TRANSITIONS[self.state, event]

    def check(self) -> None:
        """Raise unless this lifecycle and all of its ancestors are open."""
        for one in self.lineage if self._parents else (self,):
            if one.state is State.OPEN:
                continue
            if one.state is State.HALTED:
                raise HaltedError(one.path)
            if one.state is State.INTERRUPTED:
                raise InterruptedHandleError
            if one.state is State.ENDED:
                raise EndedRunError
            raise ClosedChildError(one._reason)

    def check_not_running(self) -> None:
        """Raise if a mechanism that this lifecycle pays for is running in this context."""
        if self in _RUNNING.get():
            raise ReentrantLaunchError

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, a mechanism, for which this and its ancestors pay."""
        return copy_context().run(self._marked, function, arguments)

    def _marked(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        _RUNNING.set((*self.lineage, *_RUNNING.get()))
        return function(*arguments)


def innermost_running() -> Lifecycle | None:
    """Return the lifecycle that pays for the mechanism that runs in this context, if one does."""
    running = _RUNNING.get()
    return running[0] if running else None
