"""Continual mechanisms: interactive measurements that take updates and queries.

A continual mechanism starts on the empty stream, and data arrive as messages [HSV25, Definition
3.1]. An update that is not an item of the stream is invalid, and halts the mechanism. Two
neighbouring streams both have valid updates only, so an adversary learns nothing from halting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ..arguments.checked import Count, Text, checked
from ..arguments.checks import function, shown
from ..arguments.provenance import recorded
from ..combinators.interactive_measurement import make_measurement
from ..errors import (
    InvalidTypeError,
    InvalidValueError,
    RefusalError,
    StreamError,
    StreamHaltedError,
    UnsupportedMeasureError,
)
from ..interrupts import let_in
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.accuracy import Accuracy
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import NONE, Queries, answering
from ..queryables.saved import MOST, fields, require, whole
from ..queryables.stream import Stream, start_of
from ..queryables.stream_handles import FedQueryable, Updatable
from ..queryables.updates import (
    Restore,
    Room,
    Save,
    Update,
    Updates,
    check_items,
    check_step,
)
from ..types import Answer, Item, ItemSequence, Json, Query
from .stream import INVALID, Categories, Integers, items_of, valid_item

CANNOT = (
    "must be a counter, or made by make_continual of a machine with to_record and restore, perhaps "
    "behind stream transformations, or cast, to be written to a record; the state of wrappers, and "
    "a composition with its account and children, are not written"
)


class ContinualMachine(Protocol):
    """State machine of a continual mechanism; it gets valid messages only."""

    def update(self, item: Item) -> None:
        """Take the item of the next step, or None."""

    def update_all(self, items: ItemSequence) -> None:
        """Take the items of the next steps: a list of Python's own items and None.

        A counter of this package gets an array of integers where there is no None.
        """

    def ask(self, query: Query) -> Answer:
        """Answer a query, or raise and change nothing."""


@runtime_checkable
class Resumable(Protocol):
    """A machine whose state can be saved and restored."""

    def to_record(self) -> Json:
        """Return the state as a JSON value."""

    def restore(self, record: Json) -> None:
        """Restore the state from a record."""


class Checked:
    """Check updates, count steps, and halt at an invalid update."""

    def __init__(
        self,
        machine: ContinualMachine,
        items: ItemSequence,
        horizon: int | None = None,
        name: str = "Continual",
        *,
        of_user: bool = False,
    ) -> None:
        self._of_user, self._call = of_user, let_in if of_user else _call  # it may run long
        self._machine, self._items, self._horizon = machine, items, horizon
        self._behind = getattr(machine, "room", None)  # of a transformation
        self._steps, self._halted, self._name = 0, False, name

    def __call__(self, message: Query) -> Answer:
        """Take an update, or answer a query."""
        if self._halted:
            raise StreamHaltedError
        if isinstance(message, Update):
            return self._update(message.item, message.step)
        if isinstance(message, Updates):
            return self._update_all(message.items)
        if isinstance(message, Room):
            return self._room(message.steps)
        if isinstance(message, Save):
            state = self._resumable().to_record()
            return {"mechanism": self._name, "steps": self._steps, "state": state}
        if isinstance(message, Restore):
            return self._restore(message.record)
        return self._call(self._machine.ask, message)

    def _resumable(self) -> Resumable:
        if not isinstance(self._machine, Resumable):
            raise InvalidTypeError(f"the mechanism {CANNOT}")
        return self._machine

    def _restore(self, record: Json) -> None:
        machine = self._resumable()
        name, steps, state = fields(record, "mechanism", "steps", "state")
        if name != self._name:
            raise InvalidValueError(f"record is of {shown(name)}, and cannot continue {self._name}")
        self._steps = whole(steps, most=MOST if self._horizon is None else self._horizon)
        machine.restore(state)
        counted = getattr(machine, "steps", None)  # of a counter
        require(type(counted) is not int or counted == steps)

    def _update(self, item: Item, step: Any) -> None:
        if step is not None:
            check_step(step, self._steps)
        self._room(1)
        self._take(self._machine.update, self._valid(item))
        self._steps += 1

    def _update_all(self, items: ItemSequence) -> None:
        items = check_items(items)
        count = len(items)
        self._room(count)
        array = None if self._of_user else self._array(items)
        self._take(
            self._machine.update_all,
            [self._valid(one) for one in items] if array is None else array,
        )
        self._steps += count

    def _take(self, take: Callable[[Any], None], content: Any) -> None:
        """Pass items to the machine, or halt: a half-taken step would shift the stream."""
        try:
            self._call(take, content)
        except StreamHaltedError:  # a mechanism behind this one halted
            self._halted = True
            raise
        except RefusalError:
            raise
        except BaseException:  # part of it may have been taken
            self._halted = True
            raise

    def _valid(self, item: Item) -> Any:
        """Return the item if it is valid, or halt."""
        kind = self._items
        if type(item) is int and type(kind) is Integers and kind.lower <= item <= kind.upper:
            return item
        found = valid_item(kind, item)
        if found is INVALID:
            self._halt()
        return found

    def _array(self, items: ItemSequence) -> Any:
        """Return valid integers as an array; None if each item must be checked by itself."""
        if not isinstance(self._items, (Integers, Categories)):
            return None
        if isinstance(self._items, Categories) and self._items.names is not None:
            return None
        try:
            array = items if isinstance(items, np.ndarray) else np.array(items)
        except ValueError:  # of sequences of several lengths
            return None
        if array.ndim != 1 or array.dtype.kind not in "biu":
            return None
        bounds = self._items
        lower, upper = (
            (bounds.lower, bounds.upper) if isinstance(bounds, Integers) else (0, bounds.count - 1)
        )
        if len(array) and not (lower <= int(array.min()) and int(array.max()) <= upper):
            self._halt()
        return array.astype(np.int64)

    def _room(self, steps: int) -> None:
        if self._horizon is not None and self._steps + steps > self._horizon:
            raise StreamError(
                f"{steps} more steps would exceed the horizon ({self._horizon} steps), of "
                f"which {self._steps} were taken; no item was added; build with a larger "
                "horizon, or without one"
            )
        if self._behind is not None:
            self._behind(steps)

    def _halt(self) -> None:
        self._halted = True
        raise StreamHaltedError


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _started(start: Callable[[], ContinualMachine]) -> ContinualMachine:
    machine = start()
    lacks = [name for name in ("update", "update_all", "ask") if not hasattr(machine, name)]
    if lacks:
        raise InvalidTypeError(
            f"start must return a machine with update, update_all and ask, found "
            f"{type(machine).__name__} without {' and '.join(lacks)}"
        )
    return machine


class ContinualQueryable(Updatable, MachineQueryable):
    """Handle of a continual mechanism with a stream of its own: takes updates and queries."""

    @property
    def takes_updates(self) -> bool:
        """True: this handle takes updates."""
        return True

    def to_record(self) -> Json:
        """Return the state as JSON values, for :func:`.from_record`, which says how to keep it.

        It contains data and noise in the clear. Noise of nodes in use is drawn first, if they have
        none; else nothing changes.

        :raises InvalidTypeError: if the mechanism cannot be written, or a user with bounded
            contributions is of a type that cannot
        :raises StreamHaltedError: if the mechanism has halted
        """
        return self(Save())


def hand_out(
    machine: Checked,
    stream: Stream | None,
    description: str = "Continual",
    queries: Queries = NONE,
) -> MachineQueryable:
    """Return a handle of a continual mechanism: fed by ``stream``, or with its own stream.

    :param queries: named queries that the machine answers
    """
    if stream is None:
        return answering(ContinualQueryable, queries)(machine, description)
    return answering(FedQueryable, queries)(machine, description, stream)


@recorded
@checked(start=function, privacy_map=function)
def make_continual(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    start: Callable[[], ContinualMachine],
    privacy_map: Callable[[Any], Any],
    *,
    horizon: Count | None = None,
    name: Text = "Continual",
) -> ConcurrentMeasurement:
    """Make a continual mechanism from your own state machine and privacy map.

    The measurement spawns a :class:`.ContinualQueryable` on the empty stream. It checks updates
    against the stream's items; an invalid update halts the mechanism [HSV25, Definition 3.1].
    Every message that is not an ``Update`` is a query.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: distance of two streams: ``event_presence()``, ``event_change()``, or your
        own ``dp.user_distance``
    :param output_measure: how privacy is measured
    :param start: returns a new state machine, with ``update``, ``update_all`` and ``ask``
    :param privacy_map: from a distance of streams to the privacy loss against a strongly adaptive
        adversary [HSV25, Definition 3.3], who chooses both streams and all queries adaptively
    :param horizon: largest number of steps; unlimited if left out
    :param name: name and parameters of the mechanism, for ``repr`` and for records
    :return: a measurement
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    This mechanism returns only the number of steps, which is public:

    >>> class Clock:
    ...     steps = 0
    ...     def update(self, item):
    ...         self.steps += 1
    ...     def update_all(self, items):
    ...         self.steps += len(items)
    ...     def ask(self, query):
    ...         return self.steps
    >>> clock = oc.m.make_continual(
    ...     oc.integer_stream(0, 1), oc.event_presence(), dp.max_divergence(), Clock, lambda d: 0.0
    ... )
    >>> queryable = clock([])
    >>> queryable.update(1)
    >>> queryable("how late is it?")
    1
    """
    return continual(
        (input_domain, input_metric),
        output_measure,
        start,
        privacy_map,
        horizon,
        name,
        of_user=True,
    )


def continual(
    space: tuple[Domain, Metric],
    output_measure: Measure,
    start: Callable[[], ContinualMachine],
    privacy_map: Callable[[Any], Any],
    horizon: int | None,
    name: str,
    queries: Queries = NONE,
    accuracy: Accuracy | None = None,
    *,
    of_user: bool = False,
) -> ConcurrentMeasurement:
    """Make a continual mechanism whose machine may answer named queries, with its accuracy."""
    input_domain, input_metric = space
    items = items_of(input_domain)
    full_name = f"{name}({input_domain}, {input_metric}, {output_measure})"

    def spawn(token: Sealed) -> MachineQueryable:
        stream = start_of(token)
        machine = Checked(_started(start), items, horizon, full_name, of_user=of_user)
        return hand_out(machine, stream, queries=queries)

    return make_measurement(
        space,
        output_measure,
        spawn,
        _validated(output_measure, privacy_map),
        full_name,
        takes_updates=True,
        accuracy=accuracy,
    )


def _validated(output_measure: Measure, privacy_map: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the privacy map, with its losses validated where the measure is known."""
    try:
        validate = composition_measure(output_measure).validate
    except UnsupportedMeasureError:  # the user's own measure
        return privacy_map
    return lambda d_in: validate("what privacy_map returns", privacy_map(d_in))


then_continual = _native.to_then(make_continual)
