"""Values of other packages in a ledger."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import numpy as np

from .. import checks
from ..checks import checked, shown, text
from ..errors import InvalidTypeError, InvalidValueError
from . import wire
from .encoding import decode

_TAG = re.compile(r"[a-z][a-z0-9_.-]{0,63}:[a-z][a-z0-9_.-]{0,63}")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WRITTEN = (bool, int, float, str, tuple, type(None), np.ndarray)  # without a tag
_LOCK = Lock()


@checked(tag=text)
def register(
    tag: str,
    cls: type,
    fields: Mapping[str, str],
    *,
    make: Callable[..., Any] | None = None,
) -> None:
    """Let values of a class of your own be kept in ledgers: accumulators, and distances.

    What is written of a value is the tag, and for each key what one of its attributes is: a number,
    a text, None, a tuple, a distance, or a value of another class that is registered. Tag and keys
    are in the ledger for ever; the names of class, module and attributes are not, and may change. A
    value that is to be written otherwise gets another tag, and the older one stays registered.

    Every process that opens the ledger must register the class before, also one that only reads it:
    call this where the class is defined. Values must not change, and be equal to what is made again
    of what is written of them. Of an accumulator, the ledger keeps the running total as
    ``to_record`` gives it, which must be JSON, and reads it by ``from_record``. If totals of the
    same launches may differ from one machine to another, it has ``merged``.

    :param tag: ``"package:name"``, in small letters; those without a colon are ours
    :param cls: the class itself; values of classes below it are not written
    :param fields: for each key the attribute that is written; of a dataclass, every field
    :param make: makes a value; called with the keys as keywords. By default the class is called,
        with the attributes
    :raises InvalidTypeError, InvalidValueError: naming the argument; also if the tag or the class
        is registered otherwise

    :example:

    >>> from dataclasses import dataclass
    >>> from opendp_concurrent.ledger import register
    >>> @dataclass(frozen=True)
    ... class Pair:
    ...     first: float
    ...     second: float
    >>> register("acme:pair", Pair, {"first": "first", "second": "second"})
    """
    if not checks.is_a(cls, type) or any(cls is one for one in _WRITTEN):
        raise InvalidTypeError(f"cls must be a class of your own, found {shown(cls)}")
    if _TAG.fullmatch(tag) is None:
        raise InvalidValueError(
            f"tag ({shown(tag)}) must be a package and a name with a colon between them, in small "
            "letters, such as 'acme:powers'"
        )
    if make is not None and not callable(make):
        raise InvalidTypeError(f"make must be a function, found {shown(make)}")
    attributes = _attributes(fields)
    kind = wire.plain(tag, cls, attributes, make, outside=True)
    with _LOCK:
        _require_free(kind)
        wire.add(kind)
        decode.cache_clear()


def _attributes(fields: Any) -> dict[str, str]:
    read = checks.mapping("names of attributes by keys", fields=fields)
    for key, attribute in read.items():
        if not checks.is_a(key, str) or _KEY.fullmatch(key) is None:
            raise InvalidValueError(f"fields has the key {shown(key)}; keys are like 'max_order'")
        if not checks.is_a(attribute, str) or not attribute.isidentifier():
            raise InvalidValueError(
                f"fields[{key!r}] ({shown(attribute)}) must be the name of an attribute"
            )
    return {str(key): str(attribute) for key, attribute in read.items()}


def _require_free(kind: wire.Kind) -> None:
    """Raise if the tag or the class is registered otherwise.

    A class that was defined anew, as in a notebook, takes the place of the older one.
    """
    other = wire.BY_CLASS.get(kind.cls)
    if other is not None and other.tag != kind.tag:
        raise InvalidValueError(
            f"cls ({kind.cls.__name__}) is written as {other.tag!r}, and a value has one tag"
        )
    older = wire.KINDS.get(kind.tag)
    if older is None:
        return
    same = (older.cls.__module__, older.cls.__qualname__)
    if set(older.keys) != set(kind.keys) or same != (kind.cls.__module__, kind.cls.__qualname__):
        raise InvalidValueError(
            f"tag ({kind.tag!r}) is that of {older.cls.__module__}.{older.cls.__qualname__}, with "
            f"the keys {', '.join(older.keys) or 'none'}; take another tag"
        )
