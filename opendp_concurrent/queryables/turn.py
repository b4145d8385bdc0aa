"""Taking turns: a lock that everything made while it is held inherits.

OpenDP's queryables may be used by one thread at a time, and one that was made inside another's
call asks it for permission later. So what is made during a turn takes its turns on the same lock.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from threading import RLock
from typing import Any

_HELD: ContextVar[Any] = ContextVar("_HELD", default=None)


def inherited_lock() -> Any:
    """Return the lock of the turn that is taken here, or None outside of one."""
    return _HELD.get()


def lock_for_turns() -> Any:
    """Return the inherited lock, or a new one."""
    return _HELD.get() or RLock()


class Turn:
    """A ``with`` block that holds a lock, which is inherited by what is made inside."""

    __slots__ = ("_lock", "_tokens")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._tokens: list[Token[Any]] = []  # one for each entry, as the lock can be taken again

    def __enter__(self) -> None:
        self._lock.acquire()
        self._tokens.append(_HELD.set(self._lock))

    def __exit__(self, *error: object) -> None:
        _HELD.reset(self._tokens.pop())
        self._lock.release()
