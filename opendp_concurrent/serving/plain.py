"""What JSON has for an answer."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any

import numpy as np

from ..errors import ConcurrentError, InvalidTypeError
from ..types import Json

_MOST_NUMBERS = 10**7
_MOST_BITS = 2**13  # Python writes no integers of more than 4300 digits


def as_json(value: Json) -> Json:
    """Return what JSON has for an answer, a loss or a description.

    A float that is not finite is text, such as ``"inf"``. A pair is a list, a dataclass is an
    object of its fields, a member of an enumeration is its name, and an error of this package is
    its text. Keys of a mapping are text.

    :param value: such as a release, ``privacy_loss()`` or ``describe(...)`` of a queryable
    :return: a JSON value
    :raises InvalidTypeError: if JSON has nothing for it

    :example:

    >>> from opendp_concurrent.serving import as_json
    >>> as_json({"remaining": (float("inf"), 1e-6), 3: oc.m.Outcome.BELOW})
    {'remaining': ['inf', 1e-06], '3': 'BELOW'}
    """
    try:
        return _plain(value)
    except RecursionError:
        raise InvalidTypeError("value is nested too deeply for JSON, or contains itself") from None


def _plain(value: Json) -> Json:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidTypeError(f"value has an integer of more than {_MOST_BITS} bits")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "mM":
        if not value.size <= _MOST_NUMBERS:
            raise InvalidTypeError(f"value has an array of more than {_MOST_NUMBERS:,} numbers")
        found = value.tolist()
        if not isinstance(found, np.generic):  # as a long double does, which JSON does not have
            return _plain(found)
    if isinstance(value, ConcurrentError):
        return str(value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if is_dataclass(type(value)) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    raise InvalidTypeError(f"value has a {type(value).__name__}, which has no form in JSON")


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    found = {str(key): _plain(one) for key, one in value.items()}
    if len(found) != len(value):
        raise InvalidTypeError("value has keys that are the same text, such as 1 and '1'")
    return found
