"""Locks that refuse the thread that holds them.

Python may run a finalizer (``__del__``) between any two instructions, also while this thread holds
a lock. A finalizer that uses a handle would wait for that lock for ever, or change what the thread
is changing. It is refused instead.
"""

from __future__ import annotations

from ..errors import ReentrantLaunchError
from ..interrupts import Lock


def check_not_held(lock: Lock) -> None:
    """Raise if this thread holds ``lock``."""
    if lock.held():
        raise ReentrantLaunchError(
            "a finalizer (__del__) used a handle in the middle of a charge to the same tree of "
            "accounts: call the handle from ordinary code"
        )
