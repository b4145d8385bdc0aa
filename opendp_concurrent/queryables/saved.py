"""The parts of a handle's state that a checkpoint saves: all of them, or none.

A handle can be resumed if its constructor lists the parts that have state, its own before those of
the mechanism that it wraps. A handle without a list cannot be resumed, nor can a wrapper of it.
"""

from __future__ import annotations

from typing import Any, Protocol

from .data import seal, unseal
from .machine import MachineQueryable


class Savable(Protocol):
    """A part of the state."""

    @property
    def name(self) -> str:
        """Name of the part, with the parameters that a record must match to be resumed."""

    def to_record(self) -> Any:
        """Return the state as JSON values."""

    def restore(self, record: Any) -> None:
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
