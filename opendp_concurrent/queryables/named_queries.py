"""Named queries: methods of a handle that send a fixed message.

A method sends its message as ``handle(message)`` does, so it is the same query: it takes its turn,
counts towards a limit on messages, and is refused in the same cases. A handle has the methods of
the queries that its mechanism answers. A wrapper that passes messages on unchanged has the methods
too. A wrapper with another protocol, such as a postprocessor, has none. A native queryable, from
``dp.new_queryable``, has no methods: send it the message.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol, TypeVar

from ..types import Answer, Key, Query
from .machine import MachineQueryable

SYNTHETIC = "synthetic"  # the message that requests the histogram from which answers are computed
Handle = TypeVar("Handle", bound=MachineQueryable)


class _Asked(Protocol):
    """A handle, which the classes below are mixed into."""

    def __call__(self, query: Query) -> Answer: ...


class Readable:
    """A handle that can be read: of a counter, an alarm, or a release."""

    def read(self: _Asked) -> Any:
        """Return the answer to ``handle(None)``: the mechanism's current output."""
        return self(None)


class WithSynthetic:
    """A handle of a mechanism that answers from a synthetic histogram."""

    def synthetic(self: _Asked) -> Any:
        """Return the answer to ``handle("synthetic")``: the synthetic histogram, at no charge."""
        return self(SYNTHETIC)


class WithParts:
    """A handle of several mechanisms, one for each key: parts of the data, or analysts."""

    __iter__ = None  # the handle does not list its keys

    def __getitem__(self: _Asked, key: Key) -> Any:
        """Return the answer to ``handle(key)``: the handle, or the release, of one key."""
        return self(key)


KINDS: tuple[type[Any], ...] = (Readable, WithSynthetic, WithParts)
Queries = frozenset[type[Any]]
NONE: Queries = frozenset()
READ: Queries = frozenset({Readable})
SYNTHESISE: Queries = frozenset({WithSynthetic})
PARTS: Queries = frozenset({WithParts})


def answering(kind: type[Handle], queries: Queries) -> type[Handle]:
    """Return the class of handle ``kind``, with the methods of these queries added."""
    unchecked: Any = kind
    made: type[Handle] = _mixed(unchecked, queries)
    return made


@cache
def _mixed(kind: type[Any], queries: Queries) -> type[Any]:
    added = tuple(one for one in KINDS if one in queries)
    if not added:
        return kind
    return type(
        kind.__name__, (*added, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__}
    )


def queries_of(answer: Answer) -> Queries:
    """Return the named queries of an answer; none if it is not a handle of this package."""
    return frozenset(one for one in KINDS if isinstance(answer, one))
