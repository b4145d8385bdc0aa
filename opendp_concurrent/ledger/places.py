"""Where a ledger can be: an SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import sqlite3
from os import stat
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ..errors import InvalidValueError, LedgerDamagedError, LedgerError

# SQLite keeps its locks of a file for a process. A forked one has them in its memory, but not from
# the system: it must not open the file, which others would then take to be nobody's.
OPEN_IN_PARENT: set[tuple[int, int] | None] = set()


class File:
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
            found = stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connect(self) -> sqlite3.Connection:
        if self._found() in OPEN_IN_PARENT:
            raise LedgerError(
                f"ledger {self._path}: this process was forked from one that had it open, and "
                "SQLite cannot lock it here; start processes by 'spawn' or 'forkserver', or open "
                f"it only after forking; nothing was charged"
            )
        connection = sqlite3.connect(
            self._uri,
            uri=True,
            timeout=self._wait,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")  # where a plain fsync is not enough: macOS
        except BaseException:  # such as that it is no database
            connection.close()
            raise
        if self.identity is None:
            self.identity = self._found()
        return connection


def server(text: str, wait: float) -> Engine:
    """Connections to a PostgreSQL server.

    :raises InvalidValueError: if ``text`` is the URL of something else
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
