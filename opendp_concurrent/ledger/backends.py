"""The two backends of a ledger, an SQLite file and a PostgreSQL server, and their errors.

Connections to PostgreSQL have a time limit on each answer. The server's own timeouts (of statements
and locks) have no effect if the server is stopped, or if the network loses messages. So the client
has a time limit as well. A connection that exceeds it is closed, because the state of its
transaction is unknown.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Executable, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from .._checks import make_private, warn_if_open
from ..errors import InvalidValueError, LedgerDamagedError, LedgerError


def connect_within(limit: float) -> Callable[..., Any]:
    """Return a variant of ``psycopg.connect`` whose connections wait at most ``limit`` seconds."""
    import psycopg

    class Limited(psycopg.Connection[Any]):
        def wait(self, gen: Any, *options: Any, **more: Any) -> Any:
            limited = _until(monotonic() + limit, gen, self._give_up)
            return super().wait(limited, *options, **more)

        def _give_up(self) -> Exception:
            self.pgconn.finish()
            return NoAnswer(f"the server has not answered for {limit:g} s")

    class NoAnswer(psycopg.OperationalError):
        stalled = True  # do not try another connection: it would wait as long again

    return Limited.connect


def _until(
    deadline: float, waiting: Any, give_up: Callable[[], Exception]
) -> Generator[Any, Any, Any]:
    """Run the generator ``waiting`` of psycopg, which yields events and is sent the ready ones."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            if monotonic() >= deadline:
                raise give_up()
            if ready:  # otherwise psycopg's interval ended without an event
                wanted = waiting.send(ready)
    except StopIteration as done:
        return done.value


# The two backends of a ledger: an SQLite file, and a PostgreSQL server.

LOGGER = logging.getLogger("opendp_concurrent.ledger")
GRACE = 5.0  # seconds for a server to execute the statements of a launch
Identity = tuple[int, int]

# SQLite's locks on a file belong to a process. A forked process has them in its memory, but the
# system does not hold them for it. It must not open the file: it would write without locks.
OPEN_IN_PARENT: set[Identity | None] = set()


class File:
    """An SQLite file. Its inode must not change while it is open."""

    def __init__(self, path: Path, create: bool, wait: float) -> None:
        # SQLite puts its side files beside the target of a link
        self.path, self._wait = Path(os.path.realpath(path)), wait
        self._names = {str(self.path), str(path.absolute())}
        self._uri = f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}"
        self.identity: Identity | None = None
        self._made = create and make_private(self.path)
        sides = (f"{self.path}{end}" for end in ("-wal", "-shm"))
        what = f"what the ledger {self.path} has spent, and on what"
        warn_if_open(LOGGER, what, self.path, *sides)

    def engine(self) -> Engine:
        """Return an engine with connections to the file."""
        return create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            paramstyle="named",
            poolclass=QueuePool,
            max_overflow=-1,
            isolation_level="AUTOCOMMIT",
        )

    def check(self) -> None:
        """Check that the file was not moved or replaced: a charge in another file would be lost.

        :raises LedgerDamagedError: if it was
        """
        for name in self._names:
            if self.identity is not None and _identity(name) != self.identity:
                raise LedgerDamagedError(f"the file {name} is not the file that was opened")

    def discard(self) -> None:
        """Remove the file if it was made here, and nothing was ever written to it.

        A process that has opened it meanwhile finds out before it charges.
        """
        with suppress(OSError):
            if self._made and not self.path.stat().st_size:
                self.path.unlink()

    def _connect(self) -> sqlite3.Connection:
        if _identity(self.path) in OPEN_IN_PARENT:
            raise LedgerError(
                f"ledger {self.path}: this process was forked from a process that had the ledger "
                "open, so SQLite cannot lock it here; start processes by 'spawn' or 'forkserver', "
                "or open the ledger after forking; nothing was charged"
            )
        connection = sqlite3.connect(
            self._uri, uri=True, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = _text
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")  # macOS: a plain fsync is not durable there
        except BaseException:  # for example, the file is not a database
            connection.close()
            raise
        if self.identity is None:
            self.identity = _identity(self.path)
        return connection


def _identity(path: Path | str) -> Identity | None:
    """Return the device and inode of a file; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(written: bytes) -> str:
    """Decode text without an error. The reader finds invalid text, and can name its row."""
    return written.decode("utf-8", "surrogateescape")


def server(text: str, wait: float) -> Engine:
    """Return an engine with connections to a PostgreSQL server.

    :raises InvalidValueError: if ``text`` is not a URL of PostgreSQL with psycopg
    """
    try:
        url = make_url(text)
    except SQLAlchemyError as error:
        raise InvalidValueError(f"path_or_url is not a URL: {error}") from None
    if url.drivername != "postgresql+psycopg":
        raise InvalidValueError(
            f"path_or_url is for {url.drivername}, which is not supported; pass the path of an "
            "SQLite file, or postgresql+psycopg://user@host/database"
        )
    limit = wait + GRACE  # for an answer of a server, which may wait for locks
    asked = {  # of the operating system; the URL may override them
        "keepalives_idle": max(1, int(limit)),
        "keepalives_interval": max(1, int(limit / 4)),
        "keepalives_count": 3,
        "tcp_user_timeout": int(1000 * limit),
    }
    asked = {name: value for name, value in asked.items() if name not in url.query}
    try:
        engine = create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            max_overflow=-1,
            pool_pre_ping=True,  # finds connections that a restart of the server closed
            connect_args={
                "connect_timeout": max(2, int(wait)),
                "client_encoding": "utf8",  # whatever PGCLIENTENCODING says
                **asked,
            },
        )
        connect = connect_within(limit)
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: install opendp-concurrent[postgresql]", name="psycopg"
        ) from error
    event.listen(engine, "do_connect", lambda _, __, names, options: connect(*names, **options))
    return engine


# Explain errors of a database, and say what to do.

_LOST = "the connection failed: check the server and the network, and try again"
_ADVICE = (  # beginnings of SQLite's messages and of PostgreSQL's SQLSTATE; what to do
    (("database or disk is full", "53100"), "the disk is full: free some space, and try again"),
    (
        ("attempt to write a readonly database", "25006", "42501"),
        "it cannot be written: give this process write access to it and, for SQLite, to its folder",
    ),
    (
        ("database is locked", "database table is locked", "55P03"),
        "another process has kept it locked for {wait:g} s: end that process, or open the ledger "
        "with a longer wait, and try again",
    ),
    (
        ("unable to open database file", "3D000"),
        "it cannot be opened: check its name, its folder and the permissions; open_ledger only "
        "opens a ledger that create_ledger made",
    ),
    (("file is not a database",), "the file is not a ledger: check its name"),
    (("database disk image is malformed",), "the file is damaged: restore the newest copy"),
    (("disk I/O error",), "the disk failed: repair it before you continue"),
    (
        ("charges are append-only", "UNIQUE constraint failed", "23505", "P0001"),
        "another program writes to it: stop that program",
    ),
    (("08", "57P", "57014", "25P03", "28", "the server has not answered"), _LOST),
)


def explain(name: str, error: Exception, stands: str, wait: float) -> str:
    """Return a message: the error of the ledger ``name``, what to do, and what was charged."""
    own = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    reason = str(own).strip().split("\n")[0]
    what = getattr(own, "sqlstate", None) or reason
    advice = next((text for starts, text in _ADVICE if what.startswith(starts)), None)
    if advice is None:
        advice = _LOST if "connection" in reason else "resolve this, and try again"
    return f"ledger {name}: {reason}; {advice.format(wait=wait)}; {stands}"


# Send the statements of a launch to the driver of a connection.

FULL = "database or disk is full"  # SQLite's message
_ROWS = " VALUES "  # after it, an INSERT has its rows
_IN_ERROR = 3  # PQTRANS_INERROR


class DriverConnection:
    """A connection of SQLAlchemy, and the driver below it.

    All launches wait for the lock that a launch holds, so a launch calls the driver itself. It
    sends several statements to PostgreSQL in one message, because a round trip takes as long as the
    statements.
    """

    def __init__(self, connection: Connection, texts: dict[Executable, str]) -> None:
        self.connection, self._texts = connection, texts
        driver: Any = connection.connection.driver_connection
        self._driver = driver
        self._embedded = connection.dialect.name == "sqlite"
        self.execute: Callable[..., Any] = driver.execute
        if not self._embedded:
            from psycopg import ClientCursor  # it binds values for several statements

            cursor = ClientCursor(driver)
            self.execute, self._mogrify = cursor.execute, cursor.mogrify

    def run(
        self, values: dict[str, Any], *statements: Executable, before: str = ""
    ) -> list[list[Any]]:
        """Execute statements, and return the rows of each. Each statement is compiled once.

        :param before: SQL to execute before them
        """
        texts = list(map(self._text, statements))
        if self._embedded:
            if before:
                self.execute(before)
            return [self.execute(text, values).fetchall() for text in texts]
        cursor = self.execute("; ".join([before, *texts] if before else texts), values)
        for _ in range(before.count(";") + 1 if before else 0):
            cursor.nextset()
        found = []
        for _ in statements:
            found.append(cursor.fetchall() if cursor.description else [])
            cursor.nextset()
        return found

    def change(self, changes: list[tuple[Executable, dict[str, Any]]], after: str = "") -> None:
        """Execute statements with values of their own, to a server in one message.

        :param after: SQL to execute after them, in the same message; for a server
        """
        if self._embedded:
            for statement, values in changes:
                self.execute(self._text(statement), values)
            return
        texts: list[str] = []
        last: Executable | None = None
        for statement, values in changes:
            text = self._text(statement)
            if statement is last and _ROWS in text:  # one more row of the same statement
                texts[-1] += ", " + self._mogrify(text.partition(_ROWS)[2], values)
            else:
                texts.append(self._mogrify(text, values))
            last = statement
        self.execute("; ".join([*texts, after] if after else texts))

    def _text(self, statement: Any) -> str:
        text = self._texts.get(statement)
        if text is None:
            text = self._texts[statement] = str(statement.compile(self.connection))
        return text

    @property
    def in_transaction(self) -> bool:
        """Whether SQLite is in a transaction."""
        return self._embedded and bool(self._driver.in_transaction)

    def undone_for_lack_of_space(self, error: BaseException) -> bool:
        """Whether a commit to an SQLite file failed because the disk is full, and was undone.

        SQLite appends the changed pages to ``-wal``, and marks the last one as the commit [SQLite,
        file format, section 4.3]. If that page cannot be written, nobody reads those before it,
        also after a crash. A disk that fails in another way may have written it.
        """
        if not self._embedded or not str(error).startswith(FULL):
            return False
        try:
            if self._driver.in_transaction:
                self.execute("ROLLBACK")
        except Exception:
            return False
        return not self._driver.in_transaction

    @property
    def failed(self) -> bool:
        """Whether the server is in a transaction of which a statement has failed."""
        return not self._embedded and int(self._driver.info.transaction_status) == _IN_ERROR

    @property
    def lost(self) -> bool:
        """Whether the connection to the server is closed."""
        return not self._embedded and bool(self._driver.closed)

    def drop(self) -> None:
        """Close the connection, even in a transaction."""
        if self._embedded:
            with suppress(sqlite3.Error):
                # SQLite keeps the locks of a closed connection as long as somebody has a cursor
                self._driver.rollback()
        self.connection.invalidate()
        self.connection.close()
