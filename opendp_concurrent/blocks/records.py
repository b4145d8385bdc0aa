"""The records of blocks: which data a launch on some blocks gets.

Records arrive in batches: the data of the invocation, then one batch for each call that adds blocks
with data. A block's records are all in one batch. When the first mechanism runs, vectors are cut,
LazyFrames are read, and a table is stored whose truncation bounds the blocks of a unit at that
moment only. Of other data, a launch selects what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from opendp.mod import Domain, LazyFrameDomain

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..errors.tables import TableError
from ..failures import pass_interrupt
from ..interrupts import Lock, let_in
from ..native import opendp as _native
from ..native.frames import concatenated, height
from ..parallel.partition import Partition
from ..queryables.data import (
    Sealed,
    is_given,
    is_scanned,
    seal_transformed,
    take_in,
    unseal,
)
from ..tables.cut import is_of_tables
from .keys import Keys, Places, keys_of
from .selections import Selections

MOMENT = (
    "the truncation bounds the blocks of a unit at one moment, not over time. Protect each unit in "
    'each block, by oc.tables.scan(..., unit=("person", "week")) with your columns; or seal the '
    "blocks, by oc.tables.create_seals"
)
TRANSFORM_FIRST = (
    "call the block filter itself on data that are transformed, with a d_in that counts all "
    "records of a unit, those that arrive later among them"
)


class Batch(NamedTuple):
    """Records that arrived together.

    :ivar data: lists of records by their keys; a LazyFrame; a table; or a mapping
    :ivar size: number of records; 0 if they are not in memory
    """

    data: Any
    size: int


class Records:
    """Batches of records, and the batch of each block.

    :param token: the sealed data of the invocation
    :param domain: of the data; of each batch, too
    """

    __slots__ = (
        "_batch_of",
        "_batches",
        "_domain",
        "_lock",
        "_partition",
        "_selections",
        "_token",
        "keys",
    )

    def __init__(self, keys: Keys, partition: Partition, domain: Domain, token: Sealed) -> None:
        self.keys, self._partition, self._domain, self._token = keys, partition, domain, token
        self._lock, self._selections = Lock(), Selections()
        self._batches = [self._cut(token)]
        self._batch_of = np.zeros(len(keys), dtype=np.int32)

    def add(self, keys: Any, data: Any) -> None:
        """Add new blocks, whose records are ``data``; or raise and add nothing.

        :param data: None if their records are in the data of the invocation
        """
        batch = 0
        self._check_growth(data)
        if data is not None:
            cut = self._cut(take_in(data, self._domain, self._domain.carrier_type))
        own = keys if type(keys) is range else keys_of(keys)
        many = self.keys.count(own)
        self._check(own)
        with self._lock:
            batches, start = self._batches, len(self.keys)
            if data is not None:
                batch = len(batches)
                self._batches = [*batches, cut]
            # before the keys are added: a launch on them finds their batch
            of = np.full(start + many, batch, dtype=np.int32)
            of[:start] = self._batch_of[:start]
            self._batch_of = of
            try:
                self.keys.add(own)
            except Exception:
                self._batches = batches
                raise

    def _check_growth(self, data: Any) -> None:
        """Raise unless neighbours are no further apart if these data are added, or None."""
        if not self._partition.bounds_over_time(self._domain):
            raise InvalidTypeError(
                f"keys cannot be added: {MOMENT}; or name all keys when you make the filter"
            )
        if data is None:
            if is_scanned(self._token):
                raise InvalidTypeError(
                    "data must be given: the files of the LazyFrame are read once, by the first "
                    "launch; pass the rows of the new blocks, or name all keys when you make the "
                    "filter"
                )
        elif is_of_tables(self._domain):
            raise InvalidTypeError(
                "data must be left out for tables: the rows of a new block are in the table "
                "already; add the block once they are all there"
            )
        elif not is_given(self._token):
            raise InvalidTypeError(
                "data cannot be added: the data of the invocation come from a transformation or "
                f"from other blocks, whose bounds do not hold for what is added; {TRANSFORM_FIRST}"
            )

    def _check(self, keys: Any) -> None:
        """Raise unless the partition can select each of these keys."""
        check_keys(self._partition, self._domain, keys)

    def _cut(self, token: Sealed) -> Sealed:
        """Return a batch, cut if that pays: of a vector, by key."""
        partition: Any = self._partition
        domain, count = self._domain, self._selections.counter()

        def cut(pointer: Any) -> Batch:
            data = _native.to_python(pointer)
            if _native.element_domain(domain) is not None:
                batch = Batch(let_in(_by_key, data, partition.of, partition.owners), len(data))
            else:
                if not is_of_tables(domain) or not partition.bounds_over_time(domain):
                    data = partition.frozen(domain, data)
                batch = Batch(data, height(data) if isinstance(domain, LazyFrameDomain) else 0)
            count(batch.size)
            return batch

        return seal_transformed(token, cut)

    def of(self, places: Places) -> Sealed:
        """Return the records of some blocks, or raise. They are selected when a mechanism runs."""
        if self._may_change:
            return self._select(places, lambda size: None)
        return self._selections.of(places, len(self.keys), lambda told: self._select(places, told))

    @property
    def _may_change(self) -> bool:
        """Whether a block's records are read anew at each launch: those of a mapping."""
        return _native.element_domain(self._domain) is None and not (
            isinstance(self._domain, LazyFrameDomain) or is_of_tables(self._domain)
        )

    def _select(self, places: Places, selected: Callable[[int], None]) -> Sealed:
        """Seal the records of some blocks, or raise.

        What is called here sees no data, and raises if a key cannot be selected.

        :param selected: is told how many they are
        """
        batches = self._batch_of[places]
        if np.all(batches == batches[0]):
            chosen = [(int(batches[0]), places)]
        else:
            order = np.argsort(batches, kind="stable")
            found, starts = np.unique(batches[order], return_index=True)
            chosen = list(zip(found.tolist(), np.split(places[order], starts[1:]), strict=True))
        parts = [(self._batches[batch], self._selector(here)) for batch, here in chosen]
        domain, carrier_type = self._domain, self._domain.carrier_type

        def take(_: Any) -> Any:
            try:
                records = _joined(domain, [select(unseal(one).data) for one, select in parts])
                selected(_size(domain, records))
                return _native.to_pointer(records, carrier_type)
            except TableError:  # the same, whatever the data are
                raise
            except BaseException as error:
                pass_interrupt(error)
            # raised outside the handler: the original error and its frames may hold data
            raise InvalidValueError(
                "blocks failed to select the records; it must work for all data"
            )

        return seal_transformed(self._token, take)

    def _selector(self, places: Places) -> Callable[[Any], Any]:
        keys = self.keys
        if _native.element_domain(self._domain) is None:
            return self._partition.selector(self._domain, keys.at(places))
        return lambda parts: list(
            chain.from_iterable(parts.get(key, ()) for key in keys.at(places))
        )


def _joined(domain: Domain, parts: list[Any]) -> Any:
    """Return the records of several batches together."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(domain, LazyFrameDomain):
        return concatenated(parts)
    if _native.element_domain(domain) is None:
        return {key: one for part in parts for key, one in part.items()}
    return list(chain.from_iterable(parts))


def _size(domain: Domain, records: Any) -> int:
    """Return how many records are in memory."""
    if isinstance(domain, LazyFrameDomain):
        return height(records)
    return 0 if _native.element_domain(domain) is None else len(records)


def check_partition(partition: Partition, domain: Domain) -> None:
    """Raise unless a partition cuts such data, and no record is in two of its groups."""
    partition.selector(domain, ())
    groups = partition.keys()
    if groups is not None:  # values that differ may be equal in the type of a column
        partition.cutter(domain, groups)


def check_keys(partition: Partition, domain: Domain, keys: Any) -> None:
    """Raise unless a partition can select each of some keys, and keys that differ are disjoint."""
    known = partition.keys()
    if known is not None:
        groups = set(known)
        for key in keys:
            if key not in groups:
                raise InvalidValueError(
                    f"keys has {checks.shown(key)}, which is not a group of blocks ({partition})"
                )
    elif _native.element_domain(domain) is None:
        if type(keys) is range and _are_integers(partition, domain, keys):
            return
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            partition.selector(domain, some)
            _check_exact(partition, domain, some)


def _are_integers(partition: Partition, domain: Domain, keys: range) -> bool:
    """Return whether the ends of a range, and so all of it, are integers in their column, too."""
    ends = partition.values(domain, sorted({keys[0], keys[-1]})) if keys else None
    return ends is None or all(type(value) is int for row in ends for value in row)


def _check_exact(partition: Partition, domain: Domain, keys: Any) -> None:
    """Raise unless each key equals its value in the data: two keys may have one value there."""
    rows = partition.values(domain, keys)
    for key, row in zip(keys, rows or (), strict=rows is not None):
        if any(
            one != value for one, value in zip(key if len(row) > 1 else (key,), row, strict=True)
        ):
            raise InvalidValueError(
                f"keys has {checks.shown(key)}, which is {checks.shown(row)} in the types of the "
                "columns, as another key may be; pass keys as the columns have them, not NaN"
            )


_AT_ONCE = 100  # keys of a predicate


def _by_key(records: Any, of: Any, owners: Any) -> dict[Any, list[Any]]:
    """Return the records of each key."""
    parts: dict[Any, list[Any]] = {}
    for record in records:
        try:
            value = of(record)
            key = value if owners is None else owners.get(value, _NOWHERE)
            part = parts.get(key)
        except BaseException as error:  # it would reveal the record, which is in no part
            pass_interrupt(error)
            continue
        if part is None:
            parts[key] = [record]
        else:
            part.append(record)
    return parts


_NOWHERE = object()
