"""What a checkpoint saves of a handle: the state of all that is behind it, or nothing.

A handle can be resumed if it says so itself: whoever makes it lists the parts that have state, its
own before those of what it wraps. One that lists none cannot be resumed, nor can what is around it.
"""

from __future__ import annotations

from typing import Any, Protocol

from .data import seal, unseal
from .machine import MachineQueryable


class Savable(Protocol):
    """A part of the state."""

    @property
    def name(self) -> str:
        """What it is, with the parameters that a record must not be resumed without."""

    def to_record(self) -> Any:
        """The state, as JSON has it."""

    def restore(self, record: Any) -> None:
        """Go on from a record."""

    def stop(self) -> None:
        """Answer no more: another goes on from the record."""

    def watch(self, lineage: Any) -> None:
        """Tell ``lineage`` when anything has come since it was saved."""


Part = tuple[Any, Savable]  # a lock, and what it guards
Parts = tuple[Part, ...]


def parts_of(handle: Any) -> Parts | None:
    """The parts of the state behind a handle, from the outside in; None if it cannot be saved."""
    sealed = handle._parts if isinstance(handle, MachineQueryable) else None
    parts: Parts | None = None if sealed is None else unseal(sealed)
    return parts


def list_parts(handle: MachineQueryable, parts: Parts | None) -> None:
    """Let ``handle`` be resumed from ``parts``, or not."""
    handle._parts = None if parts is None else seal(parts)
