"""What a caller hands over, as values of our own: copied first, then checked and used.

A check says something about what is used only if both read the same. The caller may keep an array
and change it between the two, and an object of a class of theirs may answer differently each time
that it is asked. Sequences and mappings are read once, by ``checks.elements``, ``checks.read`` and
``checks.mapping``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import is_a


def array(values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return values as a new NumPy array that shares its memory with nothing, or raise.

    :raises TypeError, ValueError: whatever the values raise when they are read
    """
    try:
        read = np.asarray(values, dtype=dtype)  # NumPy's class; the memory may be the caller's
        return np.array(read, copy=True, subok=False)
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise TypeError(f"cannot be read: {type(error).__name__}") from error


def plain(value: Any) -> Any:
    """Return a number or a text of a class of the caller's as Python's own; others as they are."""
    kind = type(value)
    if kind in (int, float, bool, str):
        return value
    if is_a(value, int):
        return int.__int__(value)
    if is_a(value, float):
        return float.__float__(value)
    return str.__str__(value) if is_a(value, str) else value
