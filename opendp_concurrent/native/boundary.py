"""Callbacks from native code that never raise, even if an interrupt arrives.

OpenDP calls Python through four functions: for functions and maps, for queryables, for comparisons,
and for counting references. They pass on a ``KeyboardInterrupt``, or anything else that is not an
``Exception``. The native code then reads a result that was never written, and the process crashes.
An interrupt can arrive between any two instructions: in a signal handler (in the main thread), or
by ``PyThreadState_SetAsyncExc`` (in any thread). So this code replaces these four, once, at import:

* It is in a ``try`` from its first instruction on. Where Python checks for interrupts at the entry
  of a function, before any ``try``, that check is removed.
* A caught exception is kept, and the native call receives an error. When the call returns that
  error, OpenDP's function that reads the result raises the kept exception.
* The argument is marked as OpenDP's own before anything can fail. Else it would be freed twice.
* References are counted without a call in Python, so each is counted once, whatever arrives.

One case remains. A trace or profile function that is written in Python (``pdb``, ``trace``,
``profile``) is called before the ``try`` and after it. An interrupt while it runs is raised there;
the argument is then freed twice, or the result is missing, and the process crashes. Interrupts
without such a function never arrive there, and the lines of this code are not traced.
"""

from __future__ import annotations

import ctypes
import dis
import re
import sys
import threading
from collections.abc import Callable
from itertools import count
from traceback import format_exc
from types import CodeType, FunctionType
from typing import Any

from opendp import _convert, _lib
from opendp._convert import c_to_py, py_to_c
from opendp._lib import AnyObject, AnyObjectPtr, lib
from opendp.mod import OpenDPException

_PLAIN = ctypes.POINTER(AnyObject)  # without the destructor of AnyObjectPtr
_USER_ERROR = b"Continued stack trace from Exception in user-defined function"
_INTERRUPTED = re.compile(r"interrupted in a callback, by \w+ number (\d+)")
_MOST_KEPT = 1000  # an error that is caught on the way is never removed
_KEPT: dict[int, BaseException] = {}
_NUMBERS = count()


class _Entries(threading.local):
    """Number of values that OpenDP requested from Python in this thread."""

    count = 0


_ENTRIES = _Entries()


def entries() -> int:
    """Return how many values native calls of this thread have requested from Python so far."""
    return _ENTRIES.count


def _function(name: str, *argument_types: Any) -> Any:
    function = lib[name]
    function.argtypes, function.restype = argument_types, ctypes.c_void_p
    return function


_ok = _function("ffiresult_ok", ctypes.c_void_p)
_error = _function("ffiresult_err", ctypes.c_char_p, ctypes.c_char_p)


# --- what the callbacks do, within a try -------------------------------------------------------


def _give(value: Any, kind: Any) -> int:
    """Pass a value to OpenDP, which then owns it."""
    pointer = py_to_c(value, c_type=AnyObjectPtr, type_name=kind)
    pointer.__class__ = _PLAIN
    address: int = _ok(ctypes.addressof(pointer.contents))
    return address


def _answer(argument: Any, userdata: Any) -> int:
    _ENTRIES.count += 1
    function, kind = userdata
    return _give(function(c_to_py(argument)), kind)


def _move(query: Any, is_internal: Any, userdata: Any) -> int:
    _ENTRIES.count += 1
    transition, kind = userdata
    return _give(transition(c_to_py(query), is_internal), kind)


def _order(left: Any, right: Any) -> int:
    _ENTRIES.count += 1
    if left == right:  # first, as an order may not be supported
        return _give(0, "i8")
    if left < right:
        return _give(-1, "i8")
    if left > right:
        return _give(1, "i8")
    raise ValueError("left and right are not comparable")


def _trace(error: Exception) -> bytes:
    try:
        return format_exc().encode(errors="replace")
    except Exception:  # while it is formatted: no room, or an error that cannot be read
        return type(error).__name__.encode()


def _fail(error: BaseException) -> int:
    """Pass an error to OpenDP. An interrupt is stored until the native call returns."""
    if isinstance(error, Exception):
        try:
            raise error
        except Exception:
            failed: int = _error(_USER_ERROR, _trace(error))
            return failed
    number = next(_NUMBERS)
    _KEPT[number] = error.with_traceback(None)  # its frames may hold data
    _KEPT.pop(number - _MOST_KEPT, None)
    kind = re.sub(r"\W", "_", type(error).__name__)
    told: int = _error(f"interrupted in a callback, by {kind} number {number}".encode(), b"")
    return told


def _read(result: Any, type_: Any, original: Callable[[Any, Any], Any]) -> Any:
    """Read the result of a native call, as OpenDP does."""
    try:
        return original(result, type_)
    except OpenDPException as error:
        found = _INTERRUPTED.search(str(error))
        interrupt = _KEPT.pop(int(found[1]), None) if found else None
        if interrupt is None:
            raise
    raise interrupt from None


class _Counting:
    """``self[x]`` changes the number of references to x. Subscripts look for no interrupt."""


class _Increase(_Counting):
    __getitem__ = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


class _Decrease(_Counting):
    __getitem__ = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))


# --- the callbacks -----------------------------------------------------------------------------
# They run with the globals of OpenDP's modules, so all other names that they use are arguments.
# A second and a third interrupt may arrive while the first is handled. Not in a loop: Python looks
# for interrupts where a loop begins again, which is outside of the try. If no error can be made,
# since the stack is full, no result is returned, which OpenDP takes for an error.


def _owned(*arguments: Any, step: Any, fail: Any, plain: Any) -> Any:
    """Answer on a first argument that OpenDP owns."""
    try:
        try:
            try:
                try:
                    arguments[0].__class__ = plain
                    return step(*arguments)
                except BaseException as error:
                    failure = error
                return fail(failure)
            except BaseException as error:
                failure = error
            return fail(failure)
        except BaseException as error:
            failure = error
        return fail(failure)
    except BaseException:
        return 0


def _compared(left: Any, right: Any, *, step: Any, fail: Any) -> Any:
    try:
        try:
            try:
                try:
                    return step(left, right)
                except BaseException as error:
                    failure = error
                return fail(failure)
            except BaseException as error:
                failure = error
            return fail(failure)
        except BaseException as error:
            failure = error
        return fail(failure)
    except BaseException:
        return 0


def _counted(ptr: Any, increment: Any, *, counting: Any) -> Any:
    try:
        return counting[increment][ptr] is None
    except BaseException:
        return False


def _unwrapped(result: Any, type_: Any, *, read: Any, original: Any) -> Any:
    return read(result, type_, original)


def _unbreakable(function: Any) -> CodeType:
    """Return the code of ``function`` without the look for interrupts at its entry.

    Python 3.10 leaves it out before a ``try``. Later ones look in their first instruction, unless
    its argument says that a coroutine goes on there. The line numbers are removed, so that a trace
    function is not called for the line before the ``try``.
    """
    code: CodeType = function.__code__
    if sys.version_info < (3, 11):
        return code.replace(co_linetable=b"")
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RESUME":
            instructions = bytearray(code.co_code)
            instructions[instruction.offset + 1] = _GOES_ON
            full, rest = divmod(len(code.co_code) // 2, 8)
            lines = b"\xff" * full + bytes([0xF8 | rest - 1] if rest else [])
            return code.replace(co_code=bytes(instructions), co_linetable=lines)
    raise AssertionError("the bytecode of the function has no RESUME instruction")


_GOES_ON = 2  # after ``yield from``: dis, RESUME
_OWNED, _COMPARED, _COUNTED = map(_unbreakable, (_owned, _compared, _counted))
CALLBACKS = frozenset({_OWNED})


def _replace(function: FunctionType, code: CodeType, **names: Any) -> None:
    function.__kwdefaults__ = names
    function.__code__ = code


def install() -> None:
    """Give OpenDP's callbacks the code above. Idempotent."""
    _replace(_convert._invoke_py_callback, _OWNED, step=_answer, fail=_fail, plain=_PLAIN)
    _replace(_convert._invoke_py_transition, _OWNED, step=_move, fail=_fail, plain=_PLAIN)
    _replace(_lib._total_cmp, _COMPARED, step=_order, fail=_fail)
    _replace(_lib._ref_count, _COUNTED, counting=(_Decrease(), _Increase()))
    if _lib.unwrap.__code__ is not _unwrapped.__code__:
        original = FunctionType(_lib.unwrap.__code__, vars(_lib), "unwrap")
        _replace(_lib.unwrap, _unwrapped.__code__, read=_read, original=original)


install()
