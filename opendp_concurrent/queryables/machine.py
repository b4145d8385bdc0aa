"""What an interactive mechanism of this package hands out: a queryable around a state machine.

The machine holds data and secret noise, so it is sealed as data are. Questions take turns, and a
closed parent closes it. Handed out from within a native call it is a native queryable inside, so
that the wrappers of OpenDP's own compositors hold for it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from opendp.mod import Queryable

from .. import _native
from ..accounts.lifecycle import Lifecycle, innermost_running
from ..errors import ReentrantLaunchError
from .data import Sealed, SealedHandle, check_process, seal, unseal
from .turn import Turn, inherited_lock, lock_for_turns


def forget_frames(error: BaseException) -> None:
    """Take the frames from an exception and those that it came from: they hold data and noise."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            left += [one.__cause__, one.__context__]


class MachineQueryable(SealedHandle, Queryable):
    """A handle of an interactive mechanism.

    :param machine: answers a query; may change its own state
    :param description: what ``repr`` says
    """

    query_type = "ExtrinsicObject"
    _parts: Sealed | None = None  # what a checkpoint saves, from the outside in; see saved.py

    @property
    def takes_updates(self) -> bool:
        """Whether data may arrive by ``update`` and ``update_all`` of this handle."""
        return False

    @property
    def resumable(self) -> bool:
        """Whether a checkpoint can save all of the state behind this handle."""
        return self._parts is not None

    def __init__(self, machine: Callable[[Any], Any], description: str) -> None:
        self._machine, self._description = seal(machine), description
        self._lifecycle, self._busy = Lifecycle(innermost_running()), False
        native, inherited = _native.inside_native_call(), inherited_lock()
        # boxed: OpenDP would set an attribute on an answer, and some do not take it
        self._transport = _native.python_queryable(lambda q: (machine(q),)) if native else None
        # what native code made asks it for permission later, so all of it takes turns on one lock
        shared = native or inherited is not None
        self._lock: Any = Turn(lock_for_turns()) if shared else RLock()

    def __call__(self, query: Any) -> Any:
        """Ask the mechanism; waits while another thread asks it."""
        check_process(self._machine)  # before a lock, which a thread may have held at a fork
        with _native.typed_errors(), self._lock:
            self._lifecycle.check()
            if self._busy:  # it asks itself, perhaps by way of others
                raise ReentrantLaunchError
            self._busy = True
            try:
                with self._lifecycle.running():
                    return self._answer(query)
            except BaseException as error:
                forget_frames(error)
                raise error from error.__cause__
            finally:
                self._busy = False

    def _answer(self, query: Any) -> Any:
        machine = unseal(self._machine)
        if self._transport is None:
            return machine(query)
        (answer,) = _native.evaluate(self._transport, query)
        return answer

    def __repr__(self) -> str:
        return f"{self._description}({self._lifecycle.state.value})"
