"""Turns, and launches in sequence.

A turn is a lock that queryables inherit if they are made while it is held.

OpenDP's queryables may be used by one thread at a time. A queryable that was made inside another's
call asks it for permission later. So a queryable that is made during a turn uses the same lock.

The inherited lock is set in a context that ends with the turn.

Launches in sequence close older children. Under a measure that is not known to compose
concurrently, an older child must not answer once a newer launch has begun, wherever its queryable
is: in a Polars frame, in a dictionary, in a grandchild. Only OpenDP's native sequential compositor
reaches all of these. So each launch runs on such a compositor, as a zero-loss measurement over a
trivial space. Accounts count the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

from opendp.combinators import make_adaptive_composition
from opendp.domains import atom_domain
from opendp.measures import approximate, zero_concentrated_divergence
from opendp.metrics import discrete_distance
from opendp.mod import Measurement

from ..errors import uncharged
from ..interrupts import Lock
from ..native import opendp as _native
from ..types import Answer

# the lock of the turn that is taken here
HELD: ContextVar[Any] = ContextVar("HELD", default=None)


def lock_for_turns() -> Any:
    """Return the inherited lock, or a new one."""
    return HELD.get() or Lock()


def in_turn(lock: Lock, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, called while ``lock`` is held and inherited."""
    with lock:
        return copy_context().run(_holding, lock, function, arguments)


def launch_in_turn(lock: Lock, launch: Callable[..., Any], query: Any) -> Any:
    """Return ``launch(query)``, in a turn. What interrupts the wait for it has charged nothing."""
    uncharged(lock.__enter__)
    try:
        return copy_context().run(_holding, lock, launch, (query,))
    finally:
        lock.__exit__()


def _holding(lock: Lock, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    HELD.set(lock)
    return function(*arguments)


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """Return what ``function(*arguments)`` returns, or what it raises.

    The caller raises another error instead, out of the handler, so that it has no context.
    """
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error


# --- launches in sequence -------------------------------------------------------------------------

_SLOTS = 64  # launches per native compositor
_SPARE = 64  # to close the last child: one, unless making the next compositor fails
_TASK: ContextVar[Callable[[], Any]] = ContextVar("_TASK")


class SequentialRunner:
    """Run tasks. Each task closes the native queryables of the task before.

    OpenDP's queryables are not thread-safe, and older children query the compositor. So all calls
    of it, and queries of its children, take turns on ``lock``.

    An exception of a task is caught in the native call and raised after it.
    """

    __slots__ = ("_compositor", "_left", "_visit", "lock")

    def __init__(self) -> None:
        self.lock = lock_for_turns()
        self._visit = _make_visit()
        self._compositor: Any = _make_compositor()(True)
        self._left = _SLOTS

    def _renew(self) -> None:
        self._run(tuple)  # closes what is still open on this one
        self._compositor = _make_compositor()(True)
        self._left = _SLOTS

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        outcomes: list[tuple[Any, BaseException | None]] = []

        def task() -> Any:
            # raised below: a launch that raises in there closes no older child
            outcomes.append(attempt(function, *arguments))
            return outcomes[0][0]

        answer = copy_context().run(self._ask, task)
        error = outcomes[0][1]
        if error is None:
            return answer
        try:
            raise error
        finally:
            outcomes.clear()
            del error  # its trace has this frame

    def _ask(self, task: Callable[[], Any]) -> Answer:
        _TASK.set(task)
        return self._compositor(self._visit)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Close the queryables of earlier tasks, and return ``function(*arguments)``."""
        return in_turn(self.lock, self._in_turn, function, *arguments)

    def _in_turn(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._left == 0:
            self._renew()
        self._left -= 1
        return self._run(function, *arguments)


def _make_compositor() -> Measurement:
    return make_adaptive_composition(
        atom_domain(T=bool),
        discrete_distance(),
        approximate(zero_concentrated_divergence()),
        d_in=1,
        d_mids=[(0.0, 0.0)] * (_SLOTS + _SPARE),
    )


def _make_visit() -> Measurement:
    return _native.make_user_measurement(
        atom_domain(T=bool),
        discrete_distance(),
        approximate(zero_concentrated_divergence()),
        function=lambda _: _TASK.get()(),
        privacy_map=lambda _: (0.0, 0.0),
        TO="ExtrinsicObject",
    )
