"""Register classes of other packages, so that a ledger can keep their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import numpy as np

from ...arguments import checks
from ...arguments.checked import Text, checked
from ...arguments.checks import shown
from ...arguments.written import BY_CLASS, KINDS, Kind, add, plain
from ...errors import InvalidTypeError, InvalidValueError
from .encoding import decode

_TAG = re.compile(r"[a-z][a-z0-9_.-]{0,63}:[a-z][a-z0-9_.-]{0,63}")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WRITTEN = (bool, int, float, str, tuple, type(None), np.ndarray)  # these have no tag
_LOCK = Lock()


@checked
def register(
    tag: Text, cls: type, fields: Mapping[str, str], *, make: Callable[..., Any] | None = None
) -> None:
    """Let ledgers keep the values of a class of your own: accumulators and distances.

    A value is written as the tag and, for each key, the value of one attribute: a number, a string,
    None, a tuple, a distance, or a value of another registered class. Never change a tag or a key:
    ledgers contain them. You may rename the class, its module and its attributes, because ledgers
    do not contain these names. To write values in another way, register another class under another
    tag. Keep the old class and tag registered, so that old ledgers can be read.

    Every process that opens the ledger must register the class first, even a process that only
    reads it. Call this function where the class is defined. Values must be immutable. A value that
    is read from a ledger must be equal to the value that was written. For an accumulator, the
    ledger also keeps the running total: ``to_record`` returns it as JSON, and ``from_record`` reads
    it. If two machines may compute different totals for the same launches, the accumulator needs
    the method ``merged``.

    :param tag: the name of your package, a colon and a name, in lower case: ``"acme:pair"``
    :param cls: the class; a ledger refuses values of its subclasses
    :param fields: attribute for each key; for a dataclass, all of its fields
    :param make: function that makes a value from keyword arguments named like the keys; by default
        the class is called with keyword arguments named like the attributes
    :raises InvalidTypeError, InvalidValueError: naming the argument; also if the tag belongs to
        another class, or the class to another tag

    :example:

    >>> from dataclasses import dataclass
    >>> from opendp_concurrent.ledger import register
    >>> @dataclass(frozen=True)
    ... class Pair:
    ...     first: float
    ...     second: float
    >>> register("acme:pair", Pair, {"first": "first", "second": "second"})
    """
    if not isinstance(cls, type) or any(cls is one for one in _WRITTEN):
        raise InvalidTypeError(f"cls must be a class of your own, found {shown(cls)}")
    if _TAG.fullmatch(tag) is None:
        raise InvalidValueError(
            f"tag ({shown(tag)}) must be the name of a package, a colon and a name, in lower "
            "case, such as 'acme:pair'"
        )
    if make is not None and not callable(make):
        raise InvalidTypeError(f"make must be a function, found {shown(make)}")
    attributes = _attributes(fields)
    kind = plain(tag, cls, attributes, make, outside=True)
    with _LOCK:
        _require_free(kind)
        add(kind)
        decode.cache_clear()


def _attributes(fields: Any) -> dict[str, str]:
    read = checks.mapping("attribute names by key", fields=fields)
    for key, attribute in read.items():
        if not isinstance(key, str) or _KEY.fullmatch(key) is None:
            raise InvalidValueError(
                f"fields has the key {shown(key)}; a key must be in lower case, such as 'max_order'"
            )
        if not isinstance(attribute, str) or not attribute.isidentifier():
            raise InvalidValueError(
                f"fields[{key!r}] ({shown(attribute)}) must be the name of an attribute"
            )
    return {str(key): str(attribute) for key, attribute in read.items()}


def _require_free(kind: Kind) -> None:
    """Check that neither the tag nor the class is registered with another one.

    A class that is defined again, as in a notebook, replaces the older class of the same name.
    """
    other = BY_CLASS.get(kind.cls)
    if other is not None and other.tag != kind.tag:
        raise InvalidValueError(
            f"cls ({kind.cls.__name__}) already has the tag {other.tag!r}; a class has one tag"
        )
    older = KINDS.get(kind.tag)
    if older is None:
        return
    same = (older.cls.__module__, older.cls.__qualname__)
    if set(older.keys) != set(kind.keys) or same != (kind.cls.__module__, kind.cls.__qualname__):
        raise InvalidValueError(
            f"tag ({kind.tag!r}) belongs to {older.cls.__module__}.{older.cls.__qualname__} with "
            f"the keys ({', '.join(older.keys)}); use another tag"
        )
