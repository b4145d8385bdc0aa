"""Handles by names that nobody can guess, for clients who ask over a network."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import uuid4

from ..arguments.checked import Count, Positive, Text, checked
from ..interrupts import Lock
from ..types import Answer


@dataclass(slots=True)
class _Kept:
    owner: str
    handle: Answer
    used: float


class HandleStore:
    """Handles that clients have open, each under a name. Handles that are not used expire.

    A client finds its own handles only. What a handle cost stays spent when it expires.

    :param seconds: how long a handle is kept after it was used
    :param most: number of handles that one client may have open
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent.serving import HandleStore
    >>> handles = HandleStore(seconds=600.0, most=2)
    >>> name = handles.keep("alice", "a queryable")
    >>> handles.find("alice", name), handles.find("bob", name)
    ('a queryable', None)
    """

    @checked
    def __init__(self, *, seconds: Positive = 600.0, most: Count = 50) -> None:
        self._seconds, self._most = seconds, most
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    @checked
    def keep(self, owner: Text, handle: Answer) -> str:
        """Keep a handle, and return its name, which has 122 random bits.

        Handles are kept even if there is no room: they have been charged.

        :param owner: name of the client
        :param handle: what :meth:`find` returns
        :return: text that nobody can guess
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        name = uuid4().hex
        with self._lock:
            _ = self._expire()
            self._kept[name] = _Kept(owner, handle, time.monotonic())
        return name

    @checked
    def find(self, owner: Text, name: Text) -> Answer:
        """Return a client's handle; None if the client has none of this name.

        :param owner: name of the client
        :param name: what :meth:`keep` returned
        """
        with self._lock:
            _ = self._expire()
            found = self._kept.get(name)
            if found is None or found.owner != owner:
                return None
            found.used = time.monotonic()
            return found.handle

    @checked
    def has_room(self, owner: Text) -> bool:
        """Whether a client has fewer handles open than it may.

        :param owner: name of the client
        """
        with self._lock:
            _ = self._expire()
            return sum(one.owner == owner for one in self._kept.values()) < self._most

    @checked
    def drop(self, owner: Text, name: Text) -> bool:
        """Forget a client's handle; return whether there was one.

        :param owner: name of the client
        :param name: what :meth:`keep` returned
        """
        with self._lock:
            _ = self._expire()
            found = self._kept.get(name)
            if found is None or found.owner != owner:
                return False
            del self._kept[name]
            return True

    def _expire(self) -> list[_Kept]:
        """Remove what has expired, and return it: it is to be freed after the lock."""
        oldest = time.monotonic() - self._seconds
        names = [name for name, one in self._kept.items() if one.used < oldest]
        return [self._kept.pop(name) for name in names]
