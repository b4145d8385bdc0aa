"""Interrupts (SIGINT, as from Ctrl-C) wait while something must not be cut in two.

Python runs signal handlers in the main thread only, between two instructions. In a critical section
(:data:`CRITICAL`) the handler of SIGINT is replaced by one that takes a note. At the end of the
outermost section the first handler is put back, and called if there is a note. So a charge, a turn
of a ledger and an update of a stream are never half done, and what a section begins is also ended
in it: nothing depends on a traceback being dropped, or on garbage collection. Native calls of
OpenDP are sections too, because OpenDP crashes if a callback raises what is no ``Exception``.

* In a section, :func:`interruptible` calls code that may run long, such as a user's function, with
  interrupts let in. It raises at most one, after which the section goes on as before. Call it where
  an exception may pass.
* While the main thread waits for a :class:`Lock`, interrupts are let in.
* A handler that is no Python function, as SIG_IGN, is left alone. A handler that a user's function
  sets in ``interruptible`` is the one that counts from then on.
* Not covered: exceptions that another thread injects by ``PyThreadState_SetAsyncExc``, and handlers
  of other signals that raise. Let such a handler call ``signal.raise_signal(signal.SIGINT)``.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import sys
from _thread import get_ident
from collections.abc import Callable
from functools import wraps
from threading import RLock, main_thread
from types import FrameType
from typing import Any, TypeVar

# the module ``signal`` wraps it in enums, and takes ten times as long


F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_SIGINT = signal.SIGINT
_PATIENCE = 0.05  # seconds between looks for an interrupt, while a lock is waited for


class _State:
    """Of the main thread. What is read and set together has no call in between."""

    __slots__ = ("handler", "levels", "main", "noted", "open", "raised")

    def __init__(self) -> None:
        self.main = main_thread().ident
        self.handler: Any = None  # of SIGINT, before the outermost section; None: left alone
        self.levels: list[bool] = []  # for each section, whether interrupts were let in before
        self.open = False  # whether interrupts are let in here
        self.noted = False
        self.raised: BaseException | None = None  # in the innermost interruptible call


_STATE = _State()


def _note(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT in a section."""
    if not _STATE.open:
        _STATE.noted = True
        return
    _STATE.open = False  # one at a time: what an exception passes through is not cut again
    try:
        _STATE.handler(number, frame)
    except BaseException as error:
        _STATE.raised = error
        raise
    _STATE.open = True


def _raise_noted() -> None:
    if _STATE.noted and _STATE.open:
        _STATE.noted = False
        _note(_SIGINT, sys._getframe(1))


class Section:
    """A critical section, for ``with``. Sections may be nested. Other threads ignore it."""

    __slots__ = ("__weakref__", "_acquire", "_release")

    def __init__(self) -> None:
        self._acquire: Any = None
        self._release: Any = None

    def __enter__(self) -> None:
        if get_ident() == _STATE.main:
            if _STATE.levels:
                before, _STATE.open = _STATE.open, False
                _STATE.levels.append(before)
            else:
                handler = signal.getsignal(_SIGINT)
                _STATE.handler, _STATE.open, _STATE.noted = None, False, False
                if callable(handler):
                    _STATE.handler = handler
                    # raises here, before anything began, what waits already
                    signal.signal(_SIGINT, _note)
                _STATE.levels.append(False)
        if self._acquire is not None and not self._acquire(False):
            self._wait()

    def __exit__(self, *error: object) -> None:
        if self._release is not None:
            self._release()
        if get_ident() != _STATE.main:
            return
        before = _STATE.levels.pop()
        if _STATE.levels:
            _STATE.open = before
            if before:
                _raise_noted()
        elif _STATE.handler is not None:
            signal.signal(_SIGINT, _STATE.handler)
            if _STATE.noted:
                _STATE.noted = False
                _STATE.handler(_SIGINT, sys._getframe(1))

    def _wait(self) -> None:
        try:
            if get_ident() != _STATE.main:
                self._acquire()
                return
            while not self._acquire(timeout=_PATIENCE):
                interruptible(_nothing)  # not the waiting: the lock could be lost
        except BaseException:
            CRITICAL.__exit__()
            raise


CRITICAL = Section()


def depth() -> int:
    """Return how many sections the main thread is in."""
    return len(_STATE.levels)


def uninterruptible(function: F) -> F:
    """Return ``function``, each call of which is a section."""

    @wraps(function)
    def section(*arguments: Any, **options: Any) -> Any:
        with CRITICAL:
            return function(*arguments, **options)

    return section  # type: ignore[return-value]


def interruptible(function: Callable[..., T], *arguments: Any) -> T:
    """Return ``function(*arguments)``. In a section, an interrupt is raised in it, or just after.

    An interrupt that was noted before is raised first. One that ``function`` has lost is raised
    anew: C code, such as that of an engine, may stop at an interrupt and then raise its own error.
    """
    if not _STATE.levels or get_ident() != _STATE.main:
        return function(*arguments)
    before, outer = _STATE.open, _STATE.raised
    try:
        _STATE.open, _STATE.raised = True, None
        _raise_noted()
        return function(*arguments)
    except Exception as error:
        lost = _replaced_by(error)
        if lost is None:
            raise
    finally:
        _STATE.open, _STATE.raised = before, outer
        if signal.getsignal(_SIGINT) is not _note:
            _take_over()
    try:
        raise lost.with_traceback(None)  # out here, where it has no context
    finally:
        del lost  # which would hold this frame


def _replaced_by(error: BaseException | None) -> BaseException | None:
    """Return the interrupt that an error has replaced; None if it came while handling that."""
    seen = set[int]()
    while error is not None and error is not _STATE.raised and id(error) not in seen:
        seen.add(id(error))
        error = error.__context__
    return _STATE.raised if error is not _STATE.raised else None


def _take_over() -> None:
    """Respect the handler that a function has set, from the end of the section on."""
    try:
        handler = signal.getsignal(_SIGINT)
        _STATE.handler = handler if callable(handler) else None
    finally:
        if _STATE.handler is not None:
            signal.signal(_SIGINT, _note)


class Lock(Section):
    """A reentrant lock, which is held for a section. The main thread waits for it interruptibly.

    :ivar held: returns whether this thread holds it
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        lock: Any = RLock()
        self._acquire, self._release = lock.acquire, lock.release
        self.held: Callable[[], bool] = lock._is_owned


def _nothing() -> None:
    """Give an interrupt that was noted the chance to be raised."""


def _after_fork() -> None:
    """In a thread's child, which has only that thread: end the sections of the main thread."""
    if get_ident() != _STATE.main:
        if _STATE.levels and _STATE.handler is not None:
            signal.signal(_SIGINT, _STATE.handler)
        _STATE.main, _STATE.open, _STATE.noted = get_ident(), False, False
        _STATE.levels.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
