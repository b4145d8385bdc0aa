"""Where a ledger can be: an SQLite file, or a PostgreSQL server."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ...errors import InvalidValueError, LedgerDamagedError, LedgerError
from .anchors import Anchors
from .timeouts import patient
from .watch import Identity, Watch, identity

GRACE = 5.0  # seconds, for a server to do what a launch asks of it

# SQLite keeps its locks of a file for a process. A forked one has them in its memory, but not from
# the system: it must not open the file, which others would then take to be nobody's.
OPEN_IN_PARENT: set[Identity | None] = set()


class File:
    """An SQLite file, which must stay the one that was opened first."""

    def __init__(self, path: Path, create: bool, wait: float) -> None:
        # SQLite keeps its side files beside the file that a link names
        self.path, self._wait = Path(os.path.realpath(path)), wait
        self._link = None if path.absolute() == self.path else path.absolute()
        self._uri = f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}"
        self.identity: Identity | None = None
        self.anchors = Anchors(self.path)
        self.keeper: list[sqlite3.Connection] = []  # a connection that stays open, if there is one
        self._watch: Watch | None = None

    def engine(self) -> Engine:
        """Connections to it."""
        return create_engine(
            "sqlite+pysqlite://",
            creator=self._connect,
            poolclass=QueuePool,
            max_overflow=-1,
            isolation_level="AUTOCOMMIT",
        )

    def watch(self) -> None:
        """Keep a connection open, and watch the files that SQLite has beside it from now on."""
        if self._watch is None:
            keeper = self._connect()
            self.keeper.append(keeper)
            keeper.execute("SELECT count(*) FROM sqlite_master").fetchall()  # now they are there
            self._watch = Watch(self.path)
            self.check()

    def check(self) -> None:
        """Raise unless the files are where they were: what is written to others is lost.

        :raises LedgerDamagedError: if one was moved or replaced
        """
        names = (self.path,) if self._link is None else (self.path, self._link)
        if self.identity is not None and any(identity(one) != self.identity for one in names):
            raise LedgerDamagedError(f"the file {names[-1]} is not the one that was opened")
        if self._watch is not None:
            self._watch.check()

    def check_log(self, locked: bool) -> None:
        """Raise if charges were cut off from the file that SQLite has beside it.

        :param locked: whether nobody else can write now
        :raises LedgerDamagedError: if they were
        """
        if self._watch is not None:
            self._watch.check_log(locked)

    def close(self) -> None:
        """Close what is kept open beside the connections of the engine."""
        while self.keeper:
            self.keeper.pop().close()
        if self._watch is not None:
            self._watch.close()
        self._watch = None
        self.anchors.close()

    def leave_to_parent(self) -> list[sqlite3.Connection]:
        """In a forked process: return the connection that must not be closed there."""
        kept, self.keeper = self.keeper, []
        return kept

    def _connect(self) -> sqlite3.Connection:
        if identity(self.path) in OPEN_IN_PARENT:
            raise LedgerError(
                f"ledger {self.path}: this process was forked from one that had it open, and "
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
            connection.text_factory = _text
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA fullfsync=ON")  # where a plain fsync is not enough: macOS
        except BaseException:  # such as that it is no database
            connection.close()
            raise
        if self.identity is None:
            self.identity = identity(self.path)
        return connection


def _text(written: bytes) -> str:
    """Text as it was written; what is none is found by whoever reads it, and can say where."""
    return written.decode("utf-8", "surrogateescape")


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
    limit = longest(wait)
    asked = {  # of the system; the URL may say otherwise
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
            pool_pre_ping=True,  # the server may have been restarted
            connect_args={
                "connect_timeout": max(2, int(wait)),
                "client_encoding": "utf8",  # whatever the environment says: labels are text
                **asked,
            },
        )
        connect = patient(limit)
    except ImportError as error:
        raise ImportError(
            "PostgreSQL needs psycopg: install opendp-concurrent[postgresql]", name="psycopg"
        ) from error
    event.listen(engine, "do_connect", lambda _, __, names, options: connect(*names, **options))
    return engine


def longest(wait: float) -> float:
    """Seconds to wait for an answer of a server that itself waits for a lock ``wait`` seconds."""
    return wait + GRACE
