"""The records of blocks: which data a launch on some blocks gets.

Records arrive in batches: the data of the invocation, then one batch for each call that adds blocks
with data. A block's records are all in one batch. When the first mechanism runs, vectors are cut,
LazyFrames are read, and a table is stored whose truncation bounds the blocks of a unit at that
moment only. Of other data, a launch selects what it needs.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from opendp.mod import Domain

from .. import _checks as checks
from .. import _opendp as _native
from .. import errors, measures
from ..data import Partition, kind_of
from ..queryables import Sealed, seal_selected, seal_transformed, take_in, unseal
from .block_keys import Keys, Places, Selections, keys_of

MOMENT = (
    "the truncation bounds the blocks of a unit at one moment, not over time. Protect each unit in "
    'each block, by oc.tables.scan(..., unit=("person", "week")) with your columns'
)
TRANSFORM_FIRST = (
    "call the block filter itself on data that are transformed, with a d_in that counts all "
    "records of a unit, those that arrive later among them"
)


class Batch(NamedTuple):
    """Records that arrived together.

    :ivar data: grouped, as the kind of the data does it (:meth:`.Kind.grouped`)
    :ivar size: number of records; 0 if they are not in memory
    """

    data: errors.Data
    size: int


class Records:
    """Batches of records, and the batch of each block.

    :param token: the sealed data of the invocation
    :param domain: of the data; of each batch, too
    """

    def __init__(self, keys: Keys, partition: Partition, domain: Domain, token: Sealed) -> None:
        self.keys, self._partition, self._domain, self._token = keys, partition, domain, token
        self._kind, self._lock, self._selections = kind_of(domain), _native.Lock(), Selections()
        self._batches = [self._cut(token)]
        self._batch_of = np.zeros(len(keys), dtype=np.int32)

    def add(self, keys: Any, data: errors.Data) -> None:
        """Add new blocks, whose records are ``data``; or raise and add nothing.

        :param data: None if their records are in the data of the invocation
        """
        batch = 0
        self._check_growth(data)
        if data is not None:
            cut = self._cut(take_in(data, self._domain, str(self._domain.carrier_type), self._kind))
        own = keys if type(keys) is range else keys_of(keys)
        many = self.keys.count(own)
        check_keys(self._partition, self._domain, own)
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

    def _check_growth(self, data: errors.Data) -> None:
        """Raise unless neighbours are no further apart if these data are added, or None."""
        if not self._kind.bounds_over_time(self._domain, self._partition.of):
            raise errors.InvalidTypeError(
                f"keys cannot be added: {MOMENT}; or name all keys when you make the filter"
            )
        if data is None:
            if self._token.files:
                raise errors.InvalidTypeError(
                    "data must be given: the files of the LazyFrame are read once, by the first "
                    "launch; pass the rows of the new blocks, or name all keys when you make the "
                    "filter"
                )
        elif self._kind.in_engine:
            raise errors.InvalidTypeError(
                "data must be left out for tables: the rows of a new block are in the table "
                "already; add the block once they are all there"
            )
        elif not self._token.given:
            raise errors.InvalidTypeError(
                "data cannot be added: the data of the invocation come from a transformation or "
                f"from other blocks, whose bounds do not hold for what is added; {TRANSFORM_FIRST}"
            )

    def _cut(self, token: Sealed) -> Sealed:
        """Return a batch, cut if that pays: of a vector, by key."""
        partition, kind, domain = self._partition, self._kind, self._domain
        count = self._selections.counter()

        def cut(pointer: Any) -> Batch:
            given = _native.to_python(pointer)
            data = kind.grouped(domain, partition.of, partition.owners, given)
            batch = Batch(data, kind.size(data))
            count(batch.size)
            return batch

        return seal_transformed(token, cut)

    def of(self, places: Places) -> Sealed:
        """Return the records of some blocks, or raise. They are selected when a mechanism runs."""
        if not self._kind.stays:
            return self._select(places, lambda size: None)
        return self._selections.of(places, len(self.keys), lambda told: self._select(places, told))

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
        selector, domain, at = self._partition.selector, self._domain, self.keys.at
        parts = [(self._batches[batch], selector(domain, at(here))) for batch, here in chosen]
        kind = self._kind

        def take() -> Any:
            found = [select(unseal(one).data) for one, select in parts]
            records = found[0] if len(found) == 1 else kind.joined(found)
            selected(kind.size(records))
            return records

        failure = "blocks failed to select the records; it must work for all data"
        return seal_selected(self._token, domain, take, failure)


def check_partition(partition: Partition, domain: Domain) -> None:
    """Raise unless a partition cuts such data, and no record is in two of its groups."""
    partition.selector(domain, ())
    groups = partition.keys()
    if groups is not None:  # values that differ may be equal in the type of a column
        partition.cutter(domain, groups)


def check_keys(partition: Partition, domain: Domain, keys: Sequence[Any]) -> None:
    """Raise unless a partition can select each of some keys, and keys that differ are disjoint."""
    known = partition.keys()
    if known is not None:
        groups = set(known)
        for key in keys:
            if key not in groups:
                raise errors.InvalidValueError(
                    f"keys has {checks.shown(key)}, which is not a group of blocks ({partition})"
                )
    elif not kind_of(domain).by_function:
        if type(keys) is range and _are_integers(partition, domain, keys):
            return
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            partition.selector(domain, some)
            _check_exact(partition, domain, some)


def _are_integers(partition: Partition, domain: Domain, keys: range) -> bool:
    """Return whether the ends of a range, and so all of it, are integers in their column, too."""
    if not keys:
        return True
    ends = kind_of(domain).values(domain, partition.of, sorted({keys[0], keys[-1]}))
    return ends is None or all(type(value) is int for row in ends for value in row)


def _check_exact(partition: Partition, domain: Domain, keys: Sequence[Any]) -> None:
    """Raise unless each key equals its value in the data: two keys may have one value there."""
    rows = kind_of(domain).values(domain, partition.of, keys)
    for key, row in zip(keys, rows or (), strict=rows is not None):
        if any(
            one != value for one, value in zip(key if len(row) > 1 else (key,), row, strict=True)
        ):
            raise errors.InvalidValueError(
                f"keys has {checks.shown(key)}, which is {checks.shown(row)} in the types of the "
                "columns, as another key may be; pass keys as the columns have them, not NaN"
            )


_AT_ONCE = 100  # keys of a predicate


# How far neighbours are apart, in steps that change one block each, and what that costs.


class BlockSteps:
    """Group privacy along a path of datasets, from the budget of a block.

    :param factor: how many records, or parts of a unit, differ at distance 1
    :param units: whether the distance counts units of a table that does not change, each of which
        may have rows in several blocks
    """

    def __init__(self, measure: measures.CompositionMeasure[Any], factor: int, units: bool) -> None:
        self._measure, self._factor, self._units = measure, factor, units
        if units and factor > 1 and measure.exclusive_reason:
            raise errors.UnsupportedMeasureError(
                f"a unit has rows in up to {factor} blocks, whose filters are not known to compose "
                f"under {measure.name}: {measure.reason}; truncate to one block, or take another "
                "measure"
            )

    def share(self, d_in: errors.Distance, d_out: errors.Loss) -> Any:
        """Return the budget of each block."""
        size = self._size(d_in)
        if size == 0:
            raise errors.InvalidValueError(
                f"d_in ({d_in}) must be at least 1, or d_out bounds nothing"
            )
        share = self._measure.member_loss(d_out, size)
        if not self._units or self._factor == 1:
            return share
        return self._measure.split(share, [Fraction(1)] * self._factor)[0]

    def loss(self, d_in: errors.Distance, share: errors.Loss) -> Any:
        """Return the loss at a distance, if each block has this budget."""
        size, measure = self._size(d_in), self._measure
        if size == 0:
            return measure.zero
        if self._units and self._factor > 1:
            accounting = measure.fixed_sum()
            share = accounting.start(measure).after(share, self._factor).loss
        return measure.validate("d_out", measure.group_loss(share, size))

    def _size(self, d_in: errors.Distance) -> int:
        """Return how many steps neighbours are apart."""
        if not isinstance(d_in, int):
            raise errors.InvalidTypeError(
                f"d_in ({d_in!r}) must be an integer, to be divided over blocks"
            )
        size = d_in if self._units else d_in * self._factor
        if size > self._measure.most_parallel:
            raise errors.InvalidValueError(
                f"neighbours are {size} steps apart, which must be at most "
                f"{self._measure.most_parallel} under {self._measure.name}; pass a smaller d_in"
            )
        return size
