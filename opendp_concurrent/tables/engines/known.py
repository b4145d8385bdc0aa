"""Which engine a connection belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arguments.checks import shown
from ...errors import InvalidTypeError
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


def own_connection() -> Any:
    """Return a new connection to DuckDB, for files."""
    from duckdb import connect

    return connect()


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
