"""Turns: a lock that queryables inherit if they are made while it is held.

OpenDP's queryables may be used by one thread at a time. A queryable that was made inside another's
call asks it for permission later. So a queryable that is made during a turn uses the same lock.

The inherited lock is set in a context that ends with the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

from ..errors import uncharged
from ..interrupts import Lock

_HELD: ContextVar[Any] = ContextVar("_HELD", default=None)


def inherited_lock() -> Any:
    """Return the lock of the turn that is taken here, or None outside of one."""
    return _HELD.get()


def lock_for_turns() -> Any:
    """Return the inherited lock, or a new one."""
    return _HELD.get() or Lock()


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
    _HELD.set(lock)
    return function(*arguments)


def attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """Return what ``function(*arguments)`` returns, or what it raises.

    The caller raises another error instead, out of the handler, so that it has no context.
    """
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error
