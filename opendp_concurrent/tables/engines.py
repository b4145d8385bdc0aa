"""Which engine a connection belongs to."""

import atexit
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ..data import Uncollected, as_lazyframe, collected, is_frame
from ..errors import Data, InvalidTypeError, shown
from .duckdb import Arrow, DuckDB, Frame
from .engine import Engine, rendering
from .postgres import PostgreSQL
from .spark import Spark

ENGINES: dict[str, Callable[[Any], Engine]] = {
    "duckdb": DuckDB,
    "_duckdb": DuckDB,
    "psycopg": PostgreSQL,
    "pyspark": Spark,
}


@cache
def _connection(process: int) -> Any:
    del process  # a fork has a connection of its own
    from duckdb import connect

    return connect()


atexit.register(_connection.cache_clear)


def own_connection() -> Any:
    """Return a connection to DuckDB for files and frames, which can be joined."""
    return _connection(os.getpid())


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


# Frames of Polars and pandas as tables: rows that are collected once, and copied into DuckDB.


def engine_of_frame(value: Data) -> Engine | None:
    """Return an engine that reads a frame of Polars or pandas; None if it is none; or raise."""
    if not is_frame(value):
        return None
    rendering().prepare(Frame.dialect)
    if type(value).__module__.partition(".")[0] == "pandas":
        names = list(value.columns)
        if not all(isinstance(one, str) for one in names) or len(set(names)) < len(names):
            raise InvalidTypeError("connection (a frame of pandas) must have different names")
        return Frame(own_connection(), value)
    frame = as_lazyframe(value, "connection")
    if isinstance(frame, Uncollected):
        raise InvalidTypeError(
            "connection must be a LazyFrame that is collected: a table has a copy of its rows; "
            "without it, scan the file itself"
        )
    return Frame(own_connection(), Arrow(collected(frame)))
