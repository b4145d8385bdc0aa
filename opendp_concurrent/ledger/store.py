"""One database: its connections, its durable transactions and its errors.

SQLite is opened in WAL mode with ``synchronous=FULL``: a commit returns when it is on disk. A
transaction takes the write lock when it begins, so nobody changes what it has read.

PostgreSQL commits in two steps. The transaction commits without waiting for the disk, so the next
transaction can start. A second, empty transaction then waits for the disk. PostgreSQL writes its
log in order, so the first transaction and all charges that it has read are on disk by then. One
write to the disk serves many sessions, as for PostgreSQL's own commits.
"""

import os
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import SQLAlchemyError

from .._opendp import CRITICAL, interruptible
from ..errors import Json, LedgerError, tell_charged, uncharged
from .backends import GRACE, OPEN_IN_PARENT, DriverConnection, File, explain, server

_BEGIN = (  # settings of this transaction only, because a pooler may share the connection
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT "
    "set_config('synchronous_commit', 'off', true), "
    "set_config('lock_timeout', '{wait}ms', true), "
    "set_config('statement_timeout', '{limit}ms', true), "
    "set_config('idle_in_transaction_session_timeout', '{limit}ms', true)"  # if this one stalls
)
_FLUSH = (
    "SELECT set_config('synchronous_commit', '{durable}', true), "
    "pg_logical_emit_message(true, 'opendp_concurrent', '')"
)

Begun = tuple[DriverConnection, list[list[Any]]]  # a write transaction, and what was read
_PAUSES = 0.0005, 0.008  # first and longest pause between attempts to lock a file, in seconds

NOTHING = "nothing was charged, and no mechanism ran"
IN_FLIGHT = "the launch may be charged, and its mechanism did not run"


class Store:
    """One database.

    :param name: path of an SQLite file, or the URL of a database
    :param create: whether to make the file if it does not exist
    :param wait: seconds to wait for the write lock
    """

    def __init__(self, name: str | os.PathLike[str], create: bool, wait: float) -> None:
        text = os.fspath(name)
        self._file = None if "://" in text else File(Path(text), create, wait)
        engine = server(text, wait) if self._file is None else self._file.engine()
        self.name = engine.url.render_as_string(hide_password=True) if "://" in text else text
        self._engine, self._wait = engine, wait
        self.embedded = self._file is not None
        self._start, self._flush = "BEGIN IMMEDIATE", ""
        if not self.embedded:
            limit = int(1000 * (wait + GRACE))
            self._start = _BEGIN.format(wait=max(1, int(1000 * wait)), limit=limit)
        self.failures = SQLAlchemyError, engine.dialect.loaded_dbapi.Error
        self._texts: dict[Executable, str] = {}  # compiled statements
        self._idle: deque[DriverConnection] = deque()  # for writing; faster than the pool
        self.closed = False
        self._close = weakref.finalize(self, _close, engine, self._idle)
        _STORES.add(self)

    def close(self) -> None:
        """Close all connections."""
        self.closed = True
        self._close()

    def discard(self) -> None:
        """Close all connections, and remove a file that was made here and is still empty."""
        self.close()
        if self._file is not None:
            self._file.discard()

    def prepare(self, *, read_only: bool = False) -> None:
        """Check that the database makes commits durable.

        :param read_only: whether to leave the journal mode of a file as it is
        :raises LedgerError: if commits would not be durable
        """
        with self.reading() as connection:
            if self.embedded:
                mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
                if mode != "wal" and not read_only:
                    mode = connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one()
                if mode != "wal" and not read_only:
                    raise LedgerError(
                        f"ledger {self.name}: its file system has no shared memory, which SQLite "
                        "needs to share a file; move it to a local disk, or use PostgreSQL"
                    )
            elif connection.exec_driver_sql("SHOW server_encoding").scalar_one() == "SQL_ASCII":
                raise LedgerError(
                    f"ledger {self.name}: the database has the encoding SQL_ASCII, which does not "
                    "check text; create a database with ENCODING 'UTF8'"
                )
            elif connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
                raise LedgerError(
                    f"ledger {self.name}: the server runs with fsync=off, so no commit is durable; "
                    "turn fsync on"
                )

    def lock_all(self, driver: DriverConnection) -> None:
        """Stop other processes from making tables and budgets, until the transaction ends."""
        if not self.embedded:
            driver.execute("SELECT pg_advisory_xact_lock(2026112117)")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection for reading, which commits after each statement.

        :raises LedgerError: if the database fails
        """
        self._check_open()
        self._check_file()
        with CRITICAL:  # from before the connection is taken, until it is given back
            try:
                with self._engine.connect() as connection:
                    try:
                        yield connection
                    except BaseException as error:
                        failed = not self.embedded and isinstance(error, self.failures)
                        if failed or not isinstance(error, Exception):
                            connection.invalidate()  # its state is unknown
                        raise
            except self.failures as error:
                raise self._error(error, NOTHING) from error

    def driver(self, connection: Connection) -> DriverConnection:
        """Return the driver of a connection."""
        return DriverConnection(connection, self._texts)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield a connection whose statements all see the same state.

        :raises LedgerError: if the database fails
        """
        with self.reading() as connection:
            begin = "BEGIN" if self.embedded else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            connection.exec_driver_sql(begin)
            try:
                yield connection
            finally:
                with suppress(SQLAlchemyError):
                    connection.exec_driver_sql("COMMIT")

    @contextmanager
    def writing(self, values: dict[str, Any], *statements: Executable) -> Iterator[Begun]:
        """Yield a write transaction, which is durable after the block. An exception undoes it.

        :param statements: executed with ``values`` at the beginning; their rows are yielded too
        :raises LedgerError: if the database fails
        """
        with CRITICAL:
            driver, found = self.begin(values, *statements)
            try:
                yield driver, found
            except BaseException as error:
                self.undo(driver, error)
                raise
            self.commit(driver)

    def begin(self, values: dict[str, Any], *statements: Executable) -> Begun:
        """Begin a write transaction. If an idle connection was lost, use another connection.

        :raises LedgerError: if the database fails
        """
        begun: Begun = uncharged(self._begin, values, *statements)
        return begun

    def _begin(self, values: dict[str, Any], *statements: Executable) -> Begun:
        self._check_open()
        patience, pause = monotonic() + self._wait, _PAUSES[0]
        while True:
            driver, used = self._take()
            try:
                found = self._run(driver, values, *statements)
                self._check_file()
                return driver, found
            except self.failures as error:
                waits = self.embedded and "locked" in str(error) and not driver.in_transaction
                if waits and monotonic() < patience:
                    self._put_back(driver)
                    interruptible(sleep, pause)
                    pause = min(2 * pause, _PAUSES[1])
                    continue
                again = used and driver.lost and not getattr(error, "stalled", False)
                driver.drop()
                if not again:
                    raise self._error(error, NOTHING) from error
            except BaseException:
                driver.drop()
                raise

    def _run(self, driver: DriverConnection, values: Json, *statements: Executable) -> Any:
        """Begin, and execute statements. A server may let them wait for a lock."""
        run = partial(driver.run, values, *statements, before=self._start)
        return run() if self.embedded else interruptible(run)

    def _take(self) -> tuple[DriverConnection, bool]:
        """Return a connection, and whether it was used before."""
        with suppress(IndexError):
            return self._idle.pop(), True
        self._check_file()
        try:
            driver = DriverConnection(self._engine.connect(), self._texts)
        except self.failures as error:
            raise self._error(error, NOTHING) from error
        try:
            if self.embedded:
                driver.execute("PRAGMA busy_timeout=0")  # begin() waits itself, with shorter pauses
            elif not self._flush:
                (asked,) = driver.execute("SHOW synchronous_commit").fetchone()
                self._flush = _FLUSH.format(durable="on" if asked in ("off", "local") else asked)
        except BaseException as error:
            driver.drop()
            if isinstance(error, self.failures):
                raise self._error(error, NOTHING) from error
            raise
        return driver, False

    def commit(self, driver: DriverConnection) -> None:
        """Commit a write transaction, and wait until it is durable.

        :raises LedgerError: if it may not be durable
        """
        try:
            driver.execute("COMMIT")
            self.flush(driver)
            self._check_file()  # after the commit, as it may have been replaced before
        except BaseException as error:  # the state of the connection is unknown
            stands = NOTHING if driver.undone_for_lack_of_space(error) else IN_FLIGHT
            driver.drop()
            if isinstance(error, self.failures):
                raise self._error(error, stands) from error
            raise
        self._put_back(driver)

    def finish(
        self, driver: DriverConnection, changes: list[tuple[Executable, dict[str, Any]]]
    ) -> None:
        """Make changes, commit the transaction, and wait until it is durable.

        A server gets them in one message, because others wait for the lock meanwhile.

        :raises LedgerError: if it may not be durable
        """
        if not self._flush or not changes:
            try:
                driver.change(changes)
            except BaseException as error:
                self.undo(driver, error)
                raise
            self.commit(driver)
            return
        try:
            driver.change(changes, after=f"COMMIT; {self._flush}")
        except BaseException as error:
            if isinstance(error, self.failures) and not driver.lost and driver.failed:
                self.undo(driver, error)  # a change has failed, so that nothing was committed
                raise
            driver.drop()  # the state of the connection is unknown
            if isinstance(error, self.failures):
                raise self._error(error, IN_FLIGHT) from error
            raise
        self._put_back(driver)

    def undo(self, driver: DriverConnection, error: BaseException | None) -> None:
        """Roll back a transaction that ``error`` ended, or that changed nothing.

        :raises LedgerError: if ``error`` is an error of the driver
        """
        try:
            driver.execute("ROLLBACK")
            self._put_back(driver)
        except BaseException as another:
            driver.drop()
            if not isinstance(another, self.failures):
                raise
        if isinstance(error, self.failures):
            raise self._error(error, NOTHING) from error
        if error is not None:
            tell_charged(error, False)

    def flush(self, driver: DriverConnection) -> None:
        """Wait until everything that this connection has read or written is on disk."""
        if self._flush:
            driver.execute(self._flush)

    def _put_back(self, driver: DriverConnection) -> None:
        if self.closed:
            driver.drop()
        else:
            self._idle.append(driver)
            if self.closed:  # closed by another thread since the first test
                _empty(self._idle)

    def _check_open(self) -> None:
        if self.closed:
            closed = LedgerError(f"ledger {self.name} was closed: open it again; {NOTHING}")
            closed.charged = False
            raise closed

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _error(self, error: Exception, stands: str) -> LedgerError:
        found = LedgerError(explain(self.name, error, stands, self._wait))
        found.charged = False if stands is NOTHING else None
        return found


def _close(engine: Engine, idle: deque[DriverConnection]) -> None:
    _empty(idle)
    engine.dispose()


def _empty(idle: deque[DriverConnection]) -> None:
    while idle:
        with suppress(SQLAlchemyError, IndexError):
            idle.pop().drop()


# --- forked processes: a connection belongs to the process that opened it -----------------------

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_OF_PARENT: list[object] = []  # kept open: closing them would release locks of the parent


def _leave_to_parent() -> None:
    for store in list(_STORES):
        _OF_PARENT.append((store._engine.pool, list(store._idle)))
        if store._file is not None and store._file.identity is not None and not store.closed:
            OPEN_IN_PARENT.add(store._file.identity)
        store._idle.clear()
        store._engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
