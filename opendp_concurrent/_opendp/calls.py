"""Calls of native code: by several threads, with Python functions that it calls back.

OpenDP sets ``argtypes`` before each call of a function that all threads share. ``ctypes`` frees the
old converters, although another thread may be using them. Under OpenDP 0.16, eight threads that
call ``measurement.map`` crash the process within seconds. So an equal value is not set again.

OpenDP's callbacks set them too, each time that Python has answered. So they are counted here.
"""

import ctypes
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from inspect import currentframe
from traceback import format_exception
from types import FrameType
from typing import Any

from opendp import _convert
from opendp._convert import ATOM_MAP, c_to_py, py_to_c
from opendp._lib import AnyObjectPtr, FfiResult, FfiSlice, lib, unwrap
from opendp.mod import Measurement, OpenDPException, Transformation

from .. import errors
from .interrupts import CRITICAL, interruptible, uninterruptible
from .private import callback_codes

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


# Calls of native code: data that are converted already, and Python functions that it calls.
#
# A native call turns a Python exception that is raised inside it into a bare ``OpenDPException``.
# This package's exceptions are remembered where they leave its code. :func:`call_native`, which
# makes the native call, raises them again from the native exception.
#
# OpenDP's callbacks catch ``Exception`` only. If anything else leaves one, such as a
# ``KeyboardInterrupt``, the process crashes. So each native call that may call Python is a critical
# section, in which no interrupt arrives (``interrupts.py``). A function that is given to OpenDP
# after this package was imported is wrapped. If it is called below ``call_native``, whatever it
# raises is remembered, while OpenDP gets an ``Exception``; and while a user's function runs,
# interrupts are let in. Called in any other way, it is called as OpenDP calls it. The two functions
# of OpenDP that this replaces prepare a callback. The callbacks themselves are OpenDP's.
#
# Interrupts are not let in while a function of OpenDP or of this package runs, since it may be in
# the middle of another native call. A user's function that calls OpenDP is as safe there as
# anywhere.


class _Carried(list[BaseException]):
    """What was raised below a native call.

    :ivar charged: whether the launch that the call was is charged, once that is known
    """

    charged: bool | None = None


_ROOM = 300  # frames, some of which C code needs, too
_CALLBACKS = callback_codes()
_OWN = __file__, interruptible.__code__.co_filename  # whose frames are not shown
_CARRIED: ContextVar[_Carried | None] = ContextVar("_CARRIED", default=None)


class _StoppedError(Exception):
    """What OpenDP gets in place of an exception, which may be no ``Exception``, or of any class."""


def inside_native_call() -> bool:
    """Whether the caller runs within one of OpenDP's native calls."""
    frame: FrameType | None = currentframe()
    while frame is not None:
        if frame.f_code in _CALLBACKS:
            return True
        frame = frame.f_back
    return False


def check_stack() -> None:
    """Raise ``RecursionError`` if few frames are left for a call of native code.

    OpenDP's callbacks need some to pass on an error of a user's function. The process crashes if
    they cannot.
    """
    try:  # the stack has fewer frames, as a rule
        sys._getframe(max(1, sys.getrecursionlimit() - _ROOM))
    except ValueError:
        return
    raise RecursionError("too few frames are left on the stack to call OpenDP")


def call_native(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. This package's exceptions keep their type and values.

    Such an exception is remembered by the enclosing call of ``call_native``, if there is one. A
    native exception is replaced by the exception of this package that caused it. An interrupt that
    native code has passed on as an error is raised here, whatever became of the error.
    """
    check_stack()
    carried = _Carried()
    cause: BaseException | None = None
    try:
        with CRITICAL:
            before = _CARRIED.set(carried)
            try:
                answer = function(*arguments)
            except Exception as error:
                if carried.charged is None:
                    carried.charged = errors.charged(_behind(error, carried))
                raise
            finally:
                _CARRIED.reset(before)
    except Exception as error:
        instead = _stopped(carried)
        if instead is not None:
            _tell_charged(instead, error, carried)
        else:
            instead = _behind(error, carried)
            if isinstance(instead, errors.ConcurrentError):
                remember(instead)
            if instead is error:
                raise
            _tell_charged(instead, error, carried)
            cause = None if type(instead) is errors.MechanismError else error
    except BaseException as interrupt:  # which came, or was raised, at the end of the section
        _tell_charged(interrupt, interrupt, carried)
        raise
    else:
        instead = _stopped(carried) if carried else None
        if instead is None:
            return answer
    raise instead.with_traceback(None) from cause  # its frames may hold data


def _tell_charged(instead: BaseException, error: BaseException, carried: _Carried) -> None:
    """Let an exception say whether the launch is charged, if anything that is known here does."""
    told = (errors.charged(error), errors.charged(instead), carried.charged)
    errors.tell_charged(instead, next((one for one in told if one is not None), None))


def tell_launched(known: bool | None) -> None:
    """Let an interrupt that waits for the end of the native call say whether this is charged."""
    outer = _CARRIED.get()
    if outer is not None:
        outer.charged = known


def _stopped(carried: list[BaseException]) -> BaseException | None:
    return next((one for one in carried if not isinstance(one, Exception)), None)


def _behind(error: Exception, carried: list[BaseException]) -> BaseException:
    """Return the exception of this package that caused a native one, or the error itself."""
    if not isinstance(error, OpenDPException) or isinstance(error, errors.ConcurrentError):
        return error
    ours = [one for one in carried if isinstance(one, errors.ConcurrentError)]
    return next((one for one in reversed(ours) if str(one) in str(error)), error)


def remember(error: BaseException) -> None:
    """Make the enclosing native call, if there is one, raise this error instead of its own."""
    outer = _CARRIED.get()
    if outer is not None:
        outer.append(error)


class carry:  # noqa: N801  # it is called as a function is
    """A function of this package, whose exceptions keep their type in a native call."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, argument: Any) -> Any:
        """Call the function; native code gets an exception that it can pass on."""
        return _kept(call_native, self._function, argument)


def _kept(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``call(*arguments)``. An exception that is no ``Exception`` is remembered.

    OpenDP's callbacks write the traceback of what is raised, and the process ends if that raises.
    So they get an exception of this file, which has the text.
    """
    try:
        return call(*arguments)
    except BaseException as error:
        if isinstance(error, Exception):
            text = _written(error)
        else:
            remember(error.with_traceback(None))  # its frames may hold data
            text = f"stopped by {type(error).__name__}"
    raise _StoppedError(text)  # out here, where it has no context


def _written(error: BaseException) -> str:
    """Return an exception with its traceback, as text that can be encoded."""
    try:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in _OWN:
            trace = trace.tb_next
        text = "".join(format_exception(type(error), error, trace)).rstrip()
    except BaseException:  # of its class: nothing else may leave a callback
        return f"{type(error).__name__}, whose text cannot be read"
    return text.encode(errors="backslashreplace").decode()


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function, which native code calls."""
    # of OpenDP or of this package; a measurement may also be used as a function
    module = getattr(function, "__module__", None) or type(function).__module__
    ours = str(module).partition(".")[0] in ("opendp", "opendp_concurrent")
    call = () if ours else (interruptible,)

    @wraps(function)
    def called(*arguments: Any) -> Any:
        if _CARRIED.get() is None:
            return function(*arguments)
        return _kept(*call, function, *arguments)

    return called


def guard() -> None:
    """Wrap functions that are given to OpenDP from now on. Idempotent."""
    for name in ("_wrap_py_func", "_wrap_py_transition"):
        original = getattr(_convert, name)
        if not hasattr(original, "__wrapped__"):
            setattr(_convert, name, _preparing(original))


def _preparing(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @wraps(original)
    def prepare(function: Callable[..., Any], kind: Any) -> Any:
        ours = isinstance(function, carry)
        return original(function if ours else _guarded(function), kind)

    return prepare


# --- data in OpenDP's representation, and what runs on them ---------------------------------------

convert_objects = uninterruptible(py_to_c)  # native code counts its references to Python objects
# of OpenDP's texts, for people who know Python's
_WORDS = {"inferred type is": "found", "Vec<": "list of ", ">": "", "f64": "float", "i32": "int"}
MOST_ROWS = 2**36  # more than a machine holds


def to_pointer(data: errors.Data, carrier_type: Any) -> Any:
    """Convert ``data`` to OpenDP's representation, or raise; the message has no row of them."""
    failure = ""
    try:
        if str(carrier_type).startswith("Vec<") and not len(data) <= MOST_ROWS:
            raise errors.InvalidValueError(f"arg must have at most 2**36 rows, found {len(data)}")
        convert = convert_objects if "ExtrinsicObject" in str(carrier_type) else py_to_c
        pointer = convert(data, c_type=AnyObjectPtr, type_name=carrier_type)
    except errors.InvalidValueError:
        raise
    except Exception as error:
        reason = str(error).partition(". ")[0] if isinstance(error, TypeError) else ""
        if not reason.startswith(("inferred type is", "Expected")):
            reason = f"found {type(data).__name__} that cannot be converted"
        failure = f"{carrier_type}: {reason}"
        for rust, python in _WORDS.items():
            failure = failure.replace(rust, python)
    if failure:  # raised out here, since the error and its frames hold data
        del data
        raise errors.InvalidTypeError(
            f"arg must be data of the input_domain, {failure}; convert data, fill missing values, "
            "or build on the domain of the data, such as dp.vector_domain(dp.atom_domain(T=float))"
        )
    pointer.__opendp_dict__ = {}  # OpenDP keeps the rows here
    return pointer


to_python = c_to_py  # back from OpenDP's representation


def _function(name: str, *argument_types: Any) -> Any:
    """Return a function of the native library, apart from the one that OpenDP configures."""
    function = lib[name]
    function.argtypes, function.restype = argument_types, FfiResult
    return function


_measurement_invoke = _function("opendp_core__measurement_invoke", Measurement, AnyObjectPtr)
_transform = _function("opendp_core__transformation_invoke", Transformation, AnyObjectPtr)
_object_type = _function("opendp_data__object_type", ctypes.c_void_p)
_object_as_slice = _function("opendp_data__object_as_slice", ctypes.c_void_p)
_free = {
    kind: _function(f"opendp_data__{kind}_free", ctypes.c_void_p)
    for kind in ("object", "slice", "str")
}
_ATOMS = {name: ATOM_MAP[name] for name in ("bool", "f32", "f64", "i32", "i64", "u32", "u64")}
_PLAIN = {
    **{name.encode(): (atom, False) for name, atom in _ATOMS.items()},
    **{f"Vec<{name}>".encode(): (atom, True) for name, atom in _ATOMS.items()},
}


def invoke(measurement: Measurement, pointer: AnyObjectPtr) -> Any:
    """Run a measurement on data that are converted already."""
    try:
        result = _measurement_invoke(measurement, pointer)
    finally:
        del pointer  # the traceback of an exception keeps this frame
    return unwrap(result, AnyObjectPtr) if result.tag else _answer(result)


def _answer(result: Any) -> Any:
    """Convert an answer as OpenDP does, with a short way for numbers and vectors of numbers."""
    address = result.payload.Ok
    kind = _object_type(address)
    name = kind.payload.Ok if kind.tag == 0 else unwrap(kind, ctypes.c_void_p)
    plain = _PLAIN.get(ctypes.string_at(name))
    _free["str"](name)
    if plain is None:
        return c_to_py(unwrap(result, AnyObjectPtr))
    found = _object_as_slice(address)
    part = found.payload.Ok if found.tag == 0 else unwrap(found, ctypes.c_void_p)
    numbers = FfiSlice.from_address(part)
    atom, is_vector = plain
    if is_vector:
        answer = (atom * numbers.len).from_address(numbers.ptr)[:] if numbers.len else []
    else:
        answer = atom.from_address(numbers.ptr).value
    _free["slice"](part)
    _free["object"](address)
    return answer


def transform(transformation: Transformation, pointer: AnyObjectPtr) -> Any:
    """Run a transformation on converted data; the result stays converted."""
    try:
        return unwrap(_transform(transformation, pointer), AnyObjectPtr)
    finally:
        del pointer


def apply(transformation: Transformation, pointer: AnyObjectPtr) -> Any:
    """Apply a transformation to converted data, and convert the result."""
    try:
        result = _transform(transformation, pointer)
    finally:
        del pointer
    return unwrap(result, AnyObjectPtr) if result.tag else _answer(result)
