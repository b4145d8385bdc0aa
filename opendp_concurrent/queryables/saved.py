"""How the records of a stream's state are read: a record is of a stranger until it is checked."""

from __future__ import annotations

import json
from typing import Any

from ..errors import InvalidValueError
from ..types import Json

MOST = 2**62  # steps, contributions
NOT_SAVED = "record must be what to_record returned"


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
