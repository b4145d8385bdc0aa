"""Handles of this package's interactive mechanisms: queryables around a state machine.

The machine holds data and secret noise, so it is sealed like data. Queries take turns. A closed
parent closes the handle. A handle that is made within a native call contains a native queryable, so
that the wrappers of OpenDP's own compositors apply to it.
"""

from __future__ import annotations

from collections.abc import Callable

from opendp.mod import Queryable

from ..accounts.lifecycle import Event, Lifecycle, innermost_running
from ..errors import ReentrantLaunchError
from ..interrupts import Lock
from ..native import opendp as _native
from ..types import Answer, Query
from .child import adopt
from .data import SealedHandle, check_process, seal, unseal
from .opaque import hidden
from .turn import HELD, in_turn, lock_for_turns


def forget_frames(error: BaseException) -> None:
    """Remove frames from an exception, its causes and contexts: frames hold data and noise."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += [one.__cause__, one.__context__]


def without_frames(function: Callable[..., Answer], *arguments: Query) -> Answer:
    """Return ``function(*arguments)``. The frames of what it raises are removed: they have data."""
    try:
        return function(*arguments)
    except BaseException as error:
        forget_frames(error)
        raise error from error.__cause__


def check_message(machine: Callable[[Query], Answer], message: Query) -> None:
    """Let a machine refuse a message for reasons that are public, before it uses the data.

    Such an error is not hidden: a machine has a method ``check`` if it refuses messages.
    """
    check = getattr(type(machine), "check", None)
    if check is not None:
        check(machine, message)


class MachineQueryable(SealedHandle, Queryable):
    """A handle of an interactive mechanism.

    :param machine: answers a query; may change its own state
    :param description: what ``repr`` says
    :param interruptible: whether the machine can go on after an interrupt in a query, such as one
        that looks a handle up; else the next query closes it, because its state is unknown
    """

    query_type = "ExtrinsicObject"
    passes_on = False  # whether all it does is to pass messages on to another mechanism

    @property
    def takes_updates(self) -> bool:
        """Whether data may arrive by ``update`` and ``update_all`` of this handle."""
        return False

    def __init__(
        self, machine: Callable[[Query], Answer], description: str, *, interruptible: bool = False
    ) -> None:
        self._machine, self._description = seal(machine), description
        self._lifecycle, self._running = Lifecycle(innermost_running()), False
        self._interruptible = interruptible
        native, inherited = _native.inside_native_call(), HELD.get()
        # boxed, because OpenDP sets an attribute on an answer, and some answers do not allow this
        self._transport = _native.python_queryable(lambda q: (machine(q),)) if native else None
        # native queryables ask it for permission later, so they all share one lock
        self._shared = native or inherited is not None
        self._lock: Lock = lock_for_turns() if self._shared else Lock()

    def __call__(self, query: Query) -> Answer:
        """Query the mechanism. Wait while another thread queries it."""
        check_process(self._machine)  # before a lock, which a thread may have held at a fork
        return without_frames(_native.call_native, self._take_turn, query)

    def _take_turn(self, query: Query) -> Answer:
        if self._shared:
            answer = in_turn(self._lock, self._enter, query)
        else:
            with self._lock:
                answer = self._enter(query)
        return adopt(answer, self._lifecycle, self._lock if self._shared else None)

    def _enter(self, query: Query) -> Answer:
        self._lifecycle.check()
        if self._running:  # the machine queries itself, perhaps indirectly
            raise ReentrantLaunchError
        self._running = True
        try:
            lifecycle = self._lifecycle
            # a handle that passes messages on has no errors of the data: what is inside hides them
            opaque = lifecycle.opaque and not self.passes_on
            if opaque:
                lifecycle.run(check_message, unseal(self._machine), query)
                return hidden(lifecycle.run, self._answer, query)
            return lifecycle.run(self._answer, query)
        except Exception:
            raise
        except BaseException:  # let in while a user's function ran, or raised by it
            if not self._interruptible:
                self._lifecycle.happen(Event.INTERRUPTED)
            raise
        finally:
            self._running = False

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        self._lifecycle.adopt_by(lifecycle)
        if lock is not None and not self._shared:
            self._lock, self._shared = lock, True

    def _answer(self, query: Query) -> Answer:
        machine = unseal(self._machine)
        if self._transport is None:
            return machine(query)
        (answer,) = _native.evaluate(self._transport, query)
        return answer

    def __repr__(self) -> str:
        return f"{self._description}({self._lifecycle.state.value})"
