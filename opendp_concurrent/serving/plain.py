"""What JSON has for an answer."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any

import numpy as np

from ..errors import ConcurrentError, InvalidTypeError


def as_json(value: Any) -> Any:
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
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, ConcurrentError):
        return str(value)
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    raise InvalidTypeError(f"value has a {type(value).__name__}, which has no form in JSON")
