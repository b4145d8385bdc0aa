"""Records of how things were made, and the ``then_`` forms of constructors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from opendp._lib import AnyMeasurement, AnyOdometer, AnyTransformation
from opendp.extras._utilities import to_then as _to_then
from opendp.mod import __version__, _PartialConstructor

from ..arguments.provenance import Unrecorded

PARTIAL_CONSTRUCTOR: type = _PartialConstructor
VERSION: str = __version__
MEASUREMENT, ODOMETER, TRANSFORMATION = AnyMeasurement, AnyOdometer, AnyTransformation


def to_then(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``then_`` form of a ``make_`` constructor, whose results cannot be serialised."""
    make = _to_then(constructor)

    @wraps(make)
    def then(*args: Any, **kwargs: Any) -> Any:
        partial = make(*args, **kwargs)
        partial.__opendp_dict__ = Unrecorded()
        return partial

    return then


def unchained(name: str) -> str:
    """Return the message for a ``then_`` constructor where its result is needed."""
    return (
        f"{name} is a then_ constructor, which makes nothing before it is chained; chain it: "
        "input_space >> then_..., or transformation >> then_..."
    )


def made_as(one: Any, original: Any) -> Any:
    """Return ``one``, which equals ``original``, with the record of how ``original`` was made.

    The native object is unchanged; only ``dp.serialize`` reads the record.
    """
    record = getattr(original, "__opendp_dict__", None)
    if record is not None:
        one.__opendp_dict__ = record
    return one
