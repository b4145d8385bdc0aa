"""Public keys of blocks, and the place of each in an array.

Places are assigned once, in the order in which keys are added, and never change. Integers that are
added as a ``range`` are not listed one by one, and an array or a ``range`` of them is looked up at
once. Keys that are added one after the other join one run, so that a launch does not search as many
runs as there were additions.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sized
from contextlib import suppress
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from .. import _checks as checks
from .._opendp import Lock
from ..errors import Argument, InvalidTypeError, InvalidValueError, Key, shown
from ..queryables import Sealed

Places = NDArray[np.int64]
_MOST = 10**8  # blocks, for which the totals need gigabytes
_AT_ONCE = 1000  # keys that are copied before anything is asked about them
_PLAIN = frozenset({str, int, bytes})  # classes whose keys are hashable, and equal themselves
_LARGEST = 2**60  # integer of a range: it is its own hash, and sums of two fit in 64 bits


class Keys:
    """Places of keys. Keys are only ever added, by one thread at a time.

    The integers of one range come first, and then the keys that are listed.
    """

    def __init__(self) -> None:
        self._range = range(0)
        self._listed: list[Any] = []
        self._places: dict[Any, int] = {}  # of listed keys
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._range) + len(self._places)

    def __contains__(self, key: Key) -> bool:
        return self._place(key) is not None

    def add(self, keys: Iterable[Key]) -> Places:
        """Add keys that are not known yet, and return their places; or raise and add nothing."""
        if type(keys) is range:
            keys = _bounded("keys", keys)
        with self._lock:
            start = len(self)
            if type(keys) is range and self._continues(keys):
                self._check_many(len(keys))
                if keys:
                    self._range = range((self._range or keys).start, keys.stop)
            else:
                self._list([_plain(key) for key in keys_of(keys)])
            return np.arange(start, len(self), dtype=np.int64)

    def _continues(self, keys: range) -> bool:
        """Return whether the range, of all keys so far, goes on with another one."""
        begins = not self._range or keys.start == self._range.stop
        return keys.step == 1 and begins and not self._places

    def _list(self, own: list[Key]) -> None:
        for key in own:
            if type(key) not in _PLAIN:
                checks.check_key("keys", key)
            if key in self:
                raise _known(key)
        if len(set(own)) < len(own):
            raise InvalidValueError("keys must be different, found a key twice")
        start = len(self)
        self._check_many(len(own))
        del self._listed[len(self._places) :]  # what an interrupt has left there
        self._listed += own
        self._places.update(zip(own, range(start, start + len(own)), strict=True))

    def count(self, keys: Sized) -> int:
        """Return how many keys there are, or raise if they are too many to be added."""
        many = len(_bounded("keys", keys) if type(keys) is range else keys)
        self._check_many(many)
        return many

    def _check_many(self, more: int) -> None:
        if len(self) + more > _MOST:
            raise InvalidValueError(f"keys must be at most {_MOST} in all")

    def _place(self, key: Key) -> int | None:
        key = _plain(key)
        place = self._places.get(key)
        if place is None and (number := _integer(key)) is not None and number in self._range:
            return number - self._range.start
        return place

    def place(self, key: Key, name: str = "block") -> int:
        """Return the place of one key, or raise."""
        if type(key) not in _PLAIN:
            checks.check_key(name, key)
        place = self._place(key)
        if place is None:
            raise InvalidValueError(
                f"{name} ({shown(key)}) is not a block of this filter: name one of its "
                f"{len(self)} blocks, or add it with add_blocks"
            )
        return place

    def placed(self, keys: tuple[Any, ...]) -> Places:
        """Return the places of some keys, sorted, each once; keys that are not known are added."""
        known = self._known_at_once(keys)
        if known is not None:
            return _sorted(known)
        new = [key for key in dict.fromkeys(map(_plain, keys)) if key not in self]
        while new:
            try:
                self.add(new)
            except InvalidValueError:  # another thread was first
                new = [key for key in new if key not in self]
            else:
                break
        return self.places(keys)

    def places(self, blocks: Iterable[Key]) -> Places:
        """Return the places of some blocks, sorted, each once; or raise."""
        if type(blocks) is range or isinstance(blocks, np.ndarray):
            found = self._of_integers(blocks)
        else:
            found = self._of_keys(blocks)
        if not len(found):
            raise InvalidValueError("blocks must name at least one block")
        return _sorted(found)

    def _of_integers(self, blocks: range | NDArray[Any]) -> Places:
        if type(blocks) is range:
            blocks = _bounded("blocks", blocks)
            if len(blocks) > len(self):
                raise InvalidValueError(
                    f"blocks names {len(blocks)} blocks, of which this filter has {len(self)}"
                )
            blocks = np.arange(blocks.start, blocks.stop, blocks.step, dtype=np.int64)
        else:
            if np.asarray(blocks).size > _MOST:
                raise InvalidValueError(f"blocks must be at most {_MOST}, found more")
            blocks = checks.array(blocks)
        if blocks.ndim != 1 or blocks.dtype.kind not in "iu":
            raise InvalidTypeError(
                "blocks must be a collection of keys; an array must have integers and one "
                f"dimension, found {blocks.dtype} in {blocks.ndim} dimensions"
            )
        found = self._in_range(blocks)
        return self._of_keys(blocks.tolist()) if found is None else found

    def _of_keys(self, blocks: Iterable[Key]) -> Places:
        if (type(blocks) is list or type(blocks) is tuple) and len(blocks) <= _AT_ONCE:
            own = tuple(blocks)
        else:
            own = keys_of(blocks, "blocks")
        known = self._known_at_once(own)
        if known is not None:
            return known
        return np.fromiter((self.place(key, "blocks") for key in own), np.int64, len(own))

    def _known_at_once(self, keys: tuple[Any, ...]) -> Places | None:
        """Return the places of keys, all of which are listed, or integers of the range."""
        kinds = set(map(type, keys))
        if self._places and kinds <= _PLAIN:
            found = list(map(self._places.get, keys))
            return None if None in found else np.array(found, dtype=np.int64)
        with suppress(OverflowError):
            if not self._places and kinds == {int}:
                return self._in_range(np.array(keys, dtype=np.int64))
        return None

    def _in_range(self, blocks: NDArray[Any]) -> Places | None:
        """Return the places of integers, if the range has all of them."""
        known = self._range
        if not len(blocks) or int(blocks.min()) not in known or int(blocks.max()) not in known:
            return None
        places: Places = blocks.astype(np.int64) - known.start
        return places

    def at(self, places: Places) -> list[Any]:
        """Return the keys at some places, which are sorted."""
        size = len(self._range)
        split = int(np.searchsorted(places, size))
        found: list[Any] = (places[:split] + self._range.start).tolist()
        found += [self._listed[place - size] for place in places[split:].tolist()]
        return found


def _sorted(places: Places) -> Places:
    """Return places sorted, each once."""
    if len(places) < 2 or (places[1:] > places[:-1]).all():
        return places
    places = np.sort(places)
    once: Places = places[np.append(True, places[1:] != places[:-1])]
    return once


def keys_of(keys: Argument, name: str = "keys") -> tuple[Any, ...]:
    """Return the elements of a collection of keys, read once, or raise."""
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise InvalidTypeError(
            f"{name} must be a collection of keys, found {type(keys).__name__}; "
            "pass a list, also for one block"
        )
    return checks.read("keys of blocks", **{name: keys})


def _plain(key: Any) -> Any:
    if type(key) in _PLAIN:
        return key
    return key.item() if isinstance(key, np.generic) else checks.plain(key)


def _integer(key: Any) -> int | None:
    """Return the integer that a key equals, of whatever class the key is; None if there is none.

    Equal keys name one block, and have one hash. Small integers are their own hash, but for -1.
    """
    kind = type(key)
    if kind is int:
        return int(key)
    if kind in (str, bytes, tuple):
        return None
    number = hash(key)
    return next((one for one in (number, -1) if one == key), None)


def _bounded(name: str, keys: range) -> range:
    """Return a range of integers that arrays hold, or raise."""
    if keys and max(abs(keys[0]), abs(keys[-1])) > _LARGEST:
        raise InvalidValueError(
            f"{name} ({keys}) must have integers from -2^60 to 2^60; list larger ones"
        )
    if len(keys) > 1:
        return keys
    return range(keys[0], keys[0] + 1) if keys else range(0)  # the step may be too large


def _known(key: Key) -> InvalidValueError:
    return InvalidValueError(
        f"keys has {shown(key)}, which is a block of this filter already: no records are added to "
        "a block that may have been queried; pass a new key for records that arrive later"
    )


# A row of integers for each block.

Cells = NDArray[np.int64]


class Rows:
    """A row of integers for each block; those of new blocks are 0.

    :param width: integers in a row
    """

    def __init__(self, width: int) -> None:
        self._cells: Cells = np.zeros((0, width), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._cells)

    def grow(self, size: int) -> None:
        """Make room for ``size`` blocks; new ones have lost nothing."""
        have, width = self._cells.shape
        if have < size:
            room = np.zeros((max(size, have + have // 2), width), dtype=np.int64)
            room[:have] = self._cells
            self._cells = room

    def read(self, places: Places | list[int]) -> Cells:
        """Return the rows at some places, as a copy."""
        found: Cells = np.take(self._cells, places, axis=0)
        return found

    def write(self, places: Places, cells: Cells) -> None:
        """Replace the rows at some places."""
        # NumPy copies rows of bytes as they are, ten times faster than rows of numbers
        whole = np.dtype((np.void, self._cells.itemsize * self._cells.shape[1]))
        new = np.ascontiguousarray(cells, dtype=np.int64)
        self._cells.view(whole)[:, 0][places] = new.view(whole)[:, 0]


# Records of blocks that were selected before, so that launches on the same blocks share them.
#
# What is kept is bounded: at most 64 selections, and in all at most twice as many records as the
# data have, and twice as many places as there are blocks. The oldest go first; children keep what
# they use. A selection never changes: its records are fixed before they are first named, and places
# keep their blocks.

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
