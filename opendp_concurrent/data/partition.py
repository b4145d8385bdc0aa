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

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from opendp.mod import Domain, ExtrinsicDistance, Metric

from .. import _checks as checks
from ..errors import Argument, Data, InvalidTypeError, InvalidValueError, Json, shown
from .kind import Cut, Kind, Of, Own, Owners, kind_of, metric_of_records


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


@checks.guard("nothing hostile", None, 3, "text")
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


# How users say which part of the data a record is in.

_MOST_VALUES = 1_000_000


def by_key(function: Callable[[Any], Any]) -> Partition:
    """Split a vector of records by a function from a record to its key.

    A record is in the part of its key. It is in no part if the key is not a public key, if the key
    is not hashable, or if the function raises. An error would reveal something about the record.

    :param function: a deterministic function of one record only; the parts are then stable
    :return: a partition for :func:`.make_parallel_composition`
    :raises InvalidTypeError: if it is not callable

    :example:

    >>> oc.c.by_key(lambda record: record % 10)
    by_key(...)
    """
    return ByRecord(checks.function(function=function), None, "by_key(...)")


def by_column(*names: str) -> Partition:
    """Split a LazyFrame or a table in an engine by the values of one or several columns.

    A row is in the part of its value. With several columns the keys are tuples. None stands for a
    missing value. A unit of a table may have rows in several parts: truncate first, or name the
    columns in the table's unit, too. A table that is truncated is stored when it is first cut.

    :param names: the names of the columns
    :return: a partition for :func:`.make_parallel_composition`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.c.by_column("region", "year")
    by_column('region', 'year')
    """
    if not names:
        raise InvalidTypeError("names must be at least one name of a column")
    names = tuple(checks.each("names of columns", checks.text)(names=names))
    if len(set(names)) != len(names):
        raise InvalidValueError(f"names ({', '.join(names)}) must be different")
    return ByRecord(names, None, f"by_column({', '.join(map(repr, names))})")


def by_values(
    groups: Mapping[Any, Collection[Any]], of: Callable[[Any], Any] | str | None = None
) -> Partition:
    """Split a vector or a LazyFrame by explicit groups of values.

    The function raises if a value is in two groups. A record is in no part if its value is in no
    group, or if its group has no measurement.

    :param groups: a mapping from the key of each part to its values, at most a million in all
    :param of: the value of a record: the record itself if left out, a function of the record, or
        for LazyFrames and tables the name of a column
    :return: a partition for :func:`.make_parallel_composition`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.c.by_values({"young": range(0, 30), "old": range(30, 120)})
    by_values(...)
    >>> oc.c.by_values({"young": range(0, 31), "old": range(30, 120)})
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.InvalidValueError: groups overlap: 30 is in both 'young' and 'old'; ...
    """
    owners = _disjoint(groups)
    if of is None:
        return ByRecord(itself, owners, "by_values(...)")
    if isinstance(of, str):
        return ByRecord((of,), owners, f"by_values(..., of={of!r})")
    return ByRecord(checks.function(of=of), owners, "by_values(..., of=...)")


def by_split(function: Callable[[Any, tuple[Any, ...]], Mapping[Any, Any]]) -> Partition:
    """Split a dataset of any kind by a function, whose parts you promise to be disjoint.

    You promise that neighbours at distance d have parts whose distances add up to at most d, or 2 d
    for metrics with that factor. With your own metric, distances are integers and the parts have
    the same metric. It holds if an individual is in at most one part, chosen by their data only.

    :param function: takes the dataset and the public keys; must return a mapping from every key to
        a part in the parts' domain, for all data
    :return: a partition for :func:`.make_parallel_composition`
    :raises InvalidTypeError: if it is not callable

    :example:

    >>> oc.c.by_split(lambda tables, keys: {key: tables.get(key, []) for key in keys})
    by_split(...)
    """
    return BySplit(checks.function(function=function))


def by_entry() -> Partition:
    """Split data that are a mapping from the key of each part to its content.

    A mechanism gets the mapping with the entries of its parts; a part without an entry is empty.
    You promise that the distance of neighbours is the sum of the distances of their entries: an
    individual is in at most one entry, chosen by their data only. For a block filter with d_in
    above 1, entries at distance k must be k steps of distance 1 apart. Keys are public.

    :return: a partition for :func:`.make_block_filter` and :func:`.make_parallel_composition`

    :example:

    >>> oc.c.by_entry()
    by_entry()
    """
    return ByEntry()


def _disjoint(groups: Any) -> dict[Any, Any]:
    """Return the group of each value, or raise if a value is in two groups."""
    given = checks.mapping("keys to values", groups=groups)
    if not given:
        raise InvalidValueError("groups must have at least one key")
    owners: dict[Any, Any] = {}
    for each, values in given.items():
        key, name = checks.plain(each), f"groups[{shown(each)}]"
        if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
            raise InvalidTypeError(
                f"{name} must be a collection of values, found {type(values).__name__}"
            )
        for value in map(checks.plain, checks.read("values", **{name: values})):
            checks.check_key(name, value)
            if owners.setdefault(value, key) != key:
                raise InvalidValueError(
                    f"groups overlap: {shown(value)} is in both {shown(owners[value])} and "
                    f"{shown(key)}; leave it in one of them"
                )
        if len(owners) > _MOST_VALUES:
            raise InvalidValueError(
                f"groups has more than {_MOST_VALUES} values; pass a function to by_key instead"
            )
    return owners
