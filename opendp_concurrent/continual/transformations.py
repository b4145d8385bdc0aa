"""Stream transformations: what becomes of each item on its way to a continual mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from opendp.mod import Domain, Measurement, Metric, Odometer, Transformation, assert_features
from opendp.transformations import make_user_transformation

from .. import _native, checks
from ..composition.guards import check_callable
from ..composition.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.data import Sealed
from ..queryables.mechanism import ConcurrentMeasurement, run
from .concurrent import StreamQueryable
from .mechanism import Checked, ContinualQueryable, Room, Update, Updates
from .stream import event_presence, integers_of, items_of, require_events, user_presence

PerItem = Callable[[Any], Any]
NOT_CONTINUAL = (
    "a stream transformation is for a continual mechanism, which takes updates: chain with >>, and "
    "wrap a composition in make_concurrent_continual first, so that its children get what was "
    "transformed"
)


class StreamTransformation(Transformation):
    """A transformation of streams, item by item: chains with ``>>`` to another, or a measurement.

    :ivar start: makes a function from an item to an item or None, for one stream
    :ivar remembers: whether that function does
    """

    _type_ = Transformation._type_
    start: Callable[[], PerItem]
    remembers: bool

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, StreamTransformation):
            return _transformation(
                super().__rshift__(other),
                _after(self.start, other.start),
                self.remembers or other.remembers,
            )
        if isinstance(other, Odometer) or getattr(other, "odometer", None) is not None:
            raise InvalidTypeError(NOT_CONTINUAL)
        if isinstance(other, Measurement):
            return _chain(other, self)
        return super().__rshift__(other)


def _after(first: Callable[[], PerItem], second: Callable[[], PerItem]) -> Callable[[], PerItem]:
    def start() -> PerItem:
        one, two = first(), second()

        def both(item: Any) -> Any:
            between = one(item)
            return None if between is None else two(between)

        return both

    return start


def _transformation(
    transformation: Any, start: Callable[[], PerItem], remembers: bool
) -> StreamTransformation:
    transformation.__class__ = StreamTransformation
    transformation.start, transformation.remembers = start, remembers
    stream: StreamTransformation = transformation
    return stream


def _chain(measurement: Measurement, transformation: StreamTransformation) -> ConcurrentMeasurement:
    """``transformation >> measurement``: updates are transformed, questions go through."""
    Transformation.__rshift__(transformation, measurement)  # OpenDP checks that they fit
    items = items_of(transformation.input_domain)
    if transformation.remembers and getattr(measurement, "resumable", False):
        raise InvalidValueError(
            "the transformation remembers what it has seen, which a checkpoint behind it does not "
            "save; resume without it, or bound contributions before the stream"
        )

    def spawn(token: Sealed) -> ContinualQueryable:
        inner = run(measurement, token)
        if not getattr(inner, "takes_updates", False):
            raise InvalidTypeError(NOT_CONTINUAL)
        machine = Checked(_Transformed(transformation.start(), inner), items)
        if isinstance(inner, StreamQueryable):
            return StreamQueryable(inner.root, machine)
        return ContinualQueryable(machine, "Continual")

    return make_measurement(
        (transformation.input_domain, transformation.input_metric),
        measurement.output_measure,
        spawn,
        lambda d_in: measurement.map(transformation.map(d_in)),
        f"{transformation} >> {measurement}",
    )


class _Transformed:
    """The state machine: a transformation before another one."""

    __slots__ = ("_inner", "_of")

    def __init__(self, of: PerItem, inner: Any) -> None:
        self._of, self._inner = of, inner

    def room(self, steps: int) -> None:
        """Refuse before a transformation remembers what then does not come."""
        if isinstance(self._inner, ContinualQueryable):
            self._inner(Room(steps))

    def update(self, item: Any) -> None:
        self._inner(Update(None if item is None else self._of(item)))

    def update_all(self, items: Any) -> None:
        plain = items.tolist() if isinstance(items, np.ndarray) else items
        self._inner(Updates([None if item is None else self._of(item) for item in plain]))

    def ask(self, question: Any) -> Any:
        return self._inner(question)


def _only_in_chains(data: Any) -> Any:
    """What OpenDP's own chains would run: they do not see updates."""
    raise InvalidTypeError(NOT_CONTINUAL)


def _make(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    output_metric: Metric,
    start: Callable[[], PerItem],
    stability_map: Callable[[Any], Any] = lambda d_in: d_in,
    remembers: bool = False,
) -> StreamTransformation:
    transformation = make_user_transformation(
        input_domain,
        input_metric,
        output_domain,
        output_metric,
        function=_only_in_chains,
        stability_map=stability_map,
    )
    return _transformation(transformation, start, remembers)


def make_stream_map(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    function: PerItem,
) -> StreamTransformation:
    """Apply a function to each item.

    Where two streams differ, their images differ at most; nothing stays nothing. A weighted sum is
    a map before a counter.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: of events
    :param output_domain: the stream of what ``function`` returns, which promises this
    :param function: from an item to an item of ``output_domain``, or None to drop it
    :return: a transformation of streams
    :raises InvalidTypeError: naming the argument

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> visits = oc.record_stream("visits", lambda record: isinstance(record, dict))
    >>> space = visits, oc.event_presence()
    >>> minutes = oc.make_stream_map(
    ...     *space, oc.integer_stream(0, 60), lambda visit: min(60, max(0, int(visit["minutes"])))
    ... )
    >>> total = minutes >> oc.then_counter(dp.max_divergence(), scale=600.0, horizon=1023)
    >>> total.map(1)
    1.0
    >>> queryable = total([])
    >>> queryable.update({"minutes": 12})
    """
    assert_features("contrib", "honest-but-curious")
    items_of(input_domain)
    items_of(output_domain, "output_domain")
    require_events(input_metric)
    check_callable(function=function)
    return _make(input_domain, input_metric, output_domain, input_metric, lambda: function)


def make_stream_filter(
    input_domain: Domain, input_metric: Metric, predicate: Callable[[Any], bool]
) -> StreamTransformation:
    """Keep the items for which a predicate holds, and nothing in the place of others.

    Under ``event_presence`` and ``event_change`` the distance does not grow; time goes on.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: of events
    :param predicate: whether to keep an item
    :return: a transformation of streams
    :raises InvalidTypeError: naming the argument

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 9), oc.event_presence()
    >>> odd = oc.make_stream_filter(*space, lambda item: item % 2 == 1)
    >>> (odd >> oc.then_counter(dp.max_divergence(), scale=9.0)).map(1)
    1.0
    """
    assert_features("contrib", "honest-but-curious")
    items_of(input_domain)
    require_events(input_metric)
    check_callable(predicate=predicate)

    def start() -> PerItem:
        return lambda item: item if predicate(item) else None

    return _make(input_domain, input_metric, input_domain, input_metric, start)


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

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(-1000, 1000), oc.event_change()
    >>> clamp = oc.make_stream_clamp(*space, oc.integer_stream(0, 4))
    >>> (clamp >> oc.then_counter(dp.max_divergence(), scale=8.0)).map(1)
    0.5
    """
    assert_features("contrib", "honest-but-curious")
    require_events(input_metric)
    integers_of(input_domain)
    bounds = integers_of(output_domain, "output_domain")
    low, high = bounds.lower, bounds.upper
    return _make(
        input_domain,
        input_metric,
        output_domain,
        input_metric,
        lambda: lambda item: min(max(item, low), high),
    )


def make_bounded_contributions(
    input_domain: Domain,
    input_metric: Metric,
    output_domain: Domain,
    max_contributions: int,
) -> StreamTransformation:
    """Keep the first items of each user: from user-level to event-level privacy.

    Items are pairs of a user and an item of ``output_domain``. Users are told apart by ``==`` and
    must be hashable; an item whose user is not halts the mechanism. Of each user the first
    ``max_contributions`` are kept, without the user; then comes nothing in their place. A user who
    is added or removed moves at most so many events: the distance grows by this factor, from
    ``user_presence()`` to ``event_presence()``. Memory grows with the number of users.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.record_stream(...)`` of pairs
    :param input_metric: ``oc.user_presence()``
    :param output_domain: the stream of the second of each pair
    :param max_contributions: how many items of a user are kept, at least 1
    :return: a transformation of streams
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> pairs = oc.record_stream("pairs of user and 0 or 1", lambda pair: pair[1] in (0, 1))
    >>> space = pairs, oc.user_presence()
    >>> bounded = oc.make_bounded_contributions(*space, oc.integer_stream(0, 1), 3)
    >>> counter = bounded >> oc.then_counter(dp.max_divergence(), scale=30.0)
    >>> counter.map(1)
    0.1
    """
    assert_features("contrib", "honest-but-curious")
    items_of(input_domain)
    items_of(output_domain, "output_domain")
    if input_metric != user_presence():
        raise InvalidTypeError(f"input_metric ({input_metric}) must be oc.user_presence()")
    limit = checks.count(max_contributions=max_contributions)

    def start() -> PerItem:
        seen: dict[Any, int] = {}

        def keep(pair: Any) -> Any:
            user, item = pair
            if user != user:
                raise InvalidValueError("a user must be equal to itself")
            seen[user] = seen.get(user, 0) + 1
            return item if seen[user] <= limit else None

        return keep

    def stability_map(d_in: Any) -> Any:
        if not isinstance(d_in, int) or isinstance(d_in, bool) or d_in < 0:
            raise InvalidValueError(f"d_in ({d_in!r}) must be a whole number of users")
        return d_in * limit

    return _make(
        input_domain,
        input_metric,
        output_domain,
        event_presence(),
        start,
        stability_map,
        remembers=True,
    )


then_stream_map = _native.to_then(make_stream_map)
then_stream_filter = _native.to_then(make_stream_filter)
then_stream_clamp = _native.to_then(make_stream_clamp)
then_bounded_contributions = _native.to_then(make_bounded_contributions)
