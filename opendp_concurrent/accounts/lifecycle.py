"""Who is still open: the states of an account or child, as a table.

Everything that can close one is in this file. A lifecycle knows what it was launched from; a
child is open while it and all of those are.
"""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum

from ..errors import ClosedChildError, HaltedError, ReentrantLaunchError


class State(Enum):
    """States of a lifecycle."""

    OPEN = "open"
    HALTED = "halted"
    CLOSED = "closed"


class Event(Enum):
    """What may happen to a lifecycle."""

    REFUSED_WITH_HALT = "a launch was refused and the filter was built with halt=True"
    SUPERSEDED = "a newer launch under a measure that composes sequentially"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.OPEN, Event.SUPERSEDED): State.CLOSED,
    (State.HALTED, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.HALTED, Event.SUPERSEDED): State.CLOSED,
    (State.CLOSED, Event.REFUSED_WITH_HALT): State.CLOSED,
    (State.CLOSED, Event.SUPERSEDED): State.CLOSED,
}

_RUNNING: ContextVar[tuple[Lifecycle, ...]] = ContextVar("_RUNNING", default=())


class Lifecycle:
    """State of one account or child, and of everything that it was launched from.

    The state only moves along ``TRANSITIONS``, which ends in states that no event leaves for
    ``OPEN``; a reader without the lock sees an old state at worst while the event is happening.
    """

    __slots__ = ("_lineage", "_reason", "state")

    def __init__(self, parent: Lifecycle | None = None, reason: str = "") -> None:
        self.state = State.OPEN
        self._reason = reason
        self._lineage: tuple[Lifecycle, ...] = (self, *(parent._lineage if parent else ()))

    def happen(self, event: Event) -> None:
        """Move along the table."""
        self.state = TRANSITIONS[self.state, event]

    def check(self) -> None:
        """Raise unless this and all that it was launched from are open."""
        for one in self._lineage:
            if one.state is State.HALTED:
                raise HaltedError
            if one.state is State.CLOSED:
                raise ClosedChildError(one._reason)

    def check_not_running(self) -> None:
        """Raise if a mechanism that this paid for is running in this context."""
        if self in _RUNNING.get():
            raise ReentrantLaunchError

    def running(self) -> Running:
        """Mark this, and what it was launched from, as running a mechanism."""
        return Running(self._lineage)


def innermost_running() -> Lifecycle | None:
    """Return the lifecycle that pays for what is running here, if anything is."""
    running = _RUNNING.get()
    return running[0] if running else None


class Running:
    """A ``with`` block in which lifecycles pay for a mechanism that runs."""

    __slots__ = ("_lineage", "_token")

    def __init__(self, lineage: tuple[Lifecycle, ...]) -> None:
        self._lineage = lineage

    def __enter__(self) -> None:
        self._token = _RUNNING.set(self._lineage + _RUNNING.get())

    def __exit__(self, *error: object) -> None:
        _RUNNING.reset(self._token)
