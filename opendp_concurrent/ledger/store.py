"""One database: connections, transactions that are durable when they end, and what went wrong.

SQLite is opened in WAL mode with ``synchronous=FULL``: a commit returns when the disk has it. A
transaction begins as a writer, so that what it reads is what it decides on.

PostgreSQL commits in two steps. The transaction itself commits without waiting for the disk, which
lets the next one go on; then a second, empty one is flushed. The log is written in order, so the
first is on disk with it, and with every charge that it was decided on; and many sessions are
flushed by one write, as PostgreSQL's own commits are.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Executable, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ..errors import InvalidTypeError, InvalidValueError, LedgerDamagedError, LedgerError
from .faults import explain

_BEGIN = (  # for this transaction only, as a connection may be shared by way of a pooler
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO off; "
    "SET LOCAL lock_timeout TO '{wait}ms'"
)
_FLUSH = (
    "SELECT set_config('synchronous_commit', '{durable}', true), "
    "pg_logical_emit_message(true, 'opendp_concurrent', '')"
)

_PAUSES = 0.0005, 0.025  # seconds between tries to write an SQLite file: the first, the longest

NOTHING = "nothing was charged, and no mechanism ran"
IN_FLIGHT = "the launch may be charged, and its mechanism did not run"


class Line:
    """A connection, and its driver: in a launch, each microsecond is everybody's.

    PostgreSQL is sent several statements at once, as one message to the server and back takes as
    long as what it does with them.
    """

    __slots__ = ("_driver", "_embedded", "_texts", "connection", "execute")

    def __init__(self, connection: Connection, texts: dict[Executable, Any]) -> None:
        self.connection, self._texts = connection, texts
        driver: Any = connection.connection.driver_connection
        self._driver = driver
        self._embedded = connection.dialect.name == "sqlite"
        self.execute: Callable[..., Any] = driver.execute
        if not self._embedded:
            from psycopg import ClientCursor  # which takes values for several statements

            self.execute = ClientCursor(driver).execute

    def run(
        self, values: dict[str, Any], *statements: Executable, before: str = ""
    ) -> list[list[Any]]:
        """Execute statements, whose texts are made once; return the rows of each.

        :param before: a text to execute before them
        """
        if self._embedded:
            return self._one_by_one(values, statements, before)
        texts = [(self._texts.get(one) or self._compile(one))[0] for one in statements]
        cursor = self.execute("; ".join([before, *texts] if before else texts), values)
        for _ in range(before.count(";") + 1 if before else 0):
            cursor.nextset()
        found = []
        for _ in statements:
            found.append(cursor.fetchall() if cursor.description else [])
            cursor.nextset()
        return found

    def _one_by_one(self, values: dict[str, Any], statements: Any, before: str) -> list[list[Any]]:
        found = []
        if before:
            self.execute(before)
        for statement in statements:
            text, names = self._texts.get(statement) or self._compile(statement)
            found.append(self.execute(text, [values[name] for name in names]).fetchall())
        return found

    def _compile(self, statement: Any) -> tuple[str, list[str]]:
        compiled = statement.compile(self.connection)
        made = str(compiled), compiled.positiontup or []
        self._texts[statement] = made
        return made

    @property
    def lost(self) -> bool:
        """Whether the server is not there any more."""
        return not self._embedded and bool(self._driver.closed)

    def drop(self) -> None:
        """Close the connection, whatever it is in the middle of."""
        self.connection.invalidate()
        self.connection.close()


class Store:
    """One database.

    :param name: path of an SQLite file, or the URL of a database
    :param create: make the file if there is none
    :param wait: seconds to wait for others who write
    """

    def __init__(self, name: str | os.PathLike[str], create: bool, wait: float) -> None:
        text = os.fspath(name)
        if not isinstance(text, str):
            raise InvalidTypeError(f"path_or_url must be a str or a path, found {name!r}")
        self._file = None if "://" in text else _File(Path(text), create, wait)
        engine = _server(text, wait) if self._file is None else self._file.engine()
        self.name = engine.url.render_as_string(hide_password=True) if "://" in text else text
        self._engine, self._wait = engine, wait
        self.embedded = self._file is not None
        self._start, self._flush = "BEGIN IMMEDIATE", ""
        if not self.embedded:
            self._start = _BEGIN.format(wait=max(1, int(1000 * wait)))
        self.failures = SQLAlchemyError, engine.dialect.loaded_dbapi.Error
        self._texts: dict[Executable, tuple[str, list[str]]] = {}  # made once
        self._idle: deque[Line] = deque()  # of writers: faster than to ask the pool
        self.closed = False
        self._close = weakref.finalize(self, _close, engine, self._idle)
        _STORES.add(self)

    def close(self) -> None:
        """Close all connections."""
        self.closed = True
        self._close()

    def prepare(self) -> None:
        """Settle what lasts: how the database makes commits durable.

        :raises LedgerError: if it does not
        """
        with self.reading() as connection:
            if self.embedded:
                mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
                if mode != "wal":
                    mode = connection.exec_driver_sql("PRAGMA journal_mode=WAL").scalar_one()
                if mode != "wal":
                    raise LedgerError(
                        f"ledger {self.name}: its file system has no shared memory, which SQLite "
                        "needs to share a file; put it on a local disk, or take PostgreSQL"
                    )
            elif connection.exec_driver_sql("SHOW fsync").scalar_one() != "on":
                raise LedgerError(
                    f"ledger {self.name}: the server runs with fsync=off, so that nothing is "
                    "durable; turn it on"
                )

    def lock_all(self, line: Line) -> None:
        """Keep others from making tables and budgets, until the transaction ends."""
        if not self.embedded:
            line.execute("SELECT pg_advisory_xact_lock(2026112117)")

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read with, one statement at a time.

        :raises LedgerError: if it fails
        """
        self._check_open()
        self._check_file()
        try:
            with self._engine.connect() as connection:
                yield connection
        except self.failures as error:
            raise self._error(error, NOTHING) from error

    def line(self, connection: Connection) -> Line:
        """The driver of a connection."""
        return Line(connection, self._texts)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection whose statements all see the same state.

        :raises LedgerError: if it fails
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
    def writing(
        self, values: dict[str, Any], *statements: Executable
    ) -> Iterator[tuple[Line, list[list[Any]]]]:
        """A transaction beside which nobody else writes what it locks; durable at the end.

        :param statements: executed with ``values`` as it begins; yields the rows of each
        :raises LedgerError: if it fails; an exception of the block undoes it
        """
        line, found = self.begin(values, *statements)
        try:
            yield line, found
        except BaseException as error:
            self.undo(line, error)
            raise
        self.commit(line)

    def begin(
        self, values: dict[str, Any], *statements: Executable
    ) -> tuple[Line, list[list[Any]]]:
        """Begin a transaction, on another connection if one was lost while nobody used it.

        :raises LedgerError: if it fails
        """
        self._check_open()
        patience, pause = monotonic() + self._wait, _PAUSES[0]
        while True:
            line, used = self._take()
            try:
                found = line.run(values, *statements, before=self._start)
                return line, found
            except self.failures as error:
                if self.embedded and "locked" in str(error) and monotonic() < patience:
                    self._put_back(line)
                    sleep(pause)
                    pause = min(2 * pause, _PAUSES[1])
                    continue
                again = used and line.lost
                line.drop()
                if not again:
                    raise self._error(error, NOTHING) from error
            except BaseException:
                line.drop()
                raise

    def _take(self) -> tuple[Line, bool]:
        """A connection, and whether it has been used before."""
        with suppress(IndexError):
            return self._idle.pop(), True
        try:
            line = Line(self._engine.connect(), self._texts)
            if self.embedded:
                line.execute("PRAGMA busy_timeout=0")  # SQLite's own pauses are long: see begin
            elif not self._flush:
                (asked,) = line.execute("SHOW synchronous_commit").fetchone()
                self._flush = _FLUSH.format(durable="on" if asked in ("off", "local") else asked)
            return line, False
        except self.failures as error:
            raise self._error(error, NOTHING) from error

    def commit(self, line: Line) -> None:
        """Make what was written durable.

        :raises LedgerError: if it is not known to be
        """
        try:
            line.execute("COMMIT")
            self.flush(line)
            self._check_file()  # now: it may have been replaced at any time before
        except BaseException as error:  # what it is in the middle of, nobody knows
            line.drop()
            if isinstance(error, self.failures):
                raise self._error(error, IN_FLIGHT) from error
            raise
        self._put_back(line)

    def undo(self, line: Line, error: BaseException) -> None:
        """End a transaction that failed, or was refused, with ``error``.

        :raises LedgerError: if ``error`` is one of the driver's
        """
        try:
            line.execute("ROLLBACK")
            self._put_back(line)
        except BaseException as another:
            line.drop()
            if not isinstance(another, self.failures):
                raise
        if isinstance(error, self.failures):
            raise self._error(error, NOTHING) from error

    def flush(self, line: Line) -> None:
        """Wait until all that this connection has seen is on disk."""
        if self._flush:
            line.execute(self._flush)

    def _put_back(self, line: Line) -> None:
        if self.closed:
            line.drop()
        else:
            self._idle.append(line)
            if self.closed:  # meanwhile
                _empty(self._idle)

    def _check_open(self) -> None:
        if self.closed:
            raise LedgerError(f"ledger {self.name} was closed: open it again; {NOTHING}")

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _error(self, error: Exception, stands: str) -> LedgerError:
        return LedgerError(explain(self.name, error, stands, self._wait))


# --- the two kinds -----------------------------------------------------------------------------


class _File:
    """An SQLite file, which must stay the one that was opened first."""

    def __init__(self, path: Path, create: bool, wait: float) -> None:
        self._path, self._wait = path.absolute(), wait
        self._uri = f"file:{quote(str(self._path))}?mode={'rwc' if create else 'rw'}"
        self.identity: tuple[int, int] | None = None

    def engine(self) -> Engine:
        """Connections to it."""
        return create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            max_overflow=-1,
            isolation_level="AUTOCOMMIT",
        )

    def check(self) -> None:
        """Raise unless the file is where it was: what is written to another one is lost.

        :raises LedgerDamagedError: if it was moved or replaced
        """
        if self.identity is not None and self._found() != self.identity:
            raise LedgerDamagedError(f"the file {self._path} is not the one that was opened")

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connect(self) -> sqlite3.Connection:
        if self._found() in _OPEN_IN_PARENT:
            raise LedgerError(
                f"ledger {self._path}: this process was forked from one that had it open, and "
                "SQLite cannot lock it here; start processes by 'spawn' or 'forkserver', or open "
                f"it only after forking; {NOTHING}"
            )
        connection = sqlite3.connect(
            self._uri,
            uri=True,
            timeout=self._wait,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=ON")  # where a plain fsync is not enough: macOS
        if self.identity is None:
            self.identity = self._found()
        return connection


def _server(text: str, wait: float) -> Engine:
    try:
        url = make_url(text)
    except SQLAlchemyError as error:
        raise InvalidValueError(f"path_or_url is not a URL: {error}") from None
    if url.drivername != "postgresql+psycopg":
        raise InvalidValueError(
            f"path_or_url is for {url.drivername}, which is not supported; pass the path of an "
            "SQLite file, or postgresql+psycopg://user@host/database"
        )
    try:
        return create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            max_overflow=-1,
            pool_pre_ping=True,  # the server may have been restarted
            connect_args={"connect_timeout": max(2, int(wait))},
        )
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: install opendp-concurrent[postgresql]", name="psycopg"
        ) from error


def _close(engine: Engine, idle: deque[Line]) -> None:
    _empty(idle)
    engine.dispose()


def _empty(idle: deque[Line]) -> None:
    while idle:
        with suppress(SQLAlchemyError, IndexError):
            idle.pop().drop()


# --- forked processes: a connection stays with the process that opened it -----------------------
#
# SQLite keeps its locks of a file for a process. A forked one has them in its memory, but not from
# the system: it must not open the file, which others would then take to be nobody's.

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_OF_PARENT: list[object] = []  # never closed here: that would undo locks of the parent
_OPEN_IN_PARENT: set[tuple[int, int] | None] = set()


def _leave_to_parent() -> None:
    for store in list(_STORES):
        _OF_PARENT.append((store._engine.pool, list(store._idle)))
        if store._file is not None and store._file.identity is not None and not store.closed:
            _OPEN_IN_PARENT.add(store._file.identity)
        store._idle.clear()
        store._engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
