"""Domains and metrics of streams: the items of a stream, and the distance of two streams.

A stream has one item, or None, at each step. Steps are public. A continual mechanism is launched
on the empty stream, ``[]``; items arrive as updates. Kinds of items are frozen dataclasses without
slots, since OpenDP tries to set an attribute on descriptors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from opendp.mod import Domain, Metric

from .. import _checks as checks
from .. import _opendp as _native
from ..errors import Distance, InvalidTypeError, InvalidValueError, Item, pass_interrupt, shown
from ..queryables import StreamItems, validate_d_in

LARGEST_ITEM = 2**31
SHOWN = 80  # letters of names of categories
INTEGERS = (int, np.integer, np.bool_)
NUMPYS = (np.number, np.bool_, np.str_, np.bytes_)


@dataclass(frozen=True)
class Integers(StreamItems):
    """Items from ``lower`` to ``upper``."""

    lower: int
    upper: int

    def holds(self, item: Item) -> bool:
        """Whether this is an item."""
        return isinstance(item, INTEGERS) and self.lower <= int(item) <= self.upper

    @property
    def largest(self) -> int:
        """Return the largest move of a sum when one item is added or removed."""
        return max(self.upper, -self.lower, 0)

    @property
    def spread(self) -> int:
        """Return the largest move of a sum when one item is changed, also into None."""
        return max(self.upper, 0) - min(self.lower, 0)


@dataclass(frozen=True)
class Categories(StreamItems):
    """Items from 0 to ``count`` - 1, or their names; each is counted separately."""

    count: int
    names: tuple[str, ...] | None = None

    def holds(self, item: Item) -> bool:
        """Whether this is an item."""
        if self.names is not None:
            return isinstance(item, str) and item in self._places
        return isinstance(item, INTEGERS) and 0 <= int(item) < self.count

    def place(self, item: Any) -> int:
        """Return the number of an item, from 0 to ``count`` - 1."""
        return int(item) if self.names is None else self._places[item]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names or ())}


@dataclass(frozen=True)
class Records(StreamItems):
    """Items of any kind.

    :ivar name: what they are called
    :ivar member: whether a value is an item
    """

    name: str
    member: Callable[[Any], bool]

    def holds(self, item: Item) -> bool:
        """Whether this is an item."""
        return bool(self.member(item))


Items = Integers | Categories | Records


INVALID = object()  # returned by valid_item for a value that is not an item


def valid_item(items: Items, item: Item) -> Any:
    """Return the item, with NumPy's numbers and texts as Python's; None stays None.

    :return: ``INVALID`` for a value that is not an item. If the check of a value raises, the value
        is not an item, on every stream
    """
    if item is None:
        return None
    if type(item) is int and type(items) is Integers and items.lower <= item <= items.upper:
        return item
    try:
        if isinstance(item, NUMPYS):
            item = item.item()
        if not isinstance(items, Records) and isinstance(item, int):
            item = int(item)
        elif isinstance(items, Categories) and isinstance(item, str):
            item = str.__str__(item)
        return item if items.holds(item) else INVALID
    except BaseException as error:  # its own message may reveal data
        pass_interrupt(error)
        return INVALID


def _stream(name: str, items: Items) -> Domain:
    return _native.user_domain(f"Stream({name})", lambda data: data == [], items)


@checks.recorded
def integer_stream(lower: int, upper: int) -> Domain:
    """Return the domain of streams of integers.

    Required features: `contrib`, `honest-but-curious`

    :param lower: smallest item, from -2^31 to 2^31
    :param upper: largest item, from -2^31 to 2^31
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.integer_stream(0, 1)
    Stream(integers from 0 to 1)
    """
    lower, upper = checks.integer(lower=lower), checks.integer(upper=upper)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not abs(bound) <= LARGEST_ITEM:
            raise InvalidValueError(f"{name} ({bound}) must be from -2**31 to 2**31")
    if not lower <= upper or lower == upper == 0:
        raise InvalidValueError(f"lower ({lower}) must be below upper ({upper})")
    return _stream(f"integers from {lower} to {upper}", Integers(lower, upper))


_MOST_CATEGORIES = checks.at_most(2**24, "a number is kept for each category")


@checks.recorded
def category_stream(categories: int | Sequence[str]) -> Domain:
    """Return the domain of streams of categories: from 0 to ``categories`` - 1, or named.

    Names must not come from the data.

    Required features: `contrib`, `honest-but-curious`

    :param categories: number of categories, or their names, all different; from 1 to 2^24
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.category_stream(12)
    Stream(12 categories)
    >>> oc.category_stream(["red", "green", "blue"])
    Stream(categories 'red', 'green', 'blue')
    """
    if not isinstance(categories, (list, tuple)):
        count = _MOST_CATEGORIES(categories=categories)
        return _stream(f"{count} categories", Categories(count))
    names = tuple(checks.each("names", checks.text, empty=False)(categories=categories))
    count = _MOST_CATEGORIES(categories=len(names))
    if len(set(names)) != count:
        raise InvalidValueError("categories must all have different names")
    listed = ", ".join(map(repr, names))
    if len(listed) > SHOWN:  # OpenDP compares domains by their names
        listed = f"{count} names, {blake2b(listed.encode(), digest_size=16).hexdigest()}"
    return _stream(f"categories {listed}", Categories(count, names))


@checks.recorded
def record_stream(name: str, member: Callable[[Any], bool]) -> Domain:
    """Return the domain of streams of your own kind of records, to be mapped to numbers.

    Required features: `contrib`, `honest-but-curious`

    Streams of records are equal if both the name and ``member`` are.

    :param name: says what the records are
    :param member: whether a value is a record; no, if it raises. Other updates halt the mechanism;
        neighbouring streams have records only [HSV25, Definition 3.1]
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError: naming the argument

    :example:

    >>> oc.record_stream("visits", lambda record: isinstance(record, dict))
    Stream(records 'visits')
    """
    checks.text(name=name)
    checks.function(member=member)
    return _stream(f"records {name!r}", Records(name, member))


def items_of(input_domain: Domain, name: str = "input_domain") -> Items:
    """Return the kind of a stream's items, or raise naming the argument."""
    items = _native.descriptor(input_domain)
    if not isinstance(items, Integers | Categories | Records):
        raise InvalidTypeError(
            f"{name} ({input_domain}) must be a stream, such as oc.integer_stream(0, 1)"
        )
    return items


def integers_of(input_domain: Domain, name: str = "input_domain") -> Integers:
    """Return the kind of items of an integer stream, or raise naming the argument."""
    items = items_of(input_domain, name)
    if not isinstance(items, Integers):
        advice = "" if name == "output_domain" else "; map the stream to integers first"
        raise InvalidTypeError(
            f"{name} ({input_domain}) must be oc.integer_stream(lower, upper){advice}"
        )
    return items


@checks.recorded
def event_presence() -> Metric:
    """Return the distance of streams by added or removed events: event-level privacy.

    The distance is the number of steps at which one stream has an item and the other has None. At
    all other steps the streams are equal. Steps do not shift.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of events

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.event_presence()
    EventPresence
    """
    return _native.user_distance("EventPresence")


@checks.recorded
def event_change() -> Metric:
    """Return the distance of streams by changed events: event-level privacy.

    The distance is the number of steps at which the streams differ, by an item or by None.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of events

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.event_change()
    EventChange
    """
    return _native.user_distance("EventChange")


@checks.recorded
def user_presence() -> Metric:
    """Return the distance of streams by users: user-level privacy.

    The distance is the number of users all of whose items are in one stream, and replaced by None
    in the other. It is for streams of pairs of a user and an item, with any number of items for
    each user; :func:`.make_bounded_contributions` leads from it to events.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of users

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.user_presence()
    UserPresence
    """
    return _native.user_distance("UserPresence")


def require_events(input_metric: Metric) -> bool:
    """Return whether events may change, not only appear or vanish; raise for other metrics."""
    if input_metric == event_presence():
        return False
    if input_metric == event_change():
        return True
    raise InvalidTypeError(
        f"input_metric ({input_metric}) must be oc.event_presence() or oc.event_change(); "
        "for users, chain with oc.t.make_bounded_contributions"
    )


def whole_distance(input_metric: Metric, d_in: Distance) -> int:
    """Return ``d_in`` as a whole number of events, or raise."""
    d_in = validate_d_in(input_metric, d_in)
    if not isinstance(d_in, int) and not (isinstance(d_in, float) and d_in.is_integer()):
        raise InvalidTypeError(f"d_in ({shown(d_in)}) must be a whole number of events")
    return int(d_in)
