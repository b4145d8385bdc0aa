"""Contexts by key: one for each part of the data, or for each analyst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.mod import Queryable

from ..accounts.lifecycle import Lifecycle
from ..interrupts import Lock
from ..queryables.data import SealedHandle
from ..types import Answer, Key


class NamedContexts(SealedHandle):
    """A context for each key of a handle. A context is opened when it is first asked for.

    ``contexts[key]`` and ``contexts(key)`` return the same context each time.
    """

    __iter__ = None  # the handle does not list its keys

    def __init__(self, handle: Queryable, open_context: Callable[[Any, Any], Any]) -> None:
        self._handle, self._open = handle, open_context
        self._opened: dict[Any, Any] = {}

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        self._handle._adopt_by(lifecycle, lock)

    def __call__(self, key: Key) -> Answer:
        """Return the context of one key."""
        queryable = self._handle(key)  # which checks the key
        if key not in self._opened:
            self._opened.setdefault(key, self._open(key, queryable))
        return self._opened[key]

    def __getitem__(self, key: Key) -> Any:
        """Return the context of one key."""
        return self(key)

    def __repr__(self) -> str:
        return f"NamedContexts({self._handle!r})"
