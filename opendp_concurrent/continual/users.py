"""Users in a checkpoint: what JSON has no word for, so that equal users stay equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidTypeError

PLAIN = (type(None), bool, int, float, str)


def to_json(user: Any) -> Any:
    """A user as JSON has it: numbers, strings, bytes, None, and tuples of these.

    :raises InvalidTypeError: to the one who saves, for another kind
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
        f"a user is a {type(user).__name__}, which a checkpoint cannot keep; "
        "send users as numbers, strings, bytes, or tuples of these"
    )


def from_json(record: Any) -> Any:
    """The inverse of :func:`to_json`."""
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
