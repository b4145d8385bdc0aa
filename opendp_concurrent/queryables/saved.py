"""The parts of a handle's state that a checkpoint saves: all of them, or none; how they are read.

A handle can be resumed if its constructor lists the parts that have state, its own before those of
the mechanism that it wraps. A handle without a list cannot be resumed, nor can a wrapper of it.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from ..errors import InvalidValueError
from ..types import Json
from .data import seal, unseal
from .machine import MachineQueryable

MOST = 2**62  # steps, messages, saves
NOT_SAVED = "saved must be what Checkpoint.save returned"


class Savable(Protocol):
    """A part of the state."""

    @property
    def name(self) -> str:
        """Name of the part, with the parameters that a record must match to be resumed."""

    def to_record(self) -> Json:
        """Return the state as JSON values."""

    def restore(self, record: Json) -> None:
        """Continue from a record."""

    def stop(self) -> None:
        """Stop answering: another handle continues from the record."""

    def watch(self, lineage: Any) -> None:
        """Notify ``lineage`` when a message has arrived since the save."""


Part = tuple[Any, Savable]  # a lock, and what it guards
Parts = tuple[Part, ...]


def parts_of(handle: Any) -> Parts | None:
    """Return the parts of a handle's state, from the outside in; None if it cannot be saved."""
    sealed = handle._parts if isinstance(handle, MachineQueryable) else None
    parts: Parts | None = None if sealed is None else unseal(sealed)
    return parts


def list_parts(handle: MachineQueryable, parts: Parts | None) -> None:
    """Let ``handle`` be resumed from ``parts``, or not."""
    handle._parts = None if parts is None else seal(parts)


def guarded(handle: MachineQueryable, state: Savable) -> Part:
    """Return a part of a handle's state, with the lock that guards it."""
    return handle._lock, state


# --- reading what was saved ----------------------------------------------------------------------


def canonical(record: Json) -> str:
    """Return the JSON text of a record; there is one."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def require(holds: bool) -> None:
    """Raise unless a condition on a record holds."""
    if not holds:
        raise InvalidValueError(NOT_SAVED)


def whole(value: Json, least: int = 0, most: int = MOST) -> int:
    """Return an integer between two bounds, or raise."""
    require(type(value) is int and least <= value <= most)
    number: int = value
    return number


def fields(record: Json, *names: str) -> list[Any]:
    """Return the values of a record that has these names and no other, or raise."""
    require(type(record) is dict and record.keys() == set(names))
    return [record[name] for name in names]


def rows(record: Json, least: int = 0, most: int = MOST) -> list[Any]:
    """Return a list whose length is between two bounds, or raise."""
    require(type(record) is list and least <= len(record) <= most)
    found: list[Any] = record
    return found


def restore_exactly(part: Any, record: Json) -> None:
    """Restore a part of the state, or raise unless it then saves the same record.

    So a record has no value that is not used, lacks none, and has each in its own type: noise that
    is missing would be drawn.
    """
    part.restore(record)
    require(canonical(part.to_record()) == canonical(record))
