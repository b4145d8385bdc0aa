"""How users say which part of the data a record is in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..arguments import checks
from ..arguments.checks import mapping, shown
from ..arguments.keys import check_key
from ..arguments.owned import plain
from ..errors import InvalidTypeError, InvalidValueError
from .partition import ByEntry, ByRecord, BySplit, Partition, itself

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
    names = _columns(names)
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


def _columns(names: tuple[Any, ...]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str):
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
        own[plain(key)] = [plain(one) for one in checks.read("values", **{name: values})]
        total += len(own[plain(key)])
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
