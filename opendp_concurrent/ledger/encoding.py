"""How values are written in a ledger, and checked when they are read, whoever wrote them.

Other programs can write anything to a database: numbers in place of text, JSON that nests 10,000
levels deep, a time of no year. Such a value raises ``LedgerDamagedError``, which names the row. It
raises no other exception.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from threading import Lock
from typing import Any

import numpy as np

from .. import _checks as checks
from .. import accounting, errors
from .._checks import AROUND, BY_CLASS, KINDS, Kind, Text, add, attribute_kind, checked
from ..measures import AccumulatorState, by_tag, registered

UNREADABLE = (  # what reading a hostile value can raise
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Name the row ``what`` if the block cannot read it.

    :raises LedgerDamagedError: if the block raises one of ``UNREADABLE``
    """
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(what, error) from None


def unreadable(what: str, error: BaseException) -> errors.LedgerDamagedError:
    """Return the error of a row that cannot be read."""
    try:
        text = str(error) or type(error).__name__
    except UNREADABLE:
        text = type(error).__name__
    return errors.LedgerDamagedError(f"{what} is unreadable: {one_line(text, 300)}")


def require_text(what: str, **columns: Any) -> None:
    """Check that the columns are text.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if not (is_plain(value) or (isinstance(value, str) and checks.is_text(value))):
            raise errors.LedgerDamagedError(f"{what} is unreadable: its {name} is not text")


def is_plain(value: errors.Json) -> bool:
    """Return whether a value is text of ASCII characters, as most is."""
    return type(value) is str and value.isascii() and "\0" not in value


def require_count(what: str, **columns: Any) -> None:
    """Check that the columns are integers, and at least 0.

    :raises LedgerDamagedError: naming the row and the column
    """
    for name, value in columns.items():
        if type(value) is not int or value < 0:
            raise errors.LedgerDamagedError(
                f"{what} is unreadable: its {name} is not a non-negative integer"
            )


def one_line(text: str, most: int) -> str:
    """Return at most so many characters of a text on one line, without control characters."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


# The names with which values are written. Records contain no Python names.
#
# A record has the tags and keys of the table in ``_checks.py``, to which each class adds
# itself.

FORM = 2  # of what is written; terms say it, so that a later version can have another one


def kind_of(value: errors.Json) -> Kind:
    """Return the kind of a value.

    :raises InvalidTypeError: if its class is not in the table
    """
    kind = BY_CLASS.get(type(value))
    if kind is None:
        above = (BY_CLASS.get(cls) for cls in type(value).__mro__)
        kind = next((one for one in above if one is not None and one.subclasses), None)
    if kind is None:
        raise errors.InvalidTypeError(
            f"{type(value).__name__} has no exact record; to keep values of your own class, "
            "register the class with opendp_concurrent.extend.register"
        )
    return kind


def unknown(tag: str) -> Exception:
    """Return the error of a tag that nobody has: only those of other packages have a colon."""
    return errors.UnregisteredError(tag) if ":" in tag else LookupError(tag)


# Encode distances and accumulators as text, and decode them exactly.
#
# Doubles are written in hexadecimal, and arrays of doubles as bytes, so that no bit is lost. Other
# values are written with their tags. The text is JSON without spaces and with sorted
# keys. A decoded value encodes to the same text. Equal values encode to the same text, except for
# the order of a product's factors.

_LARGEST = 10**4300  # Python reads no longer ones, unless a process is told to
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: errors.Json) -> str:
    """Write a JSON value in canonical form."""
    return encode_basestring_ascii(value) if type(value) is str else _WRITER.encode(value)


def encode(name: str, value: errors.Json) -> str:
    """Write a distance or an accumulator.

    :param name: name of the argument, for errors
    :raises InvalidTypeError: if the value has no exact record
    """
    return canonical(to_shape(name, value))


def to_shape(name: str, value: errors.Json) -> Any:
    """Return a JSON value that represents a value exactly.

    :raises InvalidTypeError: if the value has no exact record
    """
    try:
        return _shape(value)
    except errors.InvalidTypeError as error:
        raise errors.InvalidTypeError(
            f"{name} ({errors.shown(value)}) cannot be kept in a ledger: {error}"
        ) from None


@lru_cache(maxsize=2**15)  # values are immutable; of each limit, few losses are distinct
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
    raise errors.InvalidValueError(f"{text[:200]!r} is not an exact record of a value")


def _shape(value: errors.Json) -> Any:
    if type(value) is int and abs(value) >= _LARGEST:
        raise errors.InvalidTypeError(
            "it has an integer of more than 4300 digits; pass a shorter one"
        )
    if value is None or type(value) in (bool, int):
        return value
    if type(value) is str:
        if not checks.is_text(value):
            raise errors.InvalidTypeError("it has a NUL or a lone surrogate")
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
    return kinds == {str} and checks.is_text("".join(values))


def _own_parts(kind: Kind, value: errors.Json) -> Any:
    """Return the parts of a value of another package, and check that they make an equal value."""
    try:
        parts = kind.parts(value)
        again = kind.make(parts)
        same = type(again) is kind.cls and bool(again == value)
    except Exception as error:  # the other package may raise anything
        raise errors.InvalidTypeError(f"its parts cannot be read: {error}") from None
    if not same:
        raise errors.InvalidTypeError(f"the attributes of {kind.tag!r} do not make an equal value")
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
    kind = KINDS.get(name)
    if kind is None:
        raise unknown(name)
    if not set(inner) <= set(kind.keys):
        raise LookupError(name)
    parts = {key: from_shape(one) for key, one in inner.items()}
    if not kind.outside:
        return kind.make(parts)
    try:
        return kind.make(parts)
    except Exception as error:  # the other package may raise anything
        raise errors.InvalidValueError(f"{kind.tag!r} cannot be made: {error}") from None


# Write a privacy measure as its tag and its parameters, and read it.
#
# Terms contain the name of a measure. A measure of another package is written as its name.


def written(name: str) -> errors.Json:
    """Return what is written of the measure with this name."""
    known = by_tag(name)
    if known is None or not known.tag:
        return name
    return {known.tag: {key: {"double": one.hex()} for key, one in known.parameters().items()}}


def read(shape: Any) -> str:
    """Return the name of a measure.

    :raises LookupError, TypeError, ValueError: if no measure is written like this
    """
    if isinstance(shape, str):
        return shape
    ((tag, parameters),) = shape.items()
    cls = next((one for one in registered() if one.tag == tag), None)  # those of ours come first
    if cls is None:
        raise unknown(tag)
    known = cls.of_parameters(
        **{key: float.fromhex(one["double"]) for key, one in parameters.items()}
    )
    return known.name


def empty_total(terms: accounting.Terms) -> AccumulatorState[Any]:
    """Return the accumulator of no launch.

    The measure of another package may not be registered here. Most accumulators do not need it.
    """
    return terms.accumulator.start(by_tag(terms.measure))


def read_total(terms: accounting.Terms, record: errors.Json) -> AccumulatorState[Any]:
    """Return the accumulator that ``to_record`` wrote as ``record``."""
    return terms.accumulator.from_record(by_tag(terms.measure), record)


# Hash chain: the hash of an entry covers the hash before it, so an edit changes all later ones.

SCHEMA_VERSION = 1  # the first hash contains it


def first_hash(dataset: str, terms: str | None) -> str:
    """Return the hash before the first charge. It covers the dataset and the terms."""
    text = canonical(("opendp_concurrent", SCHEMA_VERSION, dataset, terms))
    return sha256(text.encode()).hexdigest()


@lru_cache(maxsize=256, typed=True)  # also of what others wrote
def hasher(dataset: str, label: str, mechanism: str) -> Callable[[str, int, int, str], str]:
    """Return the hash of charges of one dataset, label and mechanism.

    It maps the hash before, the sequence, the time and the JSON of the d_mid to the hash: that of
    the list of all seven as JSON. Whoever reads a charge also checks that its time is an integer.
    """
    first, last = canonical(dataset), f"{canonical(label)},{canonical(mechanism)}"

    def after(before: str, sequence: int, time: int, d_mid: str) -> str:
        text = f'["{before}",{first},{sequence},{time},{last},{d_mid}]'
        return sha256(text.encode()).hexdigest()

    return after


# What a ledger records of one charge.


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded charge. The time is the computer's clock; no guarantee depends on it.

    :ivar sequence: number of the charge, from 1, in the order of admission
    :ivar time: time when the charge was written, in UTC
    :ivar label: label that was given at launch
    :ivar mechanism: description of the mechanism, from its constructor
    :ivar d_mid: privacy loss of the mechanism, at the d_in of the ledger
    :ivar loss: upper bound on the privacy loss of this and all earlier charges
    :ivar hash: hash of this and all earlier entries
    :ivar limit: labels of the limits that it was below, from the outermost one; empty if none
    :ivar limit_losses: for each of these limits, an upper bound on the privacy loss of this and all
        earlier charges below it
    """

    sequence: int
    time: datetime
    label: str
    mechanism: str
    d_mid: Any
    loss: Any
    hash: str
    limit: tuple[str, ...] = ()
    limit_losses: tuple[errors.Loss, ...] = ()


# Register classes of other packages, so that a ledger can keep their values.

_TAG = re.compile(r"[a-z][a-z0-9_.-]{0,63}:[a-z][a-z0-9_.-]{0,63}")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}")
_WRITTEN = (bool, int, float, str, tuple, type(None), np.ndarray)  # these have no tag
_LOCK = Lock()


@checked
def register_tag(
    tag: Text, cls: type, fields: Mapping[str, str], *, make: Callable[..., Any] | None = None
) -> None:
    """Let ledgers keep the values of a class of another package, see ``oc.extend.register``.

    :param fields: attribute for each key; for a dataclass, all of its fields
    """
    if not isinstance(cls, type) or any(cls is one for one in _WRITTEN):
        raise errors.InvalidTypeError(f"cls must be a class of your own, found {errors.shown(cls)}")
    if _TAG.fullmatch(tag) is None:
        raise errors.InvalidValueError(
            f"tag ({errors.shown(tag)}) must be the name of a package, a colon and a name, in "
            "lower case, such as 'acme:pair'"
        )
    if make is not None and not callable(make):
        raise errors.InvalidTypeError(f"make must be a function, found {errors.shown(make)}")
    attributes = _attributes(fields)
    kind = attribute_kind(tag, cls, attributes, make, outside=True)
    with _LOCK:
        _require_free(kind)
        add(kind)
        decode.cache_clear()


def _attributes(fields: Mapping[str, str]) -> dict[str, str]:
    read = checks.mapping("attribute names by key", fields=fields)
    for key, attribute in read.items():
        if not _KEY.fullmatch(str(key)) or not str(attribute).isidentifier():
            raise errors.InvalidValueError(
                f"fields ({errors.shown({key: attribute})}) must map keys in lower case, such as "
                "'max_order', to names of attributes"
            )
    return {str(key): str(attribute) for key, attribute in read.items()}


def _require_free(kind: Kind) -> None:
    """Check that neither the tag nor the class is registered with another one.

    A class that is defined again, as in a notebook, replaces the older class of the same name.
    """
    other = BY_CLASS.get(kind.cls)
    if other is not None and other.tag != kind.tag:
        raise errors.InvalidValueError(
            f"cls ({kind.cls.__name__}) already has the tag {other.tag!r}; a class has one tag"
        )
    older = KINDS.get(kind.tag)
    if older is None:
        return
    same = (older.cls.__module__, older.cls.__qualname__)
    if set(older.keys) != set(kind.keys) or same != (kind.cls.__module__, kind.cls.__qualname__):
        raise errors.InvalidValueError(
            f"tag ({kind.tag!r}) belongs to {older.cls.__module__}.{older.cls.__qualname__} with "
            f"the keys ({', '.join(older.keys)}); use another tag"
        )
