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
from dataclasses import dataclass, replace
from typing import Any

from opendp.domains import lazyframe_domain, vector_domain, with_margin
from opendp.metrics import (
    change_one_distance,
    hamming_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import (
    Domain,
    ExtrinsicDistance,
    ExtrinsicDomain,
    LazyFrameDomain,
    Metric,
)

from ..arguments import checks, owned
from ..arguments.checks import is_a, mapping, shown
from ..errors import InvalidTypeError, InvalidValueError
from ..failures import pass_interrupt
from ..native import opendp as _native
from ..tables.cut import (
    bounds_over_time,
    frozen,
    is_of_tables,
    parts_of_a_unit,
    rows_of,
    table_cutter,
)

Cut = Callable[[Any], Mapping[Any, Any]]
_MOST_VALUES = 1_000_000


class Partition(ABC):
    """Assigns each record to a part. Made by ``by_key``, ``by_column`` and similar functions."""

    @abstractmethod
    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a dataset of Python values into a part for each key."""

    def keys(self) -> tuple[Any, ...] | None:
        """Return the public keys, if the partition has them."""
        return None

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a dataset to its records in the parts of ``keys``, or raise.

        :raises InvalidTypeError: if a dataset is not known to be the union of its parts
        """
        raise InvalidTypeError(
            f"blocks ({self}) cuts data into parts that cannot be put together again, and a launch "
            "is on the union of its blocks; pass by_key, by_column, by_values or by_entry"
        )

    def values(self, input_domain: Domain, keys: Collection[Any]) -> list[tuple[Any, ...]] | None:
        """Return the values of keys in the types of the columns; None if there are no columns."""
        del input_domain, keys
        return None

    def bounds_over_time(self, input_domain: Domain) -> bool:
        """Return whether the factor on the distance also holds for data that change."""
        del input_domain
        return True

    def frozen(self, input_domain: Domain, data: Any) -> Any:
        """Return the data, whose parts that differ between neighbours no longer change."""
        if isinstance(input_domain, LazyFrameDomain):
            return data.collect().lazy()  # a plan may read files, and sample
        return data

    def metric_of_parts(
        self, input_metric: Metric, input_domain: Domain | None = None
    ) -> tuple[Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise.

        :param input_domain: which the factor depends on for tables only
        """
        del input_domain
        for metric, parts, factor in (
            (symmetric_distance(), symmetric_distance(), 1),
            (insert_delete_distance(), insert_delete_distance(), 1),
            (change_one_distance(), symmetric_distance(), 2),
            (hamming_distance(), insert_delete_distance(), 2),
        ):
            if input_metric == metric:
                return parts, factor
        raise InvalidValueError(
            f"input_metric ({input_metric}) does not add up over parts: it must be "
            "dp.symmetric_distance(), dp.insert_delete_distance(), dp.change_one_distance() or "
            "dp.hamming_distance(). Where the unit is an individual with many records, these may "
            "be in every part; bound their number first"
        )


@dataclass(frozen=True, slots=True, repr=False)
class ByRecord(Partition):
    """A partition in which a record is in the part that owns the record's value.

    :ivar of: gives the value of a record: a function, or the names of columns
    :ivar owners: maps a value to the key of its part; if left out, each key owns itself
    """

    of: Callable[[Any], Any] | tuple[str, ...]
    owners: Mapping[Any, Any] | None
    name: str

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a vector or a LazyFrame."""
        owners = self._owners(keys)
        if isinstance(self.of, tuple):
            if is_of_tables(input_domain):
                return table_cutter(self.of, input_domain, owners, keys)
            if not isinstance(input_domain, LazyFrameDomain):
                raise InvalidTypeError(
                    f"partition ({self.name}) is for LazyFrames and tables, input_domain is "
                    f"{input_domain}"
                )
            return _frame_cutter(self.of, input_domain, owners, keys)
        if _native.element_domain(input_domain) is None:
            raise InvalidTypeError(
                f"partition ({self.name}) is for vectors of records, input_domain is "
                f"{input_domain}; LazyFrames have columns, and other data by_split"
            )
        return _vector_cutter(self.of, owners, keys)

    def keys(self) -> tuple[Any, ...] | None:
        """Return the keys of the groups, if there are groups."""
        return None if self.owners is None else tuple(dict.fromkeys(self.owners.values()))

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a dataset to its records in the parts of ``keys``."""
        wanted = set(keys)
        chosen = (
            dict.fromkeys(keys, True)
            if self.owners is None
            else {value: True for value, key in self.owners.items() if key in wanted}
        )
        cut = ByRecord(self.of, chosen, self.name).cutter(input_domain, (True,) if chosen else ())
        return lambda data: cut(data)[True]

    def values(self, input_domain: Domain, keys: Collection[Any]) -> list[tuple[Any, ...]] | None:
        """Return the values of keys in the types of the columns; None if there are no columns."""
        if not isinstance(self.of, tuple):
            return None
        if is_of_tables(input_domain):
            return rows_of(self.of, input_domain, keys)
        rows: list[tuple[Any, ...]] = _table(
            self.of, _native.empty_frame(input_domain), list(keys)
        ).rows()
        return rows

    def bounds_over_time(self, input_domain: Domain) -> bool:
        """Return whether the factor on the distance also holds for data that change."""
        if isinstance(self.of, tuple) and is_of_tables(input_domain):
            return bounds_over_time(self.of, input_domain)
        return True

    def frozen(self, input_domain: Domain, data: Any) -> Any:
        """Return the data, whose parts that differ between neighbours no longer change."""
        if isinstance(self.of, tuple) and is_of_tables(input_domain):
            return frozen(self.of, input_domain, data)
        return Partition.frozen(self, input_domain, data)

    def metric_of_parts(
        self, input_metric: Metric, input_domain: Domain | None = None
    ) -> tuple[Metric, int]:
        """Return the parts' metric and the factor on the distance, or raise."""
        if isinstance(self.of, tuple) and input_domain is not None and is_of_tables(input_domain):
            return input_metric, parts_of_a_unit(self.of, input_domain, input_metric)
        return Partition.metric_of_parts(self, input_metric)

    def _owners(self, keys: tuple[Any, ...]) -> Mapping[Any, Any]:
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

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that calls the user's function."""
        del input_domain

        def cut(data: Any) -> Mapping[Any, Any]:
            parts = self.function(data, keys)
            return {key: parts[key] for key in keys}

        return cut

    def metric_of_parts(
        self, input_metric: Metric, input_domain: Domain | None = None
    ) -> tuple[Metric, int]:
        """Return the parts' metric; for a user's metric, the user vouches for the factor."""
        if isinstance(input_metric, ExtrinsicDistance):
            return input_metric, 1
        return Partition.metric_of_parts(self, input_metric)

    def __repr__(self) -> str:
        return "by_split(...)"


@dataclass(frozen=True, slots=True, repr=False)
class ByEntry(Partition):
    """A partition of a mapping, whose entries are the parts."""

    def cutter(self, input_domain: Domain, keys: tuple[Any, ...]) -> Cut:
        """Return the function that cuts a mapping into mappings with one entry each."""
        self._check(input_domain)
        return lambda data: {key: self._entries(data, (key,)) for key in keys}

    def selector(self, input_domain: Domain, keys: Collection[Any]) -> Callable[[Any], Any]:
        """Return the function from a mapping to its entries with these keys."""
        self._check(input_domain)
        return lambda data: self._entries(data, keys)

    def metric_of_parts(
        self, input_metric: Metric, input_domain: Domain | None = None
    ) -> tuple[Metric, int]:
        """Return the parts' metric; for a user's metric, the user vouches for the factor."""
        del input_domain
        if isinstance(input_metric, ExtrinsicDistance):
            return input_metric, 1
        return Partition.metric_of_parts(self, input_metric)

    def _check(self, input_domain: Domain) -> None:
        if not isinstance(input_domain, ExtrinsicDomain) or is_of_tables(input_domain):
            raise InvalidTypeError(
                f"partition (by_entry()) is for mappings, in a domain made by dp.user_domain; "
                f"input_domain is {input_domain}"
            )

    @staticmethod
    def _entries(data: Any, keys: Collection[Any]) -> dict[Any, Any]:
        return {key: data[key] for key in keys if key in data}

    def __repr__(self) -> str:
        return "by_entry()"


def by_key(function: Callable[[Any], Any]) -> Partition:
    """Cut a vector of records by a function from a record to its key.

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
    """Cut a LazyFrame or a table in an engine by the values of a column, or of several.

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
    names = _columns(names)
    if len(set(names)) != len(names):
        raise InvalidValueError(f"names ({', '.join(names)}) must be different")
    return ByRecord(names, None, f"by_column({', '.join(map(repr, names))})")


def by_values(
    groups: Mapping[Any, Collection[Any]], of: Callable[[Any], Any] | str | None = None
) -> Partition:
    """Cut a vector or a LazyFrame by explicit groups of values.

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
    """Cut a whole dataset of any kind by a function that you vouch for.

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
    """Cut data of your own kind, which are a mapping from the key of each part to its content.

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


def domain_of_parts(input_domain: Domain) -> Domain:
    """Return the domain of each part, or raise."""
    element_domain = _native.element_domain(input_domain)
    if element_domain is not None:
        return vector_domain(element_domain)
    if isinstance(input_domain, LazyFrameDomain):
        columns = [input_domain.get_series_domain(name) for name in input_domain.columns]
        margin = input_domain.get_margin([])
        parts = lazyframe_domain(columns)
        if margin.max_length is None:
            return parts
        return with_margin(parts, replace(margin, max_groups=None, invariant=None))
    if isinstance(input_domain, ExtrinsicDomain):
        return input_domain
    raise InvalidTypeError(
        f"input_domain ({input_domain}) cannot be split into parts; it must be made by "
        "dp.vector_domain, dp.lazyframe_domain or dp.user_domain"
    )


def itself(record: Any) -> Any:
    """Return the record, which is its own value."""
    return record


def _columns(names: tuple[Any, ...]) -> tuple[str, ...]:
    for name in names:
        if not checks.is_a(name, str):
            raise InvalidTypeError(f"names must be strings, found {type(name).__name__}")
    return tuple(map(str.__str__, names))


def _disjoint(groups: Any) -> dict[Any, Any]:
    """Return the group of each value, or raise if a value is in two groups."""
    given = mapping("keys to values", groups=groups)
    if not given:
        raise InvalidValueError("groups must have at least one key")
    total, own = 0, {}
    for key, values in given.items():
        name = f"groups[{shown(key)}]"
        if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
            raise InvalidTypeError(
                f"{name} must be a collection of values, found {type(values).__name__}"
            )
        own[owned.plain(key)] = [
            owned.plain(one) for one in checks.read("values", **{name: values})
        ]
        total += len(own[owned.plain(key)])
    if total > _MOST_VALUES:
        raise InvalidValueError(
            f"groups has {total} values, which must be at most {_MOST_VALUES}; "
            "pass a function to by_key instead"
        )
    owners: dict[Any, Any] = {}
    for key, values in own.items():
        for value in values:
            check_key(f"groups[{shown(key)}]", value)
            if value in owners and owners[value] != key:
                raise InvalidValueError(
                    f"groups overlap: {shown(value)} is in both {shown(owners[value])} and "
                    f"{shown(key)}; leave it in one of them"
                )
            owners[value] = key
    return owners


def check_key(name: str, key: Any) -> None:
    """Raise unless ``key`` can be looked up."""
    try:
        hash(key)
    except Exception:
        raise InvalidTypeError(
            f"{name} has {shown(key)}, which is not hashable ({type(key).__name__}); "
            "pass a string, a number or a tuple of these"
        ) from None
    if _has_nan(key):
        raise InvalidValueError(f"{name} has {shown(key)}, which does not equal itself")


def _has_nan(key: Any) -> bool:
    """Return whether a key, or a part of it, does not equal itself. Tuples hide this."""
    return any(map(_has_nan, key)) if is_a(key, tuple) else bool(key != key)


def _vector_cutter(of: Any, owners: Mapping[Any, Any], keys: tuple[Any, ...]) -> Cut:
    def cut(records: Any) -> Mapping[Any, Any]:
        parts: dict[Any, list[Any]] = {key: [] for key in keys}
        places = {value: parts[key] for value, key in owners.items()}
        for record in records:
            try:
                part = places.get(of(record))
            except BaseException as error:  # it would reveal the record, which is in no part
                pass_interrupt(error)
                continue
            if part is not None:
                part.append(record)
        return parts

    return cut


def _frame_cutter(
    columns: tuple[str, ...],
    input_domain: LazyFrameDomain,
    owners: Mapping[Any, Any],
    keys: tuple[Any, ...],
) -> Cut:
    names = input_domain.columns
    for column in columns:
        if column not in names:
            raise InvalidValueError(
                f"partition names the column {column!r}, which input_domain does not have; "
                f"its columns are: {', '.join(names)}"
            )
    place = "part"
    while place in names:
        place += "_"
    numbers = {key: number for number, key in enumerate(keys)}
    table = _table(columns, _native.empty_frame(input_domain), list(owners))
    part_numbers = [numbers[key] for key in owners.values()]
    table = table.with_columns(table.get_column(columns[0]).__class__(place, part_numbers))

    def cut(frame: Any) -> Mapping[Any, Any]:
        rows = frame.collect()
        placed = rows.join(
            table, on=list(columns), how="inner", nulls_equal=True, maintain_order="left"
        )
        found = placed.partition_by(place, as_dict=True, include_key=False)
        nothing = rows.clear()
        return {key: found.get((number,), nothing).lazy() for key, number in numbers.items()}

    return cut


def _table(columns: tuple[str, ...], empty: Any, values: list[Any]) -> Any:
    """Return the public values as a frame in the columns' types; raise if two become equal."""
    rows = values if len(columns) > 1 else [(value,) for value in values]
    for row in rows:
        if not isinstance(row, tuple) or len(row) != len(columns):
            raise InvalidTypeError(
                f"measurements has the key {shown(row)}, which must be a tuple of {len(columns)} "
                f"values, one for each of {', '.join(columns)}"
            )
    series = []
    for index, column in enumerate(columns):
        kind = empty.get_column(column)
        try:
            cells = [row[index] for row in rows]
            series.append(kind.__class__(column, cells, dtype=kind.dtype, strict=True))
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise InvalidTypeError(
                f"the public values must be of the type of the column {column!r}, {kind.dtype}: "
                f"{reason}"
            ) from None
    table = empty.__class__(series)
    if table.is_duplicated().any():
        raise InvalidValueError(
            f"the public values overlap: two of them are equal in the types of {', '.join(columns)}"
        )
    return table
