"""A continual mechanism: an interactive measurement that takes updates and questions.

[HSV25, Definition 3.1]: an interactive mechanism on the empty stream, to which data come as
messages. An update that is not an item of the stream is invalid, and halts the mechanism. So that
an adversary learns nothing from halting, both of two neighbouring streams are of valid updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from opendp.mod import Domain, Measure, Metric

from .. import _native, checks
from ..accounts.lifecycle import innermost_running
from ..composition.guards import check_callable
from ..composition.interactive_measurement import make_measurement
from ..errors import (
    InvalidTypeError,
    InvalidValueError,
    RefusalError,
    StreamError,
    StreamHaltedError,
)
from ..queryables.data import Sealed, unseal
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from .stream import Categories, Integers, Items, Records, items_of


@dataclass(frozen=True, slots=True)
class Update:
    """A message: one item arrives, or nothing.

    :ivar item: an item of the stream, or None
    :ivar step: which step this is, from 1; refused unless it is the next

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.Update(1))  # as queryable.update(1)
    """

    item: Any
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Updates:
    """A message: items arrive, one a step.

    :ivar items: a sequence of items or None; for integers and categories also a NumPy array

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.Updates([1, None, 0]))  # as queryable.update_all([1, None, 0])
    """

    items: Any


@dataclass(frozen=True, slots=True)
class Room:
    """A message of transformations: are there so many steps left? Refused if not.

    :ivar steps: how many are to come
    """

    steps: int


class ContinualMachine(Protocol):
    """What a continual mechanism does with valid messages."""

    def update(self, item: Any) -> None:
        """Take the item of the next step, or None."""

    def update_all(self, items: Any) -> None:
        """Take the items of the next steps: a sequence, or an array of integers."""

    def ask(self, question: Any) -> Any:
        """Answer a question, or raise and change nothing."""


@runtime_checkable
class Resumable(Protocol):
    """A machine that can tell its state, and go on from it."""

    def to_record(self) -> Any:
        """The state, as JSON has it."""

    def restore(self, record: Any) -> None:
        """Go on from a record."""


class Checked:
    """Checks updates, counts steps, and halts at an invalid one."""

    __slots__ = ("_behind", "_halted", "_horizon", "_items", "_machine", "_steps")

    def __init__(self, machine: ContinualMachine, items: Items, horizon: int | None = None) -> None:
        self._machine, self._items, self._horizon = machine, items, horizon
        self._behind = getattr(machine, "room", None)  # of a transformation
        self._steps, self._halted = 0, False

    def __call__(self, message: Any) -> Any:
        """Take an update, or answer a question."""
        if self._halted:
            raise StreamHaltedError
        if type(message) is Update:
            return self._update(message.item, message.step)
        if type(message) is Updates:
            return self._update_all(message.items)
        if type(message) is Room:
            return self._room(message.steps)
        return self._machine.ask(message)

    def _update(self, item: Any, step: Any) -> None:
        if step is not None and not isinstance(step, int):
            raise InvalidTypeError(f"step must be an integer, found {type(step).__name__}")
        if step is not None and step != self._steps + 1:
            raise StreamError(
                f"the update's step ({step}) must be {self._steps + 1}: "
                + ("later ones have not come" if step > self._steps else "that one has come")
            )
        self._room(1)
        self._take(self._machine.update, self._valid(item))
        self._steps += 1

    def _update_all(self, items: Any) -> None:
        if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, np.ndarray)):
            raise InvalidTypeError(f"items must be a sequence, found {type(items).__name__}")
        if isinstance(items, np.ndarray):
            if not items.ndim:
                raise InvalidTypeError("items must be a sequence, found an array of one number")
            if isinstance(items, np.ma.MaskedArray):
                items = items.tolist()  # what is masked is None
        count = len(items)
        self._room(count)
        array = self._array(items)
        self._take(
            self._machine.update_all,
            [self._valid(one) for one in items] if array is None else array,
        )
        self._steps += count

    def _take(self, take: Callable[[Any], None], content: Any) -> None:
        """Take what came, or halt: a step that is half taken would shift the stream."""
        try:
            take(content)
        except RefusalError:
            raise
        except BaseException:  # part of it may have been taken
            self._halted = True
            raise

    def _valid(self, item: Any) -> Any:
        """The item, integers as Python has them: those of NumPy wrap. Or halt."""
        if item is None:
            return None
        kind = self._items
        if type(item) is int and type(kind) is Integers and kind.lower <= item <= kind.upper:
            return item
        try:
            holds = kind.holds(item)
        except Exception:  # its own text may tell data
            holds = False
        if not holds:
            self._halt()
        return item if isinstance(kind, Records) else int(item)

    def _array(self, items: Any) -> Any:
        """Integers as an array, if all of them are valid; None to look at each."""
        if not isinstance(self._items, (Integers, Categories)):
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

    def to_record(self) -> dict[str, Any]:
        """The state, as JSON has it; the machine must be able to tell its own."""
        assert isinstance(self._machine, Resumable)
        record = self._machine.to_record()
        return {"steps": self._steps, "halted": self._halted, "machine": record}

    def stop(self) -> None:
        """Halt: another goes on from the record."""
        self._halted = True

    def restore(self, record: dict[str, Any]) -> None:
        """Go on from a record."""
        assert isinstance(self._machine, Resumable)
        self._machine.restore(record["machine"])
        self._steps, self._halted = record["steps"], record["halted"]

    @property
    def resumable(self) -> bool:
        """Whether the machine can tell its state."""
        return isinstance(self._machine, Resumable)

    def _room(self, steps: int) -> None:
        if self._horizon is not None and self._steps + steps > self._horizon:
            raise StreamError(
                f"{steps} more would go beyond the horizon ({self._horizon} steps), of which "
                f"{self._steps} have come; none was taken; build with a larger horizon, or without"
            )
        if self._behind is not None:
            self._behind(steps)

    def _halt(self) -> None:
        self._halted = True
        raise StreamHaltedError


def check_empty(token: Sealed) -> None:
    """Raise, to the owner of the data, unless they are those that a stream starts with: none.

    Below a launch this would depend on data that nobody has paid for.
    """
    if innermost_running() is not None or _native.inside_native_call():
        return
    data = _native.to_python(unseal(token))
    if not isinstance(data, Sized) or len(data):
        raise InvalidValueError("a stream starts empty: pass [], and let items come by update_all")


class ContinualQueryable(MachineQueryable):
    """Handle of a continual mechanism: takes updates and questions."""

    takes_updates = True

    def update(self, item: Any, step: int | None = None) -> None:
        """Let an item arrive, or nothing (None).

        :param step: which step this is, from 1, to refuse late and repeated ones
        :raises StreamError: it is not the next step, or the horizon has been reached; unchanged
        :raises StreamHaltedError: it is not an item of the stream, now or earlier
        """
        self(Update(item, step))

    def update_all(self, items: Any) -> None:
        """Let items arrive, one a step.

        :param items: a sequence of items or None, or a NumPy array of integers
        """
        self(Updates(items))


def make_continual(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    start: Callable[[], ContinualMachine],
    privacy_map: Callable[[Any], Any],
    *,
    horizon: int | None = None,
    name: str = "Continual",
) -> ConcurrentMeasurement:
    """Make a continual mechanism of one's own.

    The measurement spawns a :class:`.ContinualQueryable` on the empty stream. Updates are checked
    against the stream's items; one that is invalid halts the mechanism [HSV25, Definition 3.1].
    Questions are what is sent that is no ``Update``.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: a stream
    :param input_metric: when two streams are neighbours: ``event_presence()``, ``event_change()``,
        or any ``dp.user_distance`` of one's own
    :param output_measure: how privacy is measured
    :param start: makes a fresh state machine, with ``update``, ``update_all`` and ``ask``
    :param privacy_map: from a distance of streams to the privacy loss against a strongly adaptive
        adversary [HSV25, Definition 3.3], who chooses both streams and all questions on the way
    :param horizon: how many steps there may be; unlimited if left out
    :param name: what it is and with which parameters, for ``repr`` and for checkpoints
    :return: a measurement
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    A mechanism that tells nothing but the time, whoever comes:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> class Clock:
    ...     steps = 0
    ...     def update(self, item):
    ...         self.steps += 1
    ...     def update_all(self, items):
    ...         self.steps += len(items)
    ...     def ask(self, question):
    ...         return self.steps
    >>> clock = oc.make_continual(
    ...     oc.integer_stream(0, 1), oc.event_presence(), dp.max_divergence(), Clock, lambda d: 0.0
    ... )
    >>> queryable = clock([])
    >>> queryable.update(1)
    >>> queryable("how late is it?")
    1
    """
    items = items_of(input_domain)
    check_callable(start=start)
    if horizon is not None:
        checks.count(horizon=horizon)

    def spawn(token: Sealed) -> ContinualQueryable:
        check_empty(token)
        return ContinualQueryable(Checked(start(), items, horizon), "Continual")

    return make_measurement(
        (input_domain, input_metric),
        output_measure,
        spawn,
        privacy_map,
        f"{name}({input_domain}, {input_metric}, {output_measure})",
    )


then_continual = _native.to_then(make_continual)
