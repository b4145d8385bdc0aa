"""Threads that wait for a turn of one book share it: one commit for the launches of all of them.

A launch joins the queue. Whoever finds that nobody leads takes a turn for all who are in the queue
when it begins: it decides on them in their order, each by its own accounts, on the totals after
those before it, and writes the charges of the admitted ones. When the turn has ended, their charges
are durable, and each launch goes on in its own thread. So no mechanism runs before its charge.

* A launch that is refused writes nothing, and the others go on.
* If a turn cannot begin, whoever waited for it hears that nothing is charged. If it cannot commit,
  whoever has written in it hears what is known: charged or not, or that nobody knows.
* An interrupt is let in while a launch waits. If its turn has begun, it is raised when that ends.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from threading import local
from typing import TYPE_CHECKING

from ..accounts.account import Launch
from ..accounts.lifecycle import Lifecycle
from ..accounts.store import Charge
from ..errors import LedgerError, charged, tell_charged
from ..interrupts import WHOLE, Lock, let_in
from .decide import decide

if TYPE_CHECKING:
    from .book import SqlTurn

_PATIENCE = 0.05  # seconds between looks


class _Thread(local):
    """What a thread waits by."""

    def __init__(self) -> None:
        self.wake = allocate_lock()
        self.wake.acquire()


_THREAD = _Thread()


class _Launch:
    """A launch in the queue.

    :ivar done: whether its turn has ended
    :ivar begun: the lifecycle of the child; None if it is not charged
    :ivar error: what it raises
    """

    def __init__(self, launch: Launch, charge: Charge) -> None:
        self._launch, self._charge, self._wake = launch, charge, _THREAD.wake
        self._written, self._on_disk, self.done = False, True, False
        self.begun: Lifecycle | None = None
        self.error: BaseException | None = None

    def decide(self, turn: SqlTurn) -> None:
        """Decide in a turn, and write the charge."""
        self._on_disk = not turn.planned
        try:
            self._written = decide(self._launch, self._charge, turn)
        except BaseException as error:
            tell_charged(error, False)
            where = error.__traceback__
            self.error = error.with_traceback(where and where.tb_next)  # without the others

    def charge(self) -> None:
        """Charge it, now that the charge that it has written is durable."""
        if self._written:
            self.begun = self._launch.commit()

    def hear(self, error: BaseException, mine: bool) -> None:
        """Hear that its turn failed, unless it was decided on what was on disk before."""
        if self._on_disk and self.error is not None:
            return
        if not mine:
            told = (
                error if isinstance(error, LedgerError) else LedgerError(f"a turn failed: {error}")
            )
            cause, error = error.__cause__, copy(told)
            error.__cause__ = cause
        if not self._written:
            tell_charged(error, False)
        self.error = error.with_traceback(None)

    def wake(self) -> None:
        """Let its thread look again."""
        with suppress(RuntimeError):  # it was told already
            self._wake.release()

    def wait(self) -> None:
        """Wait until somebody wakes its thread, or for a moment: a signal may reach another one."""
        self._wake.acquire(timeout=_PATIENCE)


class Queue:
    """The launches of a process that wait for a turn at one book.

    :param turn: begins a turn, for ``with``
    """

    def __init__(self, turn: Callable[[], SqlTurn]) -> None:
        self._turn, self._leading = turn, allocate_lock()
        self._waiting: deque[_Launch] = deque()

    def settle(self, launch: Launch, charge: Charge) -> Lifecycle | None:
        """Take a turn, as :meth:`.Book.settle` says."""
        one, lock = _Launch(launch, charge), launch.chain[0].lock
        with WHOLE:
            self._waiting.append(one)
            while not one.done:
                if not self._leading.acquire(False):
                    self._wait(one)
                    continue
                try:
                    if not one.done:
                        self._lead(one, lock)
                finally:
                    self._leading.release()
                    self._wake_next()
        error, one.error = one.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # which holds this frame
        return one.begun

    def _wait(self, one: _Launch) -> None:
        try:
            let_in(one.wait)
        except BaseException as error:
            if self._left(one):
                tell_charged(error, False)
            else:
                while not one.done:  # its turn has begun, and ends soon
                    one.wait()
                known = False if one.error is None else charged(one.error)
                tell_charged(error, known if one.begun is None else True)
            self._wake_next()  # this thread may have been woken to lead
            raise

    def _lead(self, mine: _Launch, lock: Lock) -> None:
        """Take a turn for all who wait when it begins."""
        early, batch = list(self._waiting), list[_Launch]()
        try:
            with lock:
                with self._turn() as turn:
                    while self._waiting:
                        batch.append(self._waiting.popleft())
                    for one in batch:
                        one.decide(turn)
                for one in batch:
                    one.charge()
        except BaseException as error:
            if not batch:  # it has not begun
                hearing = early if isinstance(error, LedgerError) else [mine]
                batch = [one for one in hearing if self._left(one)]
            for one in batch:
                one.hear(error, one is mine)
        finally:
            for one in batch:
                one.done = True
                one.wake()

    def _left(self, one: _Launch) -> bool:
        """Let a launch leave the queue; return whether it was still there."""
        with suppress(ValueError):
            self._waiting.remove(one)
            return True
        return False

    def _wake_next(self) -> None:
        with suppress(IndexError):
            self._waiting[0].wake()
