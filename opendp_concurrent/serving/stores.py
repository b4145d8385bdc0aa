"""Handles by names that nobody can guess, for clients who ask over a network."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any
from uuid import uuid4

import numpy as np

from .._checks import Count, Positive, Text, checked
from .._opendp import Lock
from ..errors import Answer, ConcurrentError, InvalidTypeError, Json


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


# What JSON has for an answer.

_MOST_NUMBERS = 10**7
_MOST_BITS = 2**13  # Python writes no integers of more than 4300 digits


def as_json(value: Json) -> Json:
    """Return what JSON has for an answer, a loss or a description.

    A float that is not finite is text, such as ``"inf"``. A pair is a list, a dataclass is an
    object of its fields, a member of an enumeration is its name, and an error of this package is
    its text. Keys of a mapping are text.

    :param value: such as a release, ``privacy_loss()`` or ``describe(...)`` of a queryable
    :return: a JSON value
    :raises InvalidTypeError: if JSON has nothing for it

    :example:

    >>> from opendp_concurrent.serving import as_json
    >>> as_json({"remaining": (float("inf"), 1e-6), 3: oc.handles.Outcome.BELOW})
    {'remaining': ['inf', 1e-06], '3': 'BELOW'}
    """
    try:
        return _plain(value)
    except RecursionError:
        raise InvalidTypeError("value is nested too deeply for JSON, or contains itself") from None


def _plain(value: Json) -> Json:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidTypeError(f"value has an integer of more than {_MOST_BITS} bits")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "mM":
        if not value.size <= _MOST_NUMBERS:
            raise InvalidTypeError(f"value has an array of more than {_MOST_NUMBERS:,} numbers")
        found = value.tolist()
        if not isinstance(found, np.generic):  # as a long double does, which JSON does not have
            return _plain(found)
    if isinstance(value, ConcurrentError):
        return str(value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if is_dataclass(type(value)) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    raise InvalidTypeError(f"value has a {type(value).__name__}, which has no form in JSON")


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    found = {str(key): _plain(one) for key, one in value.items()}
    if len(found) != len(value):
        raise InvalidTypeError("value has keys that are the same text, such as 1 and '1'")
    return found
