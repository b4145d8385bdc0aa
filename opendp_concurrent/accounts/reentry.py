"""Locks that refuse the thread that holds them.

Python may run a finalizer (``__del__``) between any two instructions, also while this thread holds
a lock. A finalizer that uses a handle would wait for that lock for ever, or change what the thread
is changing. It is refused instead.
"""

from __future__ import annotations

from typing import Any

from ..errors import ReentrantLaunchError


def check_not_held(lock: Any) -> None:
    """Raise if this thread holds ``lock``, an :class:`threading.RLock`."""
    if lock._is_owned():
        raise held()


def held() -> ReentrantLaunchError:
    """Return the error for a call from a finalizer that ran while this thread held a lock."""
    return ReentrantLaunchError(
        "a finalizer (__del__) used a handle in the middle of a charge to the same tree of "
        "accounts: call the handle from ordinary code"
    )
