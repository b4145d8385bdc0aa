"""Continual mechanisms: interactive measurements that take updates and queries.

A continual mechanism starts on the empty stream, and data arrive as messages [HSV25, Definition
3.1]. An update that is not an item of the stream is invalid, and halts the mechanism. Two
neighbouring streams both have valid updates only, so an adversary learns nothing from halting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from opendp.mod import Domain, Measure, Metric

from .. import _opendp as _native
from .. import composition, errors, measures, queryables
from .._checks import Count, Text, checked, function, recorded
from .._opendp import interruptible
from .stream import INVALID, Categories, Integers, Items, items_of, valid_item

CANNOT = (
    "must be a counter, or made by make_continual of a machine with to_record and restore, perhaps "
    "behind stream transformations, or cast, to be written to a record; the state of wrappers, and "
    "a composition with its account and children, are not written"
)


IS_OPEN = object()  # a message, which raises if the mechanism has halted


class ContinualMachine(Protocol):
    """State machine of a continual mechanism; it gets valid messages only."""

    def update(self, item: errors.Item) -> None:
        """Take the item of the next step, or None."""

    def update_all(self, items: errors.ItemSequence) -> None:
        """Take the items of the next steps: a list of Python's own items and None.

        A counter of this package gets an array of integers where there is no None.
        """

    def ask(self, query: errors.Query) -> errors.Answer:
        """Answer a query, or raise and change nothing."""


@runtime_checkable
class Resumable(Protocol):
    """A machine whose state can be saved and restored."""

    def to_record(self) -> errors.Json:
        """Return the state as a JSON value."""

    def restore(self, record: errors.Json) -> None:
        """Restore the state from a record."""


class Checked:
    """Check updates, count steps, and halt at an invalid update."""

    def __init__(
        self,
        machine: ContinualMachine,
        items: Items,
        horizon: int | None = None,
        name: str = "Continual",
        *,
        of_user: bool = False,
    ) -> None:
        self._of_user, self._call = of_user, interruptible if of_user else _call  # it may run long
        self._machine, self._items, self._horizon = machine, items, horizon
        self._behind = getattr(machine, "room", None)  # of a transformation
        self._steps, self._halted, self._name = 0, False, name

    def __call__(self, message: errors.Query) -> errors.Answer:
        """Take an update, or answer a query."""
        if self._halted:
            raise errors.StreamHaltedError
        if isinstance(message, queryables.Update):
            return self._update(message.item, message.step)
        if isinstance(message, queryables.Updates):
            return self._update_all(message.items)
        if isinstance(message, queryables.Room):
            return self._room(message.steps)
        if isinstance(message, queryables.Save):
            state = self._resumable().to_record()
            return {"mechanism": self._name, "steps": self._steps, "state": state}
        if isinstance(message, queryables.Restore):
            return self._restore(message.record)
        return None if message is IS_OPEN else self._call(self._machine.ask, message)

    def _resumable(self) -> Resumable:
        if not isinstance(self._machine, Resumable):
            raise errors.InvalidTypeError(f"the mechanism {CANNOT}")
        return self._machine

    def _restore(self, record: dict[str, Any]) -> None:
        machine = self._resumable()
        name, steps, state = queryables.fields(record, "mechanism", "steps", "state")
        if name != self._name:
            raise errors.InvalidValueError(
                f"record is of {errors.shown(name)}, and cannot continue {self._name}"
            )
        self._steps = queryables.bounded_integer(
            steps, most=queryables.MOST if self._horizon is None else self._horizon
        )
        machine.restore(state)
        counted = getattr(machine, "steps", None)  # of a counter
        queryables.require(type(counted) is not int or counted == steps)

    def _update(self, item: errors.Item, step: Any) -> None:
        if step is not None:
            queryables.check_step(step, self._steps)
        self._room(1)
        self._take(self._machine.update, self._valid(item))
        self._steps += 1

    def _update_all(self, items: errors.ItemSequence) -> None:
        items = queryables.check_items(items)
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
        except BaseException as error:  # part of it may have been taken, unless it was refused
            refused = isinstance(error, errors.RefusalError)
            if not refused or isinstance(error, errors.StreamHaltedError):  # one behind this one
                self._halted = True
            raise

    def _valid(self, item: errors.Item) -> Any:
        """Return the item if it is valid, or halt."""
        found = valid_item(self._items, item)
        if found is INVALID:
            self._halt()
        return found

    def _array(self, items: errors.ItemSequence) -> Any:
        """Return valid integers as an array; None if each item must be checked by itself."""
        if isinstance(self._items, Integers):
            lower, upper = self._items.lower, self._items.upper
        elif isinstance(self._items, Categories) and self._items.names is None:
            lower, upper = 0, self._items.count - 1
        else:
            return None
        try:
            array = items if isinstance(items, np.ndarray) else np.array(items)
        except ValueError:  # of sequences of several lengths
            return None
        if array.ndim != 1 or array.dtype.kind not in "biu":
            return None
        if len(array) and not (lower <= int(array.min()) and int(array.max()) <= upper):
            self._halt()
        return array.astype(np.int64)

    def _room(self, steps: int) -> None:
        if self._horizon is not None and self._steps + steps > self._horizon:
            raise errors.StreamError(
                f"{steps} more steps would exceed the horizon ({self._horizon} steps), of "
                f"which {self._steps} were taken; no item was added; build with a larger "
                "horizon, or without one"
            )
        if self._behind is not None:
            self._behind(steps)

    def _halt(self) -> None:
        self._halted = True
        raise errors.StreamHaltedError


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _started(start: Callable[[], ContinualMachine]) -> ContinualMachine:
    machine = start()
    lacks = [name for name in ("update", "update_all", "ask") if not hasattr(machine, name)]
    if lacks:
        raise errors.InvalidTypeError(
            f"start must return a machine with update, update_all and ask, found "
            f"{type(machine).__name__} without {' and '.join(lacks)}"
        )
    return machine


class ContinualQueryable(queryables.Updatable, queryables.MachineQueryable):
    """Handle of a continual mechanism with a stream of its own: takes updates and queries."""

    @property
    def takes_updates(self) -> bool:
        """True: this handle takes updates."""
        return True

    def to_record(self) -> errors.Json:
        """Return the state as JSON values, for :func:`.from_record`, which says how to keep it.

        It contains data and noise in the clear. Noise of nodes in use is drawn first, if they have
        none; else nothing changes.

        :raises InvalidTypeError: if the mechanism cannot be written, or a user with bounded
            contributions is of a type that cannot
        :raises StreamHaltedError: if the mechanism has halted
        """
        return self(queryables.Save())


def hand_out(
    machine: Checked,
    stream: queryables.Stream | None,
    description: str = "Continual",
    queries: queryables.Queries = queryables.NONE,
    kinds: tuple[type[Any], type[Any]] = (ContinualQueryable, queryables.FedQueryable),
) -> queryables.MachineQueryable:
    """Return a handle of a continual mechanism: with its own stream, or fed by ``stream``.

    :param queries: named queries that the machine answers
    :param kinds: of the two handles
    """
    own, fed = (queryables.answering(kind, queries) for kind in kinds)
    made = own(machine, description) if stream is None else fed(machine, description, stream)
    return cast(queryables.MachineQueryable, made)


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
) -> queryables.ConcurrentMeasurement:
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
    queries: queryables.Queries = queryables.NONE,
    accuracy: queryables.Accuracy | None = None,
    *,
    of_user: bool = False,
) -> queryables.ConcurrentMeasurement:
    """Make a continual mechanism whose machine may answer named queries, with its accuracy."""
    input_domain, input_metric = space
    items = items_of(input_domain)
    full_name = f"{name}({input_domain}, {input_metric}, {output_measure})"

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        stream = queryables.start_of(token)
        machine = Checked(_started(start), items, horizon, full_name, of_user=of_user)
        return hand_out(machine, stream, queries=queries)

    return composition.make_measurement(
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
        validate = measures.composition_measure(output_measure).validate
    except errors.UnsupportedMeasureError:  # the user's own measure
        return privacy_map
    return lambda d_in: validate("what privacy_map returns", privacy_map(d_in))


then_continual = _native.to_then(make_continual)


# Users as JSON in a record, so that equal users stay equal after a restart.

PLAIN = (type(None), bool, int, float, str)


def to_json(user: errors.Key) -> errors.Json:
    """Return a user as a JSON value: a number, string, bytes, None, or a tuple of these.

    :raises InvalidTypeError: for another type, when the data holder saves
    """
    if isinstance(user, np.generic):
        plain = user.item()
        user = plain if plain == user and hash(plain) == hash(user) else user
    if type(user) is int and abs(user) >= 2**63:
        return {"int": hex(user)}
    if type(user) in PLAIN and user == user:
        return user
    if type(user) is bytes:
        return {"bytes": user.hex()}
    if type(user) is tuple:
        return {"tuple": [to_json(one) for one in user]}
    raise errors.InvalidTypeError(
        f"a user has the type {type(user).__name__}, which a record cannot have; send "
        "users as numbers, strings, bytes, or tuples of these"
    )


def from_json(record: errors.Json) -> Any:
    """Return the user of a JSON value: the inverse of :func:`to_json`."""
    if type(record) in PLAIN:
        return record
    ((kind, content),) = record.items()
    if kind == "int":
        return int(content, 16)
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "tuple":
        return tuple(from_json(one) for one in content)
    raise ValueError


# Continue a continual mechanism from a record of its state.


def from_record(
    measurement: queryables.ConcurrentMeasurement, record: dict[str, Any]
) -> ContinualQueryable:
    """Return a handle that continues from what ``to_record`` of another one returned.

    The record keeps the noise that was drawn: answers after a restart equal those before it. It
    also keeps the number of steps, and the number of contributions of each user
    (:func:`.make_bounded_contributions`).

    A record contains data and noise in the clear: keep it where the data are, and from analysts.
    Continue from each record once, from the newest only, and not beside the handle that wrote it.
    Two mechanisms that continue from one state draw independent noise for the same data, and cost
    as much privacy as two. If you write a record for the case of a crash, write it after each
    answer, before anybody sees the answer. An account does not know of records: a mechanism that is
    launched on a composition cannot be written.

    A record from a file is checked: fields that are missing or superfluous, values of wrong types,
    steps beyond the horizon and noise that does not belong to the state are refused. There is no
    signature: who can write the file can write another state.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: the measurement that made the handle: a counter of this package, or
        :func:`.make_continual` of a machine with ``to_record`` and ``restore``. Either may be
        behind stream transformations, whose functions must be the same as before, or cast
    :param record: what ``to_record`` returned, or the same from a JSON file
    :return: a handle
    :raises InvalidTypeError: if the measurement cannot continue from a record
    :raises InvalidValueError: if the record is none, or of another mechanism

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> before = counter([])
    >>> before.update_all([1, 1, 0])
    >>> count, record = before.read(), before.to_record()
    >>> after = oc.c.from_record(counter, record)
    >>> after.read() == count
    True
    """
    if (
        not isinstance(measurement, queryables.ConcurrentMeasurement)
        or not measurement.takes_updates
    ):
        raise errors.InvalidTypeError(
            f"measurement must be a continual mechanism, found {type(measurement).__name__}"
        )
    handle = measurement([])
    if not isinstance(handle, ContinualQueryable):
        raise errors.InvalidTypeError(f"measurement {CANNOT}")
    handle.to_record()  # raises if it cannot be written
    try:
        handle(queryables.Restore(record))
    except errors.InvalidValueError:
        raise
    except Exception:  # whatever a machine says of a state that is none
        raise errors.InvalidValueError(queryables.NOT_SAVED) from None
    return handle
