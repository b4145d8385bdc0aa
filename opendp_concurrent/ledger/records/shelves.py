"""A mapping of which a copy is cheap: entries lie on shelves, and a copy shares those it leaves.

The copy of a mapping of n entries copies a list of shelves. A change then copies one shelf, unless
this mapping has copied it before. So many changes to one copy cost what they cost a dictionary, and
one change to each of many copies costs n / 256.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_SHELVES = 256


class Shelves(Generic[K, V]):
    """A mapping from keys to values. Whoever was handed a copy sees no later change.

    :param of: the mapping to copy; neither of the two changes the other
    """

    __slots__ = ("_own", "_shelves", "_size")

    def __init__(self, of: Shelves[K, V] | None = None) -> None:
        self._shelves: list[dict[K, V]] = [{}] * _SHELVES if of is None else of._shelves.copy()
        self._size: int = 0 if of is None else of._size
        self._own: set[int] = set()  # shelves that no other mapping has
        if of is not None:
            of._own = set()

    def get(self, key: K) -> V | None:
        """Return the value of a key; None if it has none."""
        return self._shelves[hash(key) % _SHELVES].get(key)

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        place = hash(key) % _SHELVES
        if place not in self._own:
            self._copy(place)
        shelf = self._shelves[place]
        self._size += key not in shelf
        shelf[key] = value

    def add(self, key: K, value: V) -> bool:
        """Set the value of a key, unless it has one; return whether it had none."""
        place = hash(key) % _SHELVES
        if place not in self._own:
            self._copy(place)
        shelf = self._shelves[place]
        if key in shelf:
            return False
        self._size += 1
        shelf[key] = value
        return True

    def _copy(self, place: int) -> None:
        """Copy a shelf, which no other mapping has then."""
        self._shelves[place] = self._shelves[place].copy()
        self._own.add(place)

    def __len__(self) -> int:
        return self._size
