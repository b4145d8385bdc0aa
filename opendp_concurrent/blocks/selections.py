"""Records of blocks that were selected before, so that launches on the same blocks share them.

What is kept is bounded: at most 64 selections, and in all at most twice as many records as the data
have, and twice as many places as there are blocks. The oldest go first; children keep what they
use. A selection never changes: its records are fixed before they are first named, and places keep
their blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from weakref import ref

from ..interrupts import Lock
from ..queryables.data import Sealed
from .keys import Places

MOST = 64
Seal = Callable[[Callable[[int], None]], Sealed]


class Selections:
    """The latest selections, by the places of their blocks."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[Sealed, int]] = OrderedDict()  # and their sizes
        self._records, self._lock = 0, Lock()

    def of(self, places: Places, blocks: int, seal: Seal) -> Sealed:
        """Return the selection of these places: the one that is kept, or a new one.

        :param blocks: how many there are
        :param seal: makes the selection; it gets a function to be told the number of its records,
            once they are selected
        """
        key = places.tobytes()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        # weak, because what a token stands for must not lead back to the token: neither was freed
        own = ref(self)

        def selected(records: int) -> None:
            if (known := own()) is not None:
                known._selected(key, len(places) + records, blocks)

        made = seal(selected)
        with self._lock:
            self._kept[key] = made, len(places)
            self._drop(blocks)
        return made

    def counter(self) -> Callable[[int], None]:
        """Return a function to be told how many records there are more."""
        own = ref(self)

        def count(records: int) -> None:
            if (known := own()) is not None:
                known._records += records

        return count

    def _selected(self, key: bytes, size: int, blocks: int) -> None:
        with self._lock:
            if key in self._kept:
                self._kept[key] = self._kept[key][0], size
                self._drop(blocks)

    def _drop(self, blocks: int) -> None:
        most = 2 * (self._records + blocks)
        while len(self._kept) > MOST or sum(size for _, size in self._kept.values()) > most:
            self._kept.popitem(last=False)
