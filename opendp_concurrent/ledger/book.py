"""Decide on launches in a turn, by the rules of their accounts on what the ledger has then."""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from threading import local
from time import time_ns
from typing import TYPE_CHECKING, Any

from sqlalchemy import Executable

from .._opendp import CRITICAL, Lock, interruptible
from ..accounting import Account, Charge, Launch, Lifecycle, LimitCharge, Terms, Verdict, limits_of
from ..errors import ForkedError, LedgerDamagedError, LedgerError, Loss, charged, tell_charged
from ..measures import AccumulatorState
from . import schema as tables
from .audit import KeptState, Known, Milestone, replay
from .backends import DriverConnection
from .charges import Path, agreed_total, first_record, write_terms
from .encoding import canonical, encode, hasher, reading, require_count
from .store import Store

if TYPE_CHECKING:
    from typing_extensions import Self


def decide(launch: Launch, charge: Charge, turn: SqlTurn) -> bool:
    """Decide on a launch, and write its charge.

    :return: False if it must be planned again; nothing is written then
    :raises BudgetExceededError: if an account refuses; nothing is written then
    """
    chain, plans = launch.chain, launch.plans
    totals = [*[turn.total(one) for one in charge.limits], turn.accumulator]
    losses = [*(one.d_mid for one in charge.limits), charge.d_mid]
    if not launch.is_current_after(turn.planned):
        return False
    places = [*dict(limits_of(chain)), len(chain) - 1]
    for place, total, d_mid in zip(places, totals, losses, strict=True):
        plans[place] = chain[place].plan_on(total, d_mid, launch, place)
        if not turn.planned:  # the total is on disk
            chain[place].follow(total)
    launch.refuse()
    after = []
    for place in places:
        after.append(chain[place].planned(plans[place]))
    *limits, root = after
    turn.write(charge, root, tuple(limits))
    turn.planned.update(zip(chain, plans, strict=True))
    return True


# Threads that wait for a turn of one book share it: one commit for the launches of all of them.
#
# A launch joins the queue. Whoever finds that nobody leads takes a turn for all who are in the
# queue when it begins: it decides on them in their order, each by its own accounts, on the totals
# after those before it, and writes the charges of the admitted ones. When the turn has ended, their
# charges are durable, and each launch goes on in its own thread. So no mechanism runs before its
# charge.
#
# * A launch that is refused writes nothing, and the others go on.
# * If a turn cannot begin, whoever waited for it hears that nothing is charged. If it cannot
#   commit, whoever has written in it hears what is known: charged or not, or that nobody knows.
# * An interrupt is let in while a launch waits. If its turn has begun, it is raised when that ends.

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
        with CRITICAL:
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
            interruptible(one.wait)
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


# The newest charge that this process has seen: a ledger without it was rolled back.


class Seen:
    """The newest charge of one budget that this process has seen. Safe to use from all threads."""

    def __init__(self) -> None:
        self._newest, self._lock = Milestone(-1, "", ""), Lock()  # a finalizer may run

    def see(self, sequence: int, head: str) -> None:
        """Record a charge that is in the ledger."""
        if sequence >= self._newest.sequence:
            milestone = Milestone(sequence, head, "the newest charge that this process has seen")
            with self._lock:
                if sequence >= self._newest.sequence:
                    self._newest = milestone

    def milestones(self) -> list[Milestone]:
        """Return the charge that the ledger must have, if there is one."""
        return [self._newest] if self._newest.sequence >= 0 else []


# One budget in a ledger: a turn reads the running total, decides, and adds one charge.
#
# The ledger keeps the exact total beside the newest charge. The cost of a turn therefore does not
# depend on the number of charges. A process only trusts what it has read from the disk: if a commit
# fails, the next turn finds out whether the charge was written.


class SqlBook:
    """A budget whose terms are written in the ledger.

    :param known: the state of the ledger when it was opened and audited
    :param seen: records the newest charge that this process has seen
    :param kept: keeps a state from time to time
    """

    def __init__(
        self, store: Store, dataset: str, terms: Terms, known: Known, seen: Seen, kept: KeptState
    ) -> None:
        self._store, self.dataset, self._terms, self._seen = store, dataset, terms, seen
        self._known, self._lock, self._process = known, Lock(), os.getpid()
        self._text: tuple[Any, str] = (None, "")
        self._queue, self._kept = Queue(self.turn), kept

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""
        return self._known.sequence

    def read(self) -> AccumulatorState[Any]:
        """Return the sum of all charges so far.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        with self._lock:
            with self._store.snapshot() as connection:
                driver = self._store.driver(connection)
                found = driver.run(self._values(), tables.READ_HEAD, tables.READ_LATER)
            known = self._newest(driver, *found)
            if known is not self._known:
                self._keep(known)
            return known.accumulator

    def turn(self) -> SqlTurn:
        """Take a turn, by ``with``. Nobody else has one at the same time.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        return SqlTurn(self)

    def settle(self, launch: Launch, charge: Charge) -> Lifecycle | None:
        """Take a turn, together with other threads that wait; see :meth:`.Book.settle`.

        :raises ForkedError: if this process was forked from the process that opened the book
        """
        self.check_process()
        begun = self._queue.settle(launch, charge)
        try:
            if self._kept.due(self._known.sequence):
                with self._lock:  # no turn changes the state that is written
                    known = self._known.copied()
                self._kept.pass_by(known, self._terms)
        except BaseException as error:  # an interrupt, while it waits for others
            tell_charged(error, begun is not None)
            raise
        return begun

    def _keep(self, known: Known) -> None:
        """Remember what was read, once it is on disk."""
        with self._store.reading() as connection:
            self._store.flush(self._store.driver(connection))
        self._see(known)

    def _see(self, known: Known) -> None:
        self._known = known.settled()
        self._seen.see(known.sequence, known.head)

    def check_process(self) -> None:
        """Check that this process opened the book.

        :raises ForkedError: if it was forked from the process that did
        """
        if os.getpid() != self._process:
            raise ForkedError

    def _values(self) -> dict[str, Any]:
        return {"of": self.dataset, "after": self._known.sequence}

    def _newest(
        self, driver: DriverConnection, heads: list[Any], later: list[Any] | None = None
    ) -> Known:
        """Return the state of the ledger now, which must continue the last known state.

        :param heads: the row of the budget, in a list
        :param later: charges after the last known charge, if they were read already
        :raises LedgerDamagedError: if the ledger does not continue the last known state
        """
        if not heads:
            raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
        known, (sequence, head, record) = self._known, heads[0]
        require_count(f"the budget of {self.dataset!r}", sequence=sequence)
        if sequence == known.sequence and head == known.head:
            return known
        if sequence <= known.sequence:
            raise LedgerDamagedError(
                f"charge {known.sequence} was written, but the ledger has {sequence} charges or "
                f"another charge {known.sequence}"
            )
        if later is None:
            (later,) = driver.run(self._values(), tables.READ_LATER)
        newest = replay(known, later)
        if newest[:2] != (sequence, head):
            raise LedgerDamagedError(f"charge {sequence} is missing or was replaced")
        with reading(f"the budget of {self.dataset!r}"):
            total = agreed_total(self._terms, record, newest.accumulator)
        return newest._replace(accumulator=total)

    def limit(self, path: Path, terms: Terms) -> LimitBook:
        """Open a limit. Its first charge writes its terms to the ledger.

        :raises InvalidTypeError: if the ledger cannot keep it
        """
        write_terms(terms)  # raises if a value has no exact record, as the next line does
        first_record(terms)
        return LimitBook(self, path, terms)

    def text(self, d_mid: Loss) -> str:
        """Encode a d_mid, and keep the text: consecutive launches often have the same d_mid."""
        last, text = self._text
        if last is not d_mid:
            text = encode("d_mid", d_mid)
            self._text = d_mid, text
        return text


_MANY = 100  # charges of others that a refusal leaves to be read again


class SqlTurn:
    """A turn at a book, for ``with``: a transaction that excludes all other turns.

    It is a critical section, so the transaction has ended when the block has, in whatever way.

    :ivar planned: the states of accounts after the launches that this turn has written
    :ivar after: the state after what this turn has written
    """

    def __init__(self, book: SqlBook) -> None:
        self._book = book
        self._changes: list[tuple[Executable, dict[str, Any]]] = []  # made at its end
        self.planned: dict[Account, Verdict] = {}

    def __enter__(self) -> Self:
        book = self._book
        store, reading = book._store, [tables.LOCK_HEAD, tables.READ_LATER]
        if store.embedded:  # a query is cheap: read later charges only if there are any
            reading.pop()
        book._lock.__enter__()
        try:
            self._driver, found = store.begin(book._values(), *reading)
            try:
                self.after = book._newest(self._driver, *found)
            except BaseException as error:
                store.undo(self._driver, error)
                raise
        except BaseException:
            book._lock.__exit__()
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, *more: object) -> None:
        book, changes = self._book, self._changes
        store, dataset = book._store, book.dataset
        self._changes, self.planned = [], {}  # a traceback may hold this turn
        try:
            if error is not None or not changes:
                store.undo(self._driver, error)
                if error is None and self.after.sequence > book._known.sequence + _MANY:
                    book._keep(self.after)  # or each refusal would read the same charges again
                return
            sequence, head = self.after[:2]
            moved = {"sequence": sequence, "head": head, "record": self._record}
            changes.append((tables.MOVE_HEAD, {"of": dataset, **moved}))
            store.finish(self._driver, changes)
            book._see(self.after)
        finally:
            book._lock.__exit__()

    @property
    def accumulator(self) -> AccumulatorState[Any]:
        """Sum of all charges before this turn, and of those that it has written."""
        return self.after.accumulator

    def total(self, limit: LimitCharge) -> AccumulatorState[Any]:
        """Sum of all charges of a limit before this turn, and of those that it has written.

        :raises LimitMismatchError: if its terms in the ledger are others
        """
        return self.after.limits.total(limit.path, limit.terms)

    def write(
        self,
        charge: Charge,
        after: AccumulatorState[Any],
        limits: tuple[AccumulatorState[Any], ...] = (),
    ) -> None:
        """Add a charge, which is then the newest charge of the budget.

        :param limits: the sums of the limits that it is below, after it
        """
        dataset, (sequence, head, _, known) = self._book.dataset, self.after
        time, label, mechanism = time_ns() // 1000, charge.label, charge.mechanism
        if charge.limits:
            record, known = known.charged(charge.d_mid, charge.limits, limits)
            d_mid = encode("d_mid", record)
        else:
            d_mid = self._book.text(charge.d_mid)
        sequence += 1
        head = hasher(dataset, label, mechanism)(head, sequence, time, canonical(d_mid))
        row = {"dataset": dataset, "time": time, "label": label, "mechanism": mechanism}
        row |= {"sequence": sequence, "d_mid": d_mid, "hash": head}
        self._record = canonical(after.to_record())
        self._changes.append((tables.ADD_CHARGE, row))
        self.after = Known(sequence, head, after, known)


class LimitBook:
    """A limit that is opened on a book. The turns are those of the book."""

    dataset = ""  # it has no name of its own in the ledger

    def __init__(self, book: SqlBook, path: Path, terms: Terms) -> None:
        self._book, self.path, self.terms = book, path, terms

    @property
    def launches(self) -> int:
        """Number of launches below the limit at the last turn or read."""
        return self._book._known.limits.launches(self.path)

    def check_process(self) -> None:
        """Check that this process opened the book.

        :raises ForkedError: if it was forked from the process that did
        """
        self._book.check_process()

    def read(self) -> AccumulatorState[Any]:
        """Return the sum of all charges below the limit so far.

        :raises LimitMismatchError: if its terms in the ledger are others
        """
        self._book.read()
        return self._book._known.limits.total(self.path, self.terms)
