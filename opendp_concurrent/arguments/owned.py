"""Copies of what a caller passes: first copied, then checked and used.

A check is only valid if the same values are used afterwards. But the caller may change an array
after the check, and an object of the caller's own class may return other values each time it is
read. Sequences and mappings are read once, by ``checks.elements``, ``checks.read`` and
``checks.mapping``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..types import Argument

_SCALARS = frozenset(np.dtype(code).type for code in "bBhHiIlLqQefdg")  # no times, no truth values


def array(values: Argument, dtype: Any = None) -> NDArray[Any]:
    """Return values as a new NumPy array that shares its memory with no other, or raise.

    :raises TypeError, ValueError: as reading the values does
    """
    try:
        read = np.asarray(values, dtype=dtype)  # NumPy's class; the memory may be the caller's
        return np.array(read, copy=True, subok=False)
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise TypeError(f"cannot be read: {type(error).__name__}") from error


def own_number(value: Argument) -> Any:
    """Return a NumPy number as the number of Python that equals it; any other value as it is."""
    if type(value) not in _SCALARS:
        return value
    own = int(value) if value.dtype.kind in "iu" else float(value)
    return own if own == value or value != value else value  # a long double may lie between two


def plain(value: Argument) -> Argument:
    """Return a number or text of a subclass as Python's own class; any other value as it is."""
    kind = type(value)
    if kind in (int, float, bool, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else value
