"""Stream transformations: map, filter, clamp or bound the items of a stream, one by one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from opendp.mod import Domain, Measurement, Metric, Odometer, Transformation

from .. import _checks as checks
from .. import _opendp as _native
from .. import accounting, composition, errors, queryables
from .concurrent import FedStreamQueryable, StreamQueryable, launching_handle
from .mechanism import CANNOT, Checked, from_json, hand_out, to_json
from .stream import (
    INVALID,
    Items,
    event_presence,
    integers_of,
    items_of,
    require_events,
    user_presence,
    valid_item,
)

LOGGER = logging.getLogger("opendp_concurrent.continual")
PerItem = Callable[[Any], Any]
NOT_CHAINED = (
    "a stream transformation must be chained to a continual mechanism with >>; wrap a "
    "composition in make_concurrent_continual first, so that its children receive the "
    "transformed items"
)


class StreamTransformation(Transformation):
    """A transformation of streams, item by item; chain it with ``>>``.

    :ivar inside: what starts the functions that are applied to each item of a stream, first to
        last, and return an item or None and never raise; and their description
    """

    _type_ = Transformation._type_
    inside: Inside

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, StreamTransformation):
            (first, told), (second, also) = _of(self), _of(other)
            _check_fits(self, other)
            return _transformation(super().__rshift__(other), first + second, f"{told} >> {also}")
        if isinstance(other, Odometer):
            raise errors.InvalidTypeError(NOT_CHAINED)
        if isinstance(other, queryables.ConcurrentMeasurement) and other.composes:
            raise errors.InvalidTypeError(NOT_CHAINED)
        if isinstance(other, Measurement):
            return chain_stream(other, self)
        return super().__rshift__(other)


Starts = tuple[Callable[[], PerItem], ...]
Inside = tuple[Starts, str]


def _of(transformation: Transformation) -> Inside:
    if not isinstance(transformation, StreamTransformation):
        raise errors.InvalidTypeError(
            "transformation must be a stream transformation made by opendp_concurrent, such as "
            "oc.t.make_stream_clamp returns"
        )
    return transformation.inside


def _check_fits(first: Transformation, second: Any) -> None:
    """Raise if the items of two streams differ, even if their names are equal."""
    output, expected = first.output_domain, second.input_domain
    if output == expected and not queryables.same_domain(output, expected):
        raise errors.SpaceMismatchError("input_domain", expected, output)


def _transformation(transformation: Any, starts: Starts, told: str) -> StreamTransformation:
    transformation.__class__ = StreamTransformation
    transformation.__opendp_dict__ = checks.Unrecorded()
    transformation.inside = starts, told
    stream: StreamTransformation = transformation
    return stream


@checks.recorded
def chain_stream(
    measurement: Measurement, transformation: Transformation
) -> queryables.ConcurrentMeasurement:
    """Chain ``transformation >> measurement``: updates are transformed, queries are not."""
    starts, told = _of(transformation)
    _check_fits(transformation, measurement)
    _native.make_chain_mt(measurement, transformation)  # OpenDP checks that they fit
    composition.check_inside("measurement", measurement)
    items, many = items_of(transformation.input_domain), queryables.may_feed_many(measurement)
    carrier_type = transformation.output_domain.carrier_type

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        stream, behind = queryables.start_of(token), queryables.Stream(many=many)
        behind.counts = stream is not None and stream.counts
        answer = queryables.run(measurement, behind.token(carrier_type))
        if not behind.subscribed:
            raise errors.InvalidTypeError(NOT_CHAINED)
        inner = queryables.adopt(answer, accounting.Lifecycle(accounting.innermost_running()), None)
        transformed = _Transformed([start() for start in starts], behind, inner)
        machine = Checked(transformed, items, name=told)
        if isinstance(inner, (StreamQueryable, FedStreamQueryable)):
            return launching_handle(inner.root, machine, inner.require, stream)
        return hand_out(machine, stream, queries=queryables.queries_of(inner))

    return composition.make_measurement(
        (transformation.input_domain, transformation.input_metric),
        measurement.output_measure,
        spawn,
        lambda d_in: queryables.read_map(
            measurement, _native.transformation_map(transformation, d_in)
        ),
        f"{told} >> {measurement}",
        around=measurement,
        takes_updates=True,
    )


class _Transformed:
    """State machine of a chain: transformations before a continual mechanism."""

    def __init__(self, of: list[PerItem], behind: queryables.Stream, inner: Any) -> None:
        self._of, self._behind, self._inner = of, behind, inner
        self.ask = queryables.query_side(inner)

    def _item(self, item: errors.Item) -> Any:
        for function in self._of:
            item = None if item is None else function(item)
        return item

    def room(self, steps: int) -> None:
        """Refuse steps before the transformation's state counts items that are then refused."""
        self._behind.receive(queryables.Room(steps))

    def update(self, item: errors.Item) -> None:
        self._behind.receive(queryables.Update(self._item(item)))

    def update_all(self, items: errors.ItemSequence) -> None:
        plain = items.tolist() if isinstance(items, np.ndarray) else items
        self._behind.receive(queryables.Updates(list(map(self._item, plain))))

    def _tell(self, message: queryables.DataMessage) -> Any:
        if not isinstance(self._inner, queryables.FedQueryable):
            raise errors.InvalidTypeError(f"the mechanism behind a transformation {CANNOT}")
        return self._inner.receive(message)

    @property
    def _counting(self) -> list[Contributions]:
        return [one for one in self._of if isinstance(one, Contributions)]

    def to_record(self) -> errors.Json:
        seen = [one.to_record() for one in self._counting]
        return {"contributions": seen, "behind": self._tell(queryables.Save())}

    def restore(self, record: dict[str, Any]) -> None:
        seen, behind = queryables.fields(record, "contributions", "behind")
        for one, contributions in zip(self._counting, queryables.rows(seen), strict=True):
            one.restore(contributions)
        self._tell(queryables.Restore(behind))
        self.steps = behind["steps"]  # is compared with the number of steps before


def _only_in_chains(data: errors.Data) -> Any:
    """Refuse to run in OpenDP's own chains, which do not see updates."""
    raise errors.InvalidTypeError(NOT_CHAINED)


def _make(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    output_metric: Metric,
    start: Callable[[], PerItem],
    told: str,
    stability_map: Callable[[Any], Any] = lambda d_in: d_in,
) -> StreamTransformation:
    transformation = _native.make_user_transformation(
        input_domain,
        input_metric,
        output_domain,
        output_metric,
        function=_only_in_chains,
        stability_map=stability_map,
    )
    space = f"{input_domain}, {input_metric} -> {output_domain}, {output_metric}"
    return _transformation(transformation, (start,), f"{told}({space})")


def _by_item(
    input_domain: Domain, input_metric: Metric, output_domain: Domain, function: PerItem, told: str
) -> StreamTransformation:
    """Apply a function of items, or None if it raises or returns an invalid item.

    An error or a halt would reveal that item. None in its place is still a function of the item.
    """
    items_of(input_domain)
    items = items_of(output_domain, "output_domain")
    require_events(input_metric)

    def of(item: errors.Item) -> Any:
        try:
            found = valid_item(items, function(item))
        except BaseException as error:
            errors.pass_interrupt(error)
            return None
        return None if found is INVALID else found

    return _make(input_domain, input_metric, output_domain, input_metric, lambda: of, told)


@composition.constructor(function=checks.function)
def make_stream_map(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    function: PerItem,
) -> StreamTransformation:
    """Apply a function to each item.

    The distance of streams does not grow: two mapped streams differ only at steps where the streams
    differ. None stays None. Chain a map with a counter for a weighted sum. If ``function`` raises
    on an item, or returns no item of ``output_domain``, the item becomes None.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: of events
    :param output_domain: the stream of the items that ``function`` returns
    :param function: function from an item to an item of ``output_domain``, or to None to drop it;
        the caller promises that it depends on the item only
    :return: a transformation of streams
    :raises InvalidTypeError: naming the argument

    :example:

    >>> visits = oc.record_stream("visits", lambda record: isinstance(record, dict))
    >>> space = visits, oc.event_presence()
    >>> minutes = oc.t.make_stream_map(
    ...     *space, oc.integer_stream(0, 60), lambda visit: min(60, max(0, int(visit["minutes"])))
    ... )
    >>> total = minutes >> oc.m.then_counter(dp.max_divergence(), scale=180.0, horizon=1023)
    >>> total.map(1)
    1.0
    >>> queryable = total([])
    >>> queryable.update({"minutes": 12})
    """
    return _by_item(input_domain, input_metric, output_domain, function, "stream_map")


@composition.constructor(predicate=checks.function)
def make_stream_filter(
    input_domain: Domain, input_metric: Metric, predicate: Callable[[Any], bool]
) -> StreamTransformation:
    """Keep the items for which a predicate holds, and replace the others by None.

    The distance does not grow under ``event_presence`` and ``event_change``. A dropped item still
    takes its step. An item on which ``predicate`` raises is dropped.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: of events
    :param predicate: whether to keep an item; the caller promises it depends on the item only
    :return: a transformation of streams
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = oc.integer_stream(0, 9), oc.event_presence()
    >>> odd = oc.t.make_stream_filter(*space, lambda item: item % 2 == 1)
    >>> (odd >> oc.m.then_counter(dp.max_divergence(), scale=9.0)).map(1)
    1.0
    """

    def kept(item: errors.Item) -> Any:
        return item if predicate(item) else None

    return _by_item(input_domain, input_metric, input_domain, kept, "stream_filter")


@composition.constructor
def make_stream_clamp(
    input_domain: Domain, input_metric: Metric, output_domain: Domain
) -> StreamTransformation:
    """Clamp integers to the bounds of another stream.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(...)``
    :param input_metric: of events
    :param output_domain: ``oc.integer_stream(...)``, whose bounds are used
    :return: a transformation of streams
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = oc.integer_stream(-1000, 1000), oc.event_change()
    >>> clamp = oc.t.make_stream_clamp(*space, oc.integer_stream(0, 4))
    >>> (clamp >> oc.m.then_counter(dp.max_divergence(), scale=8.0)).map(1)
    0.5
    """
    integers_of(input_domain)
    bounds = integers_of(output_domain, "output_domain")

    def clamped(item: errors.Item) -> Any:
        return min(max(item, bounds.lower), bounds.upper)

    return _by_item(input_domain, input_metric, output_domain, clamped, "stream_clamp")


class Contributions:
    """Keep the first items of each user."""

    def __init__(self, limit: int, items: Items) -> None:
        self._limit, self._items = limit, items
        self._seen: dict[Any, int] = {}  # the number of items

    def __call__(self, pair: tuple[Any, Any]) -> errors.Answer:
        """Return the item of a pair if it is kept, or None."""
        try:
            user, item = pair
            if user != user:
                return None
            count = self._seen.get(user, 0)
            if count < self._limit:
                self._seen[user] = count + 1
        except BaseException as error:  # it would reveal this item; so it counts for no user
            errors.pass_interrupt(error)
            return None
        if count >= self._limit:
            LOGGER.info("an item was dropped: its user has %d items already", self._limit)
            return None
        found = valid_item(self._items, item)
        return None if found is INVALID else found

    def to_record(self) -> errors.Json:
        """Return the users seen, and the number of items of each."""
        seen = [[to_json(user), count] for user, count in self._seen.items()]
        return {"limit": self._limit, "seen": seen}

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        limit, seen = queryables.fields(record, "limit", "seen")
        queryables.bounded_integer(limit, self._limit, self._limit)
        self._seen = {
            from_json(user): queryables.bounded_integer(count, 1, limit)
            for user, count in queryables.rows(seen)
        }
        # each user as it is written
        queryables.require(queryables.canonical(self.to_record()) == queryables.canonical(record))


@composition.constructor(max_contributions=checks.at_most(2**62, "no stream has more steps"))
def make_bounded_contributions(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    max_contributions: int,
) -> StreamTransformation:
    """Keep the first items of each user: from user-level to event-level privacy.

    Items are pairs of a user and an item of ``output_domain``. Users must be hashable and are
    compared by ``==``. An item that is not such a pair becomes None. The first
    ``max_contributions`` items of each user are kept, without the user; later ones become None. One
    added or removed user moves at most ``max_contributions`` events, so the distance grows by this
    factor, from ``user_presence()`` to ``event_presence()``. Memory grows with the number of users.
    A record has the users if they are numbers, strings, bytes, None, or tuples of these.

    Each drop is logged to ``opendp_concurrent.continual``, without the item. Only the owner of the
    data may see this log.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.record_stream(...)`` of pairs
    :param input_metric: ``oc.user_presence()``
    :param output_domain: the stream of the second elements of the pairs
    :param max_contributions: largest number of items kept per user, at least 1
    :return: a transformation of streams
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> pairs = oc.record_stream("pairs of user and 0 or 1", lambda pair: pair[1] in (0, 1))
    >>> space = pairs, oc.user_presence()
    >>> bounded = oc.t.make_bounded_contributions(*space, oc.integer_stream(0, 1), 3)
    >>> counter = bounded >> oc.m.then_counter(dp.max_divergence(), scale=30.0)
    >>> counter.map(1)
    0.1
    """
    items_of(input_domain)
    items = items_of(output_domain, "output_domain")
    if input_metric != user_presence():
        raise errors.InvalidTypeError(f"input_metric ({input_metric}) must be oc.user_presence()")

    def stability_map(d_in: errors.Distance) -> Any:
        if not isinstance(d_in, int) or isinstance(d_in, bool) or d_in < 0:
            raise errors.InvalidValueError(f"d_in ({d_in!r}) must be a whole number of users")
        return d_in * max_contributions

    return _make(
        input_domain,
        input_metric,
        output_domain,
        event_presence(),
        lambda: Contributions(max_contributions, items),
        f"bounded_contributions[{max_contributions}]",
        stability_map,
    )


then_stream_map = _native.to_then(make_stream_map)
then_stream_filter = _native.to_then(make_stream_filter)
then_stream_clamp = _native.to_then(make_stream_clamp)
then_bounded_contributions = _native.to_then(make_bounded_contributions)
