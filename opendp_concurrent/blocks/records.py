"""The records of blocks: which data a launch on some blocks gets.

Records arrive in batches: the data of the invocation, then one batch for each call that adds blocks
with data. A block's records are all in one batch. Vectors are cut once, when the first mechanism
runs; of other data, a launch selects what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from opendp.mod import Domain, LazyFrameDomain

from .. import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..failures import pass_interrupt
from ..interrupts import Lock, let_in
from ..native import opendp as _native
from ..native.frames import concatenated
from ..parallel.partition import Partition
from ..queryables.data import Sealed, seal_transformed, take_in, unseal
from ..tables.cut import is_of_tables
from .keys import Keys, Places, keys_of

Take = Callable[[], Any]


class Records:
    """Batches of records, and the batch of each block.

    :param token: the sealed data of the invocation
    :param domain: of the data; of each batch, too
    """

    __slots__ = ("_batch_of", "_batches", "_domain", "_lock", "_partition", "keys")

    def __init__(self, keys: Keys, partition: Partition, domain: Domain, token: Sealed) -> None:
        self.keys, self._partition, self._domain = keys, partition, domain
        self._lock = Lock()
        self._batches = [self._cut(token)]
        self._batch_of = np.zeros(len(keys), dtype=np.int32)

    def add(self, keys: Any, data: Any) -> None:
        """Add new blocks, whose records are ``data``; or raise and add nothing.

        :param data: None if their records are in the data of the invocation
        """
        batch = 0
        if data is not None:
            if is_of_tables(self._domain):
                raise InvalidTypeError(
                    "data must be left out for tables: the rows of a new block are in the table "
                    "already; add the block once they are all there"
                )
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

    def _check(self, keys: Any) -> None:
        """Raise unless the partition can select each of these keys."""
        check_keys(self._partition, self._domain, keys)

    def _cut(self, token: Sealed) -> Sealed:
        """Return a batch, cut if that pays: of a vector, by key."""
        if _native.element_domain(self._domain) is None:
            return seal_transformed(token, _native.to_python)
        partition: Any = self._partition
        of, owners = partition.of, partition.owners
        return seal_transformed(
            token, lambda data: let_in(_by_key, _native.to_python(data), of, owners)
        )

    def of(self, places: Places) -> Take:
        """Return a function that returns the records of some blocks, or raise.

        What is called here sees no data, and raises if a key cannot be selected. The function is
        called when the mechanism runs.
        """
        batches = self._batch_of[places] if len(self._batches) > 1 else None
        if batches is None or np.all(batches == batches[0]):
            chosen = [(0 if batches is None else int(batches[0]), places)]
        else:
            chosen = [(one, places[batches == one]) for one in np.unique(batches).tolist()]
        parts = [(self._batches[batch], self._selector(here)) for batch, here in chosen]

        def take() -> Any:
            try:
                return self._joined([select(unseal(token)) for token, select in parts])
            except BaseException as error:
                pass_interrupt(error)
            # raised outside the handler: the original error and its frames may hold data
            raise InvalidValueError(
                "blocks failed to select the records; it must work for all data"
            )

        return take

    def _selector(self, places: Places) -> Callable[[Any], Any]:
        if _native.element_domain(self._domain) is None:
            return self._partition.selector(self._domain, self.keys.at(places))
        return lambda parts: list(
            chain.from_iterable(parts.get(key, ()) for key in self.keys.at(places))
        )

    def _joined(self, parts: list[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        if isinstance(self._domain, LazyFrameDomain):
            return concatenated(parts)
        if _native.element_domain(self._domain) is None:
            return {key: one for part in parts for key, one in part.items()}
        return list(chain.from_iterable(parts))


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
