"""Which engine a connection belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary

from opendp.extras.polars import pl

from .._opendp import Lock
from ..data import Uncollected, as_lazyframe, collected, is_frame, readable, types_of
from ..errors import Data, InvalidTypeError, shown
from .duckdb import Chunk, DuckDB
from .engine import Engine, Stored, rendering
from .postgres import PostgreSQL
from .schema import Scales, Schema
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


# Frames of Polars and pandas as tables: rows that are collected once, and copied into DuckDB.

ROWS = 10_000  # of a chunk
_INTEGER = re.compile("U?Int(8|16|32)|Int64")
_DUCKDB = {
    "Float32": "DOUBLE",
    "Float64": "DOUBLE",
    "String": "VARCHAR",
    "Categorical": "VARCHAR",
    "Enum": "VARCHAR",
    "Boolean": "BOOLEAN",
    "Date": "DATE",
}


_OF_PANDAS = {  # what pandas infers
    "integer": "BIGINT",
    "floating": "DOUBLE",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "datetime64": "TIMESTAMP",
}


def plan_given(value: Data) -> Any:
    """Return a value that is a LazyFrame or a frame of pandas; None if it is none; or raise."""
    if not is_frame(value):
        return None
    if type(value).__module__.partition(".")[0] == "pandas":
        names = list(value.columns)
        if not all(isinstance(one, str) for one in names) or len(set(names)) < len(names):
            raise InvalidTypeError("connection (a frame of pandas) must have different names")
        return value
    frame = as_lazyframe(value, "connection")
    if isinstance(frame, Uncollected):
        raise InvalidTypeError(
            "connection must be a LazyFrame that is collected: a table has a copy of its rows; "
            "without it, scan the file itself"
        )
    return frame


def stored_types(frame: Data) -> dict[str, str]:
    """Return DuckDB's names for the types of the columns of a frame."""
    if hasattr(frame, "iloc"):
        infer = import_module("pandas.api.types").infer_dtype
        kinds = {name: infer(frame[name].astype(object), skipna=True) for name in frame.columns}
        return {name: _OF_PANDAS.get(kind, kind) for name, kind in kinds.items()}
    return {name: _stored(kind) for name, kind in types_of(frame).items()}


def stored_frame(frame: Data, schema: Schema, scales: Scales) -> Stored:
    """Return a copy in DuckDB of the rows of a LazyFrame, or raise without the text of a row.

    :raises InvalidTypeError, InvalidValueError: naming a column; or if the plan fails
    """
    engine = own_engine()
    engine.check_columns(stored_types(frame), schema, scales)
    if hasattr(frame, "iloc"):
        return engine.copied(schema, _parts(frame[list(schema.names)]))
    names = list(types_of(frame))  # by position: Polars reads some names as patterns
    rows = collected(frame.select(pl.nth([names.index(one) for one in schema.names])))
    return engine.copied(schema, _chunks(rows, scales))


def _parts(frame: Any) -> Iterator[Chunk]:
    """Yield the values of the columns of a frame of pandas, so many rows at a time."""
    for start in range(0, len(frame), ROWS):
        part = frame.iloc[start : start + ROWS]
        yield [
            [_plain(one) if known else None for one, known in zip(column, filled, strict=True)]
            for column, filled in ((part[name], part[name].notna()) for name in part.columns)
        ]


def _plain(value: Any) -> Any:
    """Return a timestamp in UTC and microseconds, and another value as Python's own."""
    if not hasattr(value, "to_pydatetime"):
        return value.item() if hasattr(value, "item") else value
    value = value.floor("us")
    return (
        value if value.tzinfo is None else value.tz_convert("UTC").tz_localize(None)
    ).to_pydatetime()


def _stored(kind: Any) -> str:
    """Return DuckDB's name for a type of Polars; its own name if no value of it is copied."""
    if isinstance(kind, pl.Decimal):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if isinstance(kind, pl.Datetime) and kind.time_unit != "ns":  # which would be rounded
        return "TIMESTAMP"
    name = type(kind).__name__
    return "BIGINT" if _INTEGER.fullmatch(name) else _DUCKDB.get(name, str(kind))


def _chunks(rows: Data, scales: Mapping[str, int]) -> Iterator[Chunk]:
    """Yield the values of the columns, so many rows at a time."""
    columns = [_in_utc(one) for one in rows.get_columns()]
    shifts = [scales.get(one.name) for one in columns]
    for start in range(0, rows.height, ROWS):
        slices = [one.slice(start, ROWS) for one in columns]
        parts = [readable(one, one.to_list) for one in slices]
        yield [
            part if scale is None else [_steps(one, scale) for one in part]
            for part, scale in zip(parts, shifts, strict=True)
        ]


def _in_utc(column: Data) -> Any:
    """Return timestamps with a time zone as those of UTC, without it."""
    if getattr(column.dtype, "time_zone", None) is None:
        return column
    return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _steps(value: Decimal | None, scale: int) -> int | None:
    """Return a decimal number as a multiple of 10^-scale, which it is."""
    return None if value is None else int(value.scaleb(scale))
