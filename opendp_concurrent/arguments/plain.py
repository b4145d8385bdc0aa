"""Values of Python's own classes, in place of those of a subclass."""

from __future__ import annotations

from ..types import Argument
from .checks import is_a


def plain(value: Argument) -> Argument:
    """Return a number or text of a subclass as Python's own class; any other value as it is."""
    kind = type(value)
    if kind in (int, float, bool, str):
        return value
    if is_a(value, int):
        return int.__int__(value)
    if is_a(value, float):
        return float.__float__(value)
    return str.__str__(value) if is_a(value, str) else value
