"""Pointers to native objects. The pointer of a Python object can change."""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

from opendp._lib import AnyMeasurement, AnyOdometer, AnyTransformation
from opendp.mod import Measurement, Transformation

from .records import made_as

MEASUREMENT, ODOMETER, TRANSFORMATION = AnyMeasurement, AnyOdometer, AnyTransformation


class _PinnedMeasurement(Measurement):
    """A copy of a pointer that does not free the native object."""

    _type_ = MEASUREMENT

    def __del__(self) -> None:
        """Do nothing: the original object frees the native object."""


class _PinnedTransformation(Transformation):
    """A copy of a pointer that does not free the native object."""

    _type_ = TRANSFORMATION

    def __del__(self) -> None:
        """Do nothing: the original object frees the native object."""


Pinnable = TypeVar("Pinnable", Measurement, Transformation)


def pinned(one: Pinnable) -> Pinnable:
    """Return an object that always points to the native object that ``one`` points to now.

    Anyone who holds ``one`` can change its pointer (``one.contents = other.contents``) after the
    check.
    """
    kind = _PinnedMeasurement if isinstance(one, Measurement) else _PinnedTransformation
    found: Any = ctypes.cast(one, kind)
    found.origin = one  # which frees it
    made: Pinnable = made_as(found, one)  # where dp.serialize reads it
    return made


def address(measurement: Measurement | Transformation) -> int:
    """Return the address of the native measurement. The pointer of a Python object can change."""
    return ctypes.addressof(measurement.contents)
