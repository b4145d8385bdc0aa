"""Which engine a connection belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from ...arguments.checks import shown
from ...errors import InvalidTypeError
from ...interrupts import Lock
from .duckdb import DuckDB
from .engine import Engine
from .postgres import PostgreSQL
from .rendered import rendering
from .spark import Spark

ENGINES: dict[str, Callable[[Any], Engine]] = {
    "duckdb": DuckDB,
    "_duckdb": DuckDB,
    "psycopg": PostgreSQL,
    "pyspark": Spark,
}
_OWN: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by process
_LOCK = Lock()


def own_connection() -> Any:
    """Return a connection to DuckDB for files: one for each process, so that they can be joined."""
    from duckdb import connect

    with _LOCK:
        found = _OWN.get(os.getpid())
        if found is None:
            found = _OWN[os.getpid()] = connect()
    return found


def own_engine() -> DuckDB:
    """Return the engine of that connection."""
    found = engine_of(own_connection())
    assert isinstance(found, DuckDB)
    return found


def _after_fork() -> None:
    """Leave a lock that another thread of the parent may hold."""
    global _LOCK
    _LOCK = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def engine_of(connection: Any) -> Engine:
    """Return the engine of a connection, or raise."""
    for kind in type(connection).__mro__:
        engine = ENGINES.get(kind.__module__.partition(".")[0])
        if engine is not None:
            found = engine(connection)
            rendering().prepare(found.dialect)
            return found
    raise InvalidTypeError(
        "connection must be of DuckDB, such as duckdb.connect('survey.db'), of PostgreSQL, such as "
        "psycopg.connect(...), or a session of Spark, found "
        f"{shown(type(connection).__name__)}"
    )
