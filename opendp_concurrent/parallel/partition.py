"""Partitions of the data by public keys, so that each record is in at most one part.

* The parts' domain. A vector's part has the elements' domain and no size. A LazyFrame's part has
  the series' domains and the maximum length of the whole dataset. Other margins declare keys and
  lengths of the whole dataset only, so they are omitted. A user's domain stays unchanged.
* The parts' metric, and a factor: neighbours at distance d have parts whose distances add up to at
  most the factor times d. If records are cut one by one:

  - symmetric distance, 1: the multisets of the parts are disjoint, and so are their differences;
  - insert-delete distance, 1: a longest common subsequence, restricted to a part, is a common
    subsequence of that part, and no edit is counted twice;
  - change-one distance, 2: a change is one deletion, in one part, and one insertion, in the same
    part or another, so the parts are under symmetric distance;
  - Hamming distance, 2: the same, in place, so the parts are under insert-delete distance.

  For tables in an engine, the distance counts units, and the factor is the number of parts in which
  a unit has rows at most, which a truncation bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from opendp.mod import Domain, ExtrinsicDistance, Metric

from ..arguments.checks import guard, shown
from ..data.kind import Cut, Kind, Of, Owners, kind_of, metric_of_records
from ..data.own import Own
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Argument, Data, Json


class Partition(ABC):
    """Assigns each record to a part. Made by ``by_key``, ``by_column`` and similar functions.

    What differs between kinds of data is asked of the kind (:class:`.Kind`).

    :ivar of: gives the value of a record: a function, or the names of columns; None if the parts
        are not found by records
    :ivar owners: maps a value to the key of its part; if left out, each key owns itself
    """

    of: Of | None
    owners: Owners | None

    @abstractmethod
    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a dataset of Python values into a part for each key."""

    def keys(self) -> tuple[Any, ...] | None:
        """Return the public keys, if the partition has them."""
        return None

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a grouped dataset to its records in the parts of ``keys``.

        :raises InvalidTypeError: if a dataset is not known to be the union of its parts
        """
        raise InvalidTypeError(
            f"blocks ({self}) cuts data into parts that cannot be put together again, and a launch "
            "is on the union of its blocks; pass by_key, by_column, by_values or by_entry"
        )

    def metric_of_parts(self, input_metric: Metric, input_domain: Domain) -> tuple[Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise.

        For a user's metric, the user vouches for the factor.
        """
        if isinstance(input_metric, ExtrinsicDistance):
            return input_metric, 1
        return metric_of_records(input_metric)


@guard("nothing hostile", None, 3, "text")
def partitioned(name: str, value: Argument) -> Partition:
    """Return the argument if it is a partition, or raise."""
    if not isinstance(value, Partition):
        raise InvalidTypeError(
            f"{name} must be made by by_key, by_column, by_values, by_split or by_entry, found "
            f"{type(value).__name__}"
        )
    return value


@dataclass(frozen=True, slots=True, repr=False)
class ByRecord(Partition):
    """A partition in which a record is in the part that owns the record's value."""

    of: Of
    owners: Owners | None
    name: str

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a dataset into a part for each key."""
        owners = self._owners(keys)
        return self._kind(input_domain).cutter(input_domain, self.of, owners, keys)

    def keys(self) -> tuple[Any, ...] | None:
        """Return the keys of the groups, if there are groups."""
        return None if self.owners is None else tuple(dict.fromkeys(self.owners.values()))

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a grouped dataset to its records in the parts of ``keys``."""
        return self._kind(input_domain).selector(input_domain, self.of, self.owners, keys)

    def metric_of_parts(self, input_metric: Metric, input_domain: Domain) -> tuple[Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise."""
        return kind_of(input_domain).metric_of_parts(input_domain, self.of, input_metric)

    def _kind(self, input_domain: Domain) -> Kind:
        """Return the kind of the data if it has such values of records, or raise."""
        kind = kind_of(input_domain)
        if isinstance(self.of, tuple):
            if not kind.by_columns:
                raise InvalidTypeError(
                    f"partition ({self.name}) is for LazyFrames and tables, input_domain is "
                    f"{input_domain}"
                )
        elif not kind.by_function:
            raise InvalidTypeError(
                f"partition ({self.name}) is for vectors of records, input_domain is "
                f"{input_domain}; LazyFrames have columns, and other data by_split"
            )
        return kind

    def _owners(self, keys: tuple[Any, ...]) -> Owners:
        if self.owners is None:
            return {key: key for key in keys}
        known = set(self.owners.values())
        for key in keys:
            if key not in known:
                raise InvalidValueError(
                    f"partition ({self.name}) has no values for measurements[{shown(key)}]; "
                    "add a group of that name"
                )
        wanted = set(keys)
        return {value: key for value, key in self.owners.items() if key in wanted}

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class BySplit(Partition):
    """A partition by a function of the whole dataset."""

    function: Callable[[Any, tuple[Any, ...]], Mapping[Any, Any]]
    of = owners = None

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that calls the user's function."""

        def cut(data: Data) -> Mapping[Any, Any]:
            parts = self.function(data, keys)
            return {key: parts[key] for key in keys}

        return cut

    def __repr__(self) -> str:
        return "by_split(...)"


@dataclass(frozen=True, slots=True, repr=False)
class ByEntry(Partition):
    """A partition of a mapping, whose entries are the parts."""

    of = owners = None

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a mapping into mappings with one entry each."""
        self._check(input_domain)
        return lambda data: {key: self._entries(data, (key,)) for key in keys}

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a mapping to its entries with these keys."""
        self._check(input_domain)
        return lambda data: self._entries(data, keys)

    def _check(self, input_domain: Domain) -> None:
        if type(kind_of(input_domain)) is not Own:
            raise InvalidTypeError(
                f"partition (by_entry()) is for mappings, in a domain made by dp.user_domain; "
                f"input_domain is {input_domain}"
            )

    @staticmethod
    def _entries(data: Data, keys: Collection[Any]) -> dict[Any, Any]:
        return {key: data[key] for key in keys if key in data}

    def __repr__(self) -> str:
        return "by_entry()"


def itself(record: Json) -> Any:
    """Return the record, which is its own value."""
    return record
