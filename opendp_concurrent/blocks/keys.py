"""Public keys of blocks, and the place of each in an array.

Places are assigned once, in the order in which keys are added, and never change. Integers that are
added as a ``range`` are not listed one by one, and an array or a ``range`` of them is looked up at
once. Keys that are added one after the other join one run, so that a launch does not search as many
runs as there were additions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import checks, owned
from ..arguments.checks import shown
from ..arguments.keys import check_key
from ..arguments.owned import plain
from ..errors import InvalidTypeError, InvalidValueError
from ..interrupts import Lock
from ..types import Argument, Key

Places = NDArray[np.int64]
_MOST = 10**8  # blocks, for which the totals need gigabytes
_SHORT = 1000  # a shorter range that is added later is listed, or there would be many runs
_AT_ONCE = 1000  # keys that are copied before anything is asked about them
_PLAIN = frozenset({str, int, bytes})  # classes whose keys are hashable, and equal themselves
_LARGEST = 2**60  # integer of a range: it is its own hash, and sums of two fit in 64 bits


class Keys:
    """Places of keys. Keys are only ever added, by one thread at a time."""

    __slots__ = ("_lock", "_runs", "_single")

    def __init__(self) -> None:
        self._single: dict[Any, int] = {}
        # where each run of keys starts and where the last one ends, and the runs: ranges or lists
        self._runs: tuple[tuple[int, ...], tuple[Any, ...]] = (0,), ()
        self._lock = Lock()

    def __len__(self) -> int:
        return self._runs[0][-1]

    def __contains__(self, key: Key) -> bool:
        return self._place(key) is not None

    def add(self, keys: Iterable[Key]) -> Places:
        """Add keys that are not known yet, and return their places; or raise and add nothing."""
        if type(keys) is range:
            keys = _bounded("keys", keys)
            if not self._runs[1] or len(keys) >= _SHORT:
                return self._add_range(keys)
        own = [_plain(key) for key in keys_of(keys)]
        for key in own:
            if type(key) not in _PLAIN:
                check_key("keys", key)
        with self._lock:
            if self._ranged() or not self._single.keys().isdisjoint(own):
                for key in own:
                    self._check_new(key)
            if len(set(own)) < len(own):
                raise InvalidValueError("keys must be different, found a key twice")
            start = len(self)
            self._check_many(len(own))
            self._append(own)
            self._single.update(zip(own, range(start, start + len(own)), strict=True))
        return np.arange(start, start + len(own), dtype=np.int64)

    def _add_range(self, keys: range) -> Places:
        with self._lock:
            for known in self._runs[1]:
                if type(known) is range and _overlap(known, keys):
                    raise _known(_overlap(known, keys)[0])
            for key in self._single:
                if (number := _integer(key)) is not None and number in keys:
                    raise _known(key)
            start = len(self)
            self._check_many(len(keys))
            if keys:
                self._append(keys)
        return np.arange(start, start + len(keys), dtype=np.int64)

    def _ranged(self) -> bool:
        """Whether some keys are not listed."""
        return any(type(run) is range for run in self._runs[1])

    def _append(self, keys: range | list[Key]) -> None:
        if not len(keys):
            return
        starts, runs = self._runs
        after, last = starts[-1] + len(keys), runs[-1] if runs else None
        if type(last) is list and type(keys) is list:
            del last[starts[-1] - starts[-2] :]  # what an interrupt has left there
            last += keys
            self._runs = (*starts[:-1], after), runs
        elif type(last) is range and type(keys) is range and _continues(last, keys):
            joined = range(last.start, keys[-1] + 1)
            self._runs = (*starts[:-1], after), (*runs[:-1], joined)
        else:
            self._runs = (*starts, after), (*runs, keys)

    def count(self, keys: Sized) -> int:
        """Return how many keys there are, or raise if they are too many to be added."""
        many = len(_bounded("keys", keys) if type(keys) is range else keys)
        self._check_many(many)
        return many

    def _check_many(self, more: int) -> None:
        if len(self) + more > _MOST:
            raise InvalidValueError(f"keys must be at most {_MOST} in all")

    def _check_new(self, key: Key) -> None:
        if self._place(key) is not None:
            raise _known(key)

    def _place(self, key: Key) -> int | None:
        key = _plain(key)
        place = self._single.get(key)
        if place is None and (number := _integer(key)) is not None:
            for start, keys in zip(*self._runs, strict=False):
                if type(keys) is range and number in keys:
                    return start + keys.index(number)
        return place

    def place(self, key: Key, name: str = "block") -> int:
        """Return the place of one key, or raise."""
        if type(key) not in _PLAIN:
            check_key(name, key)
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
        listed = self if self._ranged() else self._single
        new = [key for key in dict.fromkeys(map(_plain, keys)) if key not in listed]
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
            blocks = owned.array(blocks)
        if blocks.ndim != 1 or blocks.dtype.kind not in "iu":
            raise InvalidTypeError(
                "blocks must be a collection of keys; an array must have integers and one "
                f"dimension, found {blocks.dtype} in {blocks.ndim} dimensions"
            )
        found = self._in_range(blocks) if len(blocks) else None
        if found is not None:
            return found
        return self._of_keys(blocks.tolist())

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
        """Return the places of keys, all of which are listed, or integers of one range."""
        kinds = set(map(type, keys))
        if self._single and kinds <= _PLAIN:
            found = list(map(self._single.get, keys))
            return None if None in found else np.array(found, dtype=np.int64)
        if self._single or kinds != {int}:
            return None
        try:
            return self._in_range(np.array(keys, dtype=np.int64))
        except OverflowError:
            return None

    def _in_range(self, blocks: NDArray[Any]) -> Places | None:
        """Return the places of integers, if there is a range that has all of them."""
        low, high = int(blocks.min()), int(blocks.max())
        for start, keys in zip(*self._runs, strict=False):
            if type(keys) is range and keys.step == 1 and keys.start <= low and high < keys.stop:
                shifted: Places = blocks.astype(np.int64) + (start - keys.start)
                return shifted
        return None

    def at(self, places: Places) -> list[Any]:
        """Return the keys at some places, which are sorted."""
        starts, runs = self._runs
        found: list[Any] = []
        ends = np.searchsorted(places, starts).tolist()
        for number, keys in enumerate(runs):
            if ends[number] == ends[number + 1]:
                continue
            here = places[ends[number] : ends[number + 1]]
            if type(keys) is not range:
                some = [keys[place - starts[number]] for place in here.tolist()]
            elif keys.step == 1 and keys.start == starts[number]:  # each key is its own place
                some = here.tolist()
            else:
                some = (keys.start + keys.step * (here - starts[number])).tolist()
            if found:
                found += some
            else:
                found = some
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


def _plain(key: Key) -> Key:
    if type(key) in _PLAIN:
        return key
    return key.item() if isinstance(key, np.generic) else plain(key)


def _integer(key: Key) -> int | None:
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


def _continues(one: range, other: range) -> bool:
    """Return whether two ranges are together a range of step 1."""
    return one.step == other.step == 1 and one.stop == other.start


def _overlap(one: range, other: range) -> list[int]:
    """Return an integer that two ranges share, in a list; none if they share none."""
    shorter, longer = sorted((one, other), key=len)
    if one.step == other.step == 1:
        low, high = max(one.start, other.start), min(one.stop, other.stop)
        return [low] if low < high else []
    return next(([key] for key in shorter if key in longer), [])


def _known(key: Key) -> InvalidValueError:
    return InvalidValueError(
        f"keys has {shown(key)}, which is a block of this filter already: no records are added to "
        "a block that may have been queried; pass a new key for records that arrive later"
    )
