"""Encode distances and accumulators as text, and decode them exactly.

Doubles are written in hexadecimal, and arrays of doubles as bytes, so that no bit is lost. Other
values are written with the names of ``wire.py``. The text is JSON without spaces and with
sorted keys. A decoded value encodes to the same text. Equal values encode to the same text, except
for the order of a product's factors.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np

from ...arguments.checks import shown
from ...arguments.written import AROUND, Kind
from ...errors import InvalidTypeError, InvalidValueError
from ...types import Json
from .readable import UNREADABLE, is_text
from .wire import kind_of, named

_LARGEST = 10**4300  # Python reads no longer ones, unless a process is told to
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Json) -> str:
    """Write a JSON value in canonical form."""
    return encode_basestring_ascii(value) if type(value) is str else _WRITER.encode(value)


def encode(name: str, value: Json) -> str:
    """Write a distance or an accumulator.

    :param name: name of the argument, for errors
    :raises InvalidTypeError: if the value has no exact record
    """
    return canonical(to_shape(name, value))


def to_shape(name: str, value: Json) -> Any:
    """Return a JSON value that represents a value exactly.

    :raises InvalidTypeError: if the value has no exact record
    """
    try:
        return _shape(value)
    except InvalidTypeError as error:
        raise InvalidTypeError(
            f"{name} ({shown(value)}) cannot be kept in a ledger: {error}"
        ) from None


@lru_cache(maxsize=1024)  # values are immutable, and few are distinct
def decode(text: str) -> Any:
    """Inverse of :func:`encode`.

    :raises InvalidValueError: if the text is not what :func:`encode` writes
    :raises UnregisteredError: if the text has a value whose class is not registered
    """
    try:
        value = from_shape(json.loads(text))
        if encode("value", value) == text:
            return value
    except UNREADABLE:
        pass
    raise InvalidValueError(f"{text[:200]!r} is not an exact record of a value")


def _shape(value: Json) -> Any:
    if type(value) is int and abs(value) >= _LARGEST:
        raise InvalidTypeError("it has an integer of more than 4300 digits; pass a shorter one")
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is str:
        if not is_text(value):
            raise InvalidTypeError("it has a NUL or a lone surrogate")
        return value
    if type(value) is float:
        return {"double": value.hex()}
    if type(value) is tuple:
        if _is_plain(value):
            return list(value)
        return [_shape(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1:
        return {"doubles": b64encode(value.astype("<f8").tobytes()).decode("ascii")}
    kind = kind_of(value)
    inner = None if kind.around is None else kind.around.of(value)
    if kind.around is not None and inner is not None:
        return {kind.around.tag: _shape(inner)}
    parts = _own_parts(kind, value) if kind.outside else kind.parts(value)
    return {kind.tag: {key: _shape(part) for key, part in parts.items()}}


def _is_plain(values: tuple[Any, ...]) -> bool:
    """Return whether all are text, or all are integers, which are written as they are."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return bool(max(map(abs, values)) < _LARGEST)
    return kinds == {str} and is_text("".join(values))


def _own_parts(kind: Kind, value: Json) -> Any:
    """Return the parts of a value of another package, and check that they make an equal value."""
    try:
        parts = kind.parts(value)
        again = kind.make(parts)
        same = type(again) is kind.cls and bool(again == value)
    except Exception as error:  # the other package may raise anything
        raise InvalidTypeError(f"its parts cannot be read: {error}") from None
    if not same:
        raise InvalidTypeError(f"the attributes of {kind.tag!r} do not make an equal value")
    return parts


def from_shape(shape: Any) -> Any:
    """Inverse of :func:`to_shape`. This does not check that the shape is canonical.

    :raises UnregisteredError: if the shape has a value whose class is not registered
    """
    if isinstance(shape, list):
        return tuple(from_shape(one) for one in shape)
    if not isinstance(shape, dict):
        return shape
    ((name, inner),) = shape.items()
    if name == "double":
        return float.fromhex(inner)
    if name == "doubles":
        return np.frombuffer(b64decode(inner, validate=True), "<f8").astype(np.float64)
    if name in AROUND:
        return AROUND[name].make(from_shape(inner))
    kind = named(name)
    if not set(inner) <= set(kind.keys):
        raise LookupError(name)
    parts = {key: from_shape(one) for key, one in inner.items()}
    if not kind.outside:
        return kind.make(parts)
    try:
        return kind.make(parts)
    except Exception as error:  # the other package may raise anything
        raise InvalidValueError(f"{kind.tag!r} cannot be made: {error}") from None
