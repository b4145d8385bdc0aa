"""The names with which values are written. Records contain no Python names.

A record has the tags and keys of the table in ``arguments/written.py``, to which each class adds
itself.
"""

from __future__ import annotations

from ...arguments.written import BY_CLASS, KINDS, Kind
from ...errors import InvalidTypeError, UnregisteredError
from ...types import Json

FORM = 2  # of what is written; terms say it, so that a later version can have another one


def kind_of(value: Json) -> Kind:
    """Return the kind of a value.

    :raises InvalidTypeError: if its class is not in the table
    """
    kind = BY_CLASS.get(type(value))
    if kind is None:
        above = (BY_CLASS.get(cls) for cls in type(value).__mro__)
        kind = next((one for one in above if one is not None and one.subclasses), None)
    if kind is None:
        raise InvalidTypeError(
            f"{type(value).__name__} has no exact record; to keep values of your own class, "
            "register the class with opendp_concurrent.ledger.register"
        )
    return kind


def named(name: str) -> Kind:
    """Return the kind with a name in a record.

    :raises LookupError: if there is no such name
    :raises UnregisteredError: if the class belongs to another package and is not registered
    """
    kind = KINDS.get(name)
    if kind is not None:
        return kind
    if is_outside(name):
        raise UnregisteredError(name)
    raise LookupError(name)


def is_outside(tag: str) -> bool:
    """Return whether a tag belongs to another package: our own tags have no colon."""
    return ":" in tag
