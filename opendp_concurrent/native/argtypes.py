"""Thread safety of native functions: their ``argtypes`` are set only where they change.

OpenDP sets ``argtypes`` before each call of a function that all threads share. ``ctypes`` frees the
old converters, although another thread may be using them. Under OpenDP 0.16, eight threads that
call ``measurement.map`` crash the process within seconds. So an equal value is not set again.

OpenDP's callbacks set them too, each time that Python has answered. So they are counted here.
"""

from __future__ import annotations

import threading
from typing import Any

from opendp._lib import lib

_OK, _ERROR = lib.ffiresult_ok, lib.ffiresult_err  # what a callback returns by
_LOCK = threading.RLock()  # reentrant: garbage collection under the lock may free an object
_FUNCTION: Any = type(lib.ffiresult_ok)
_NATIVE = _FUNCTION.__base__.argtypes


class _Answered(threading.local):
    """How often Python has answered native code in this thread."""

    count = 0


_ANSWERED = _Answered()


def answered() -> int:
    """Return how many values native calls of this thread have requested from Python so far."""
    return _ANSWERED.count


def _differ(function: Any, argument_types: Any) -> bool:
    before = _NATIVE.__get__(function)
    if before is None or argument_types is None:
        return before is not argument_types
    return list(before) != list(argument_types)


def _set(function: Any, argument_types: Any) -> None:
    if function is _OK or function is _ERROR:
        _ANSWERED.count += 1
    before = _NATIVE.__get__(function)
    if before is argument_types or (before and argument_types and [*before] == [*argument_types]):
        return
    with _LOCK:
        if _differ(function, argument_types):  # another thread may have set it by now
            _NATIVE.__set__(function, argument_types)


def set_once() -> None:
    """Give the library's functions an ``argtypes`` that is set only where it changes."""
    _FUNCTION.argtypes = property(_NATIVE.__get__, _set)
