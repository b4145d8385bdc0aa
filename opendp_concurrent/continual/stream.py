"""Streams: what arrives, one item a step, and when two streams are neighbours.

At each step a stream has one item, or nothing (None). Steps are public. The dataset that a
continual mechanism is launched on is the empty stream, ``[]``; items arrive as updates. Kinds of
items are frozen dataclasses without slots: OpenDP tries to set an attribute on descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from opendp.domains import user_domain
from opendp.metrics import user_distance
from opendp.mod import Domain, Metric

from .. import checks
from ..combinators.guards import check_callable
from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.session import validate_d_in
from ..queryables.stream import StreamItems

LARGEST_ITEM = 2**31
INTEGERS = (int, np.integer, np.bool_)


@dataclass(frozen=True)
class Integers(StreamItems):
    """Items from ``lower`` to ``upper``."""

    lower: int
    upper: int

    def holds(self, item: Any) -> bool:
        """Whether this is an item."""
        return isinstance(item, INTEGERS) and self.lower <= int(item) <= self.upper

    @property
    def largest(self) -> int:
        """How far adding or removing an item can move a sum."""
        return max(self.upper, -self.lower, 0)

    @property
    def spread(self) -> int:
        """How far changing an item, also into nothing, can move a sum."""
        return max(self.upper, 0) - min(self.lower, 0)


@dataclass(frozen=True)
class Categories(StreamItems):
    """Items from 0 to ``count`` - 1, to be counted each for itself."""

    count: int

    def holds(self, item: Any) -> bool:
        """Whether this is an item."""
        return isinstance(item, INTEGERS) and 0 <= int(item) < self.count


@dataclass(frozen=True)
class Records(StreamItems):
    """Items of any kind.

    :ivar name: identifies the kind: streams of equal names chain
    :ivar member: whether this is an item
    """

    name: str
    member: Callable[[Any], bool]

    def holds(self, item: Any) -> bool:
        """Whether this is an item."""
        return bool(self.member(item))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Records) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


Items = Integers | Categories | Records


class _Invalid:
    """What is returned for what is no item."""


INVALID = _Invalid()


def valid_item(items: Items, item: Any) -> Any:
    """The item, integers as Python has them, since those of NumPy wrap; None is nothing.

    :return: ``INVALID`` for what is no item. Whether something is one may itself fail: then it is
        none, on every stream
    """
    if item is None:
        return None
    if type(item) is int and type(items) is Integers and items.lower <= item <= items.upper:
        return item
    try:
        if not isinstance(items, Records) and isinstance(item, INTEGERS):
            item = int.__int__(item) if isinstance(item, int) else int(item)
        return item if items.holds(item) else INVALID
    except Exception:  # its own text may tell data
        return INVALID


def _stream(name: str, items: Items) -> Domain:
    return user_domain(f"Stream({name})", lambda data: data == [], items)


def integer_stream(lower: int, upper: int) -> Domain:
    """Return the domain of streams of integers.

    Required features: `contrib`, `honest-but-curious`

    :param lower: least item
    :param upper: largest item; both at most 2^31 from 0
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.integer_stream(0, 1)
    Stream(integers from 0 to 1)
    """
    lower, upper = checks.integer(lower=lower), checks.integer(upper=upper)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not abs(bound) <= LARGEST_ITEM:
            raise InvalidValueError(f"{name} ({bound}) must be at most 2**31 from 0")
    if not lower <= upper or lower == upper == 0:
        raise InvalidValueError(f"lower ({lower}) must be below upper ({upper})")
    return _stream(f"integers from {lower} to {upper}", Integers(lower, upper))


_MOST_CATEGORIES = checks.at_most(2**24, "a number is kept for each category")


def category_stream(categories: int) -> Domain:
    """Return the domain of streams of categories, from 0 to ``categories`` - 1.

    Required features: `contrib`, `honest-but-curious`

    :param categories: how many, at least 1 and at most 2^24
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.category_stream(12)
    Stream(12 categories)
    """
    count = _MOST_CATEGORIES(categories=categories)
    return _stream(f"{count} categories", Categories(count))


def record_stream(name: str, member: Callable[[Any], bool]) -> Domain:
    """Return the domain of streams of records of one's own kind, to be mapped to numbers.

    Required features: `contrib`, `honest-but-curious`

    :param name: identifies the kind; streams of equal names chain
    :param member: whether something is a record; what it raises on is none. Neighbouring streams
        are both of records: an update that is none halts the mechanism [HSV25, Definition 3.1]
    :return: a domain whose only initial dataset is the empty stream, ``[]``
    :raises InvalidTypeError: naming the argument

    :example:

    >>> oc.record_stream("visits", lambda record: isinstance(record, dict))
    Stream(visits)
    """
    checks.text(name=name)
    check_callable(member=member)
    return _stream(name, Records(name, member))


def items_of(input_domain: Domain, name: str = "input_domain") -> Items:
    """What the items of a stream are, or raise naming the argument."""
    items = getattr(input_domain, "descriptor", None)
    if not isinstance(items, Integers | Categories | Records):
        raise InvalidTypeError(
            f"{name} ({input_domain}) must be a stream, such as oc.integer_stream(0, 1)"
        )
    return items


def integers_of(input_domain: Domain, name: str = "input_domain") -> Integers:
    """What the items of a stream of integers are, or raise."""
    items = items_of(input_domain, name)
    if not isinstance(items, Integers):
        advice = "" if name == "output_domain" else "; map the stream to integers first"
        raise InvalidTypeError(
            f"{name} ({input_domain}) must be oc.integer_stream(lower, upper){advice}"
        )
    return items


def event_presence() -> Metric:
    """Return the distance of streams by added or removed events: event-level privacy.

    The number of steps at which one stream has an item and the other nothing; elsewhere they are
    equal. Steps do not shift.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of events

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.event_presence()
    EventPresence
    """
    return user_distance("EventPresence")


def event_change() -> Metric:
    """Return the distance of streams by changed events: event-level privacy.

    The number of steps at which the streams differ, be it by an item or by nothing.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of events

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.event_change()
    EventChange
    """
    return user_distance("EventChange")


def user_presence() -> Metric:
    """Return the distance of streams by users: user-level privacy.

    Items are pairs of a user and what that user contributes. The number of users all of whose items
    are in one stream and not, or nothing in their place, in the other. To be bounded by
    :func:`.make_bounded_contributions`.

    Required features: `honest-but-curious`

    :return: a metric on streams, whose distances are numbers of users

    :example:

    >>> dp.enable_features("honest-but-curious")
    >>> oc.user_presence()
    UserPresence
    """
    return user_distance("UserPresence")


def require_events(input_metric: Metric) -> bool:
    """Whether events may change, and not only be added or removed; raise for another metric."""
    if input_metric == event_presence():
        return False
    if input_metric == event_change():
        return True
    raise InvalidTypeError(
        f"input_metric ({input_metric}) must be oc.event_presence() or oc.event_change(); "
        "for users, chain with oc.t.make_bounded_contributions"
    )


def whole_distance(input_metric: Metric, d_in: Any) -> int:
    """A number of events, or raise."""
    d_in = validate_d_in(input_metric, d_in)
    if not isinstance(d_in, int) and not (isinstance(d_in, float) and d_in.is_integer()):
        raise InvalidTypeError(f"d_in ({d_in!r}) must be a whole number of events")
    return int(d_in)
