"""Who is still open: the states of an account or child, as a table.

Everything that can close one is in this file. A lifecycle knows what it was launched from; a
child is open while it and all of those are.

What runs is marked in a context of its own (:func:`contextvars.copy_context`), which ends with the
call, whatever happens: no interrupt leaves a mark behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from enum import Enum
from typing import Any

from ..errors import ClosedChildError, HaltedError, InterruptedHandleError, ReentrantLaunchError


class State(Enum):
    """States of a lifecycle."""

    OPEN = "open"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    CLOSED = "closed"


class Event(Enum):
    """What may happen to a lifecycle."""

    REFUSED_WITH_HALT = "a launch was refused and the filter was built with halt=True"
    INTERRUPTED = "its mechanism was interrupted, and is in the middle of something"
    SUPERSEDED = "a newer launch under a measure that composes sequentially"


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.OPEN, Event.INTERRUPTED): State.INTERRUPTED,
    (State.OPEN, Event.SUPERSEDED): State.CLOSED,
    (State.HALTED, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.HALTED, Event.INTERRUPTED): State.HALTED,
    (State.HALTED, Event.SUPERSEDED): State.CLOSED,
    (State.INTERRUPTED, Event.REFUSED_WITH_HALT): State.INTERRUPTED,
    (State.INTERRUPTED, Event.INTERRUPTED): State.INTERRUPTED,
    (State.INTERRUPTED, Event.SUPERSEDED): State.CLOSED,
    (State.CLOSED, Event.REFUSED_WITH_HALT): State.CLOSED,
    (State.CLOSED, Event.INTERRUPTED): State.CLOSED,
    (State.CLOSED, Event.SUPERSEDED): State.CLOSED,
}

_RUNNING: ContextVar[tuple[Lifecycle, ...]] = ContextVar("_RUNNING", default=())


class Lifecycle:
    """State of one account or child, and of everything that it was launched from.

    The state only moves along ``TRANSITIONS``, which ends in states that no event leaves for
    ``OPEN``; a reader without the lock sees an old state at worst while the event is happening.

    :param parent: what it was launched from
    :param reason: why a newer launch closes it; empty if none does
    :param halts: whether a refusal closes it
    :param opaque: whether errors of its mechanisms are kept from the analyst
    :param static: whether no mechanism below may have a stream of its own
    :param name: what it is called; empty for what has no name of its own
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
        """All that has to be open: the lifecycle itself, and what it was launched from."""
        found = [self]
        if not self._parents:
            return found
        for one in found:  # which grows meanwhile
            for parent in one._parents:
                if parent not in found:
                    found.append(parent)
        return found

    @property
    def _to_root(self) -> Iterator[Lifecycle]:
        """Those that have a name, from here to the root."""
        one: Lifecycle | None = self
        while one is not None:
            if one._name:
                yield one
            one = one._parents[0] if one._parents else None

    @property
    def named(self) -> Lifecycle | None:
        """The nearest that has a name: this, or what it was launched from."""
        return next(self._to_root, None)

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the root to here."""
        return tuple(one._name for one in self._to_root)[::-1]

    def adopt_by(self, parent: Lifecycle) -> None:
        """Take ``parent`` for what this was launched from too, and all that comes from this.

        It may have been made where nothing told what it is launched from, such as in a thread.
        """
        if self not in parent.lineage and parent not in self.lineage:
            self._parents = (*self._parents, parent)

    @property
    def matters(self) -> bool:
        """Whether it makes a difference to a handle that it belongs here."""
        known = self._of_note
        return known or (bool(self._parents) and any(one._of_note for one in self.lineage))

    @property
    def opaque(self) -> bool:
        """Whether errors of mechanisms are kept from the analyst."""
        return self._opaque or (bool(self._parents) and any(one._opaque for one in self.lineage))

    @property
    def static(self) -> bool:
        """Whether no mechanism below may have a stream of its own."""
        return any(one._static for one in self.lineage)

    def happen(self, event: Event) -> None:
        """Move along the table."""
        self.state = TRANSITIONS[self.state, event]

    def check(self) -> None:
        """Raise unless this and all that it was launched from are open."""
        for one in self.lineage if self._parents else (self,):
            if one.state is State.OPEN:
                continue
            if one.state is State.HALTED:
                raise HaltedError(one.path)
            if one.state is State.INTERRUPTED:
                raise InterruptedHandleError
            raise ClosedChildError(one._reason)

    def check_not_running(self) -> None:
        """Raise if a mechanism that this paid for is running in this context."""
        if self in _RUNNING.get():
            raise ReentrantLaunchError

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, with this, and what it comes from, marked as running."""
        return copy_context().run(self._marked, function, arguments)

    def _marked(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        _RUNNING.set((*self.lineage, *_RUNNING.get()))
        return function(*arguments)


def innermost_running() -> Lifecycle | None:
    """Return the lifecycle that pays for what is running here, if anything is."""
    running = _RUNNING.get()
    return running[0] if running else None
