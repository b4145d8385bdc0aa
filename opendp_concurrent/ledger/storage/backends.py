"""The two backends of a ledger: an SQLite file, and a PostgreSQL server."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ...errors import InvalidValueError, LedgerDamagedError, LedgerError
from ...files import make_private, warn_if_open
from .timeouts import connect_within

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
    limit = longest(wait)
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


def longest(wait: float) -> float:
    """Return the limit in seconds for an answer of a server that waits ``wait`` s for locks."""
    return wait + GRACE
