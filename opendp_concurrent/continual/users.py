"""Users as JSON in a record, so that equal users stay equal after a restart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidTypeError
from ..types import Json, Key

PLAIN = (type(None), bool, int, float, str)


def to_json(user: Key) -> Json:
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
    raise InvalidTypeError(
        f"a user has the type {type(user).__name__}, which a record cannot have; send "
        "users as numbers, strings, bytes, or tuples of these"
    )


def from_json(record: Json) -> Any:
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
