"""Messages that carry data: updates of a stream, and the checks of what they carry.

They are no queries. They go to the stream directly, and every subscriber gets the same copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import owned
from ..arguments.checks import integer, shown
from ..errors import InvalidTypeError, InvalidValueError, StreamError
from ..types import Argument, Item

MOST_ITEMS = 10**8  # at once
UPDATE_REFUSED = (
    "an update is data, and this handle takes queries only; a continual mechanism launched "
    "on a parent gets its updates from the parent's stream: update the parent"
)


class DataMessage:
    """A message that carries data. It is not a query."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Update(DataMessage):
    """A message that adds one item, or none, to the stream.

    :ivar item: an item of the stream, or None
    :ivar step: number of this step, from 1; the update is refused unless it is the next step

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.m.Update(1))  # as queryable.update(1)
    """

    item: Item
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Updates(DataMessage):
    """A message that adds items to the stream, one per step.

    :ivar items: a sequence of items or None; for integers and categories also a NumPy array

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> queryable = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)([])
    >>> queryable(oc.m.Updates([1, None, 0]))  # as queryable.update_all([1, None, 0])
    """

    items: Any


@dataclass(frozen=True, slots=True)
class Room(DataMessage):
    """A message before updates. It is refused unless this many steps are left.

    :ivar steps: number of steps of the updates that follow
    """

    steps: int


@dataclass(frozen=True, slots=True)
class Save(DataMessage):
    """A message that returns the state, with data and noise, to the owner of the data."""


@dataclass(frozen=True, slots=True)
class Restore(DataMessage):
    """A message that sets the state of a new mechanism.

    :ivar record: what the answer to :class:`Save` was
    """

    record: Any


def check_items(items: Argument) -> Any:
    """Return a copy of ``items``, which nobody can change after the check; masked items are None.

    :raises InvalidTypeError: if they are not a sequence
    :raises InvalidValueError: if there are too many
    """
    if isinstance(items, (str, bytes)) or not isinstance(items, (Sequence, np.ndarray)):
        raise InvalidTypeError(f"items must be a sequence, found {type(items).__name__}")
    if isinstance(items, np.ndarray) and not items.ndim:
        raise InvalidTypeError("items must be a sequence, found an array of one number")
    try:
        few = len(items) <= MOST_ITEMS
    except Exception:  # the length cannot be determined
        few = False
    if not few:
        raise InvalidValueError(
            f"items must have at most {MOST_ITEMS:,} elements; send them in parts"
        )
    if isinstance(items, np.ma.MaskedArray):
        return items.tolist()
    return owned.array(items) if isinstance(items, np.ndarray) else list(items)


def check_step(step: Any, steps: int) -> None:
    """Raise unless ``step`` is the one after ``steps``, or None."""
    if step is None:
        return
    step = integer(step=step)
    if step != steps + 1:
        raise StreamError(
            f"the update's step ({shown(step)}) must be {steps + 1}: "
            + (
                "the steps before it have not been sent"
                if step > steps
                else "that step has been sent"
            )
        )


def steps_of(message: DataMessage) -> int:
    """Number of steps of a message whose items were copied."""
    if isinstance(message, Room):
        return message.steps
    return len(message.items) if isinstance(message, Updates) else 1
