"""One stream, many continual mechanisms: each update goes to all of them."""

from __future__ import annotations

from threading import RLock
from typing import Any

from opendp.mod import Odometer, OdometerQueryable, Queryable, assert_features

from .. import checks
from ..composition.interactive_measurement import make_measurement
from ..errors import (
    InvalidTypeError,
    MessageLimitError,
    StreamError,
    UnsupportedMeasureError,
)
from ..measures import Composability, composition_measure
from ..measures.families import PURE
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer
from ..queryables.root import ConcurrentCompositionQueryable
from .mechanism import Checked, ContinualQueryable, Update, Updates, check_empty
from .stream import items_of

NESTED = (
    "the children of a composition would not get the updates of this stream; wrap it in "
    "make_concurrent_continual and launch that"
)


class Subscriber:
    """A child that gets its updates from a stream: the analyst only asks.

    Updates and questions come on different handles, so it has a lock of its own.

    :param child: handle of a continual mechanism, perhaps with others around it
    :param limit: how many messages it may get in all; unlimited if None
    """

    __slots__ = ("_child", "_left", "_limit", "_lock", "ended")

    def __init__(self, child: MachineQueryable, limit: int | None) -> None:
        self._child, self._limit, self._left = child, limit, limit
        self._lock = RLock()
        self.ended = False

    def deliver(self, message: Update | Updates) -> None:
        """Pass an update on; a child that refuses it, or is at its limit, gets no more."""
        steps = len(message.items) if isinstance(message, Updates) else 1
        with self._lock:
            if self.ended:
                return
            try:
                if self._left is not None and self._left < steps:
                    raise StreamError("out of messages")
                self._child(message)
            except Exception:
                self.ended = True
                return
            if self._left is not None:
                self._left -= steps

    def __call__(self, question: Any) -> Any:
        """Answer a question."""
        if isinstance(question, (Update, Updates)):
            raise InvalidTypeError(
                "this child gets its updates from the stream of its parent; update that"
            )
        answer = self._ask(self._child, question)
        if self._limit is not None and isinstance(answer, Queryable):
            return MachineQueryable(lambda message: self._ask(answer, message), "Subscriber")
        return answer

    def _ask(self, child: Queryable, question: Any) -> Any:
        """Ask the child, or what it handed out: all of it counts."""
        with self._lock:
            if self.ended:
                raise StreamError(
                    "this child has missed updates: it reached its horizon or its limit of "
                    "messages, or halted; launch another"
                )
            if self._left is not None and self._limit is not None:
                if self._left == 0:
                    raise MessageLimitError(self._limit)
                self._left -= 1
            return child(question)


class _FanOut:
    """The state machine: updates go to all children, everything else launches one."""

    __slots__ = ("_children", "_limit", "_root")

    def __init__(self, root: Any, limit: int | None) -> None:
        self._root, self._limit = root, limit
        self._children: list[Subscriber] = []

    def update(self, item: Any) -> None:
        self._deliver(Update(item))

    def update_all(self, items: Any) -> None:
        self._deliver(Updates(items))

    def _deliver(self, message: Update | Updates) -> None:
        for child in self._children:
            child.deliver(message)
        if any(child.ended for child in self._children):
            self._children = [child for child in self._children if not child.ended]

    def ask(self, question: Any) -> Any:
        if isinstance(question, Odometer) or getattr(question, "odometer", None) is not None:
            raise InvalidTypeError(NESTED)
        answer = self._root(question)
        if isinstance(answer, (OdometerQueryable, ConcurrentCompositionQueryable)):
            raise InvalidTypeError(NESTED)
        if not getattr(answer, "takes_updates", False):
            return answer
        child = Subscriber(answer, self._limit)
        self._children.append(child)
        return MachineQueryable(child, "Subscriber")


class StreamQueryable(ContinualQueryable):
    """Handle of a stream with many children: takes updates, and launches.

    :ivar root: handle of the odometer, filter or compositor that is charged
    """

    def __init__(self, root: Any, machine: Any) -> None:
        super().__init__(machine, "Stream")
        self.root = root

    def privacy_loss(self, d_in: Any = None) -> Any:
        """Loss so far; ``d_in`` may be left out where there is a bound."""
        return self.root.privacy_loss() if d_in is None else self.root.privacy_loss(d_in)

    def remaining(self) -> Any:
        """What the bound still admits."""
        return self.root.remaining()


def make_concurrent_continual(
    composition: ConcurrentMeasurement | ConcurrentOdometer,
    *,
    max_messages: int | None = None,
) -> Any:
    """Let one stream feed all continual mechanisms that are launched on a composition of them.

    ``composition`` is a :func:`make_concurrent_composition`, :func:`make_concurrent_filter` or
    :func:`make_concurrent_odometer` on a stream. Without this, each child has a stream of its own:
    its handle takes updates. With it, the returned handle takes updates, which go to all children
    from their launch on, and launches; children's handles take questions only. A child that
    reaches its horizon gets no more updates, and says so when it is asked.

    Guarantee: that of ``composition``, against a strongly adaptive adversary, who chooses
    neighbouring streams, launches and questions on the way: [HSV25, Corollary 7.2] for pure DP,
    which needs no bound on messages; [HSV25, Corollary 6.3, 6.4] for (ε, δ)-DP, Gaussian DP and
    f-DP, [LW22, Theorem 2 and Corollary 1] for Rényi DP, zCDP and tCDP, and the filters of
    [HSTVVXZ23], with ``max_messages`` for each child. A child's stream is the end of the whole
    one; under the metrics of this package ends of neighbouring streams are neighbours, and of a
    metric of one's own this is a promise. Transform before: ``transformation >>
    make_concurrent_continual(...)``.

    Required features: `contrib`, `honest-but-curious`

    :param composition: on a stream
    :param max_messages: how many updates and questions a child may get in all; required except for
        pure DP
    :return: a measurement that spawns a :class:`.StreamQueryable`; for an odometer, a function from
        the empty stream to one
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: under approximate zCDP, where concurrency is open

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    >>> stream = oc.make_concurrent_continual(budget)([])
    >>> forever = stream(oc.make_counter(*space, dp.max_divergence(), scale=2.0))
    >>> stream.update_all([1, 0, 1])
    >>> recent = stream(oc.make_window_counter(*space, dp.max_divergence(), scale=16.0, window=7))
    >>> stream.update(1)
    >>> answers = forever(None), recent(None)
    >>> stream.privacy_loss()
    0.75
    """
    assert_features("contrib", "honest-but-curious")
    if not isinstance(composition, (ConcurrentMeasurement, ConcurrentOdometer)):
        raise InvalidTypeError(
            "composition must be made by make_concurrent_composition, make_concurrent_filter or "
            f"make_concurrent_odometer, found {type(composition).__name__}"
        )
    odometer = composition if isinstance(composition, ConcurrentOdometer) else composition.odometer
    if odometer is not None and odometer.transformation is not None:
        raise InvalidTypeError(
            "composition must not be chained yet: wrap it first, so that children get what was "
            "transformed, transformation >> make_concurrent_continual(...)"
        )
    measure = composition_measure(composition.output_measure)
    if measure.composability is Composability.SEQUENTIAL:
        raise UnsupportedMeasureError(f"{measure.name} is not composed here: {measure.reason}")
    if max_messages is not None:
        checks.count(max_messages=max_messages)
    elif measure.family != PURE:
        raise InvalidTypeError(
            f"max_messages must be given under {measure.name}, for which continual mechanisms are "
            "proven with bounded messages only [HSV25, Definition 6.1]"
        )
    items = items_of(composition.input_domain)

    def fan_out(root: Any) -> StreamQueryable:
        return StreamQueryable(root, Checked(_FanOut(root, max_messages), items))

    if isinstance(composition, ConcurrentOdometer):

        def open_odometer(data: Any) -> StreamQueryable:
            root = composition(data)
            check_empty(root._session.token)
            return fan_out(root)

        return open_odometer
    spawn_root = composition.spawn

    def spawn(token: Sealed) -> StreamQueryable:
        check_empty(token)
        return fan_out(spawn_root(token))

    return make_measurement(
        (composition.input_domain, composition.input_metric),
        composition.output_measure,
        spawn,
        composition.map,
        f"ConcurrentContinual({composition})",
    )
