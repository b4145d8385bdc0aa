"""LazyFrames of Polars as tables: rows that are collected once, and copied into DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from opendp.extras.polars import pl

from ..data.scanned import (
    Uncollected,
    as_lazyframe,
    collected,
    is_frame,
    readable,
    types_of,
)
from ..errors import InvalidTypeError
from ..types import Data
from .engines.duckdb import Chunk
from .engines.engine import Stored
from .engines.known import own_engine
from .schema import Scales, Schema

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


def plan_given(value: Data) -> Any:
    """Return the LazyFrame that a value is; None if it is no frame; or raise."""
    if not is_frame(value):
        return None
    frame = as_lazyframe(value, "connection")
    if isinstance(frame, Uncollected):
        raise InvalidTypeError(
            "connection must be a LazyFrame that is collected: a table has a copy of its rows; "
            "without it, scan the file itself"
        )
    return frame


def stored_types(frame: Data) -> dict[str, str]:
    """Return DuckDB's names for the types of the columns of a LazyFrame."""
    return {name: _stored(kind) for name, kind in types_of(frame).items()}


def stored_frame(frame: Data, schema: Schema, scales: Scales) -> Stored:
    """Return a copy in DuckDB of the rows of a LazyFrame, or raise without the text of a row.

    :raises InvalidTypeError, InvalidValueError: naming a column; or if the plan fails
    """
    engine = own_engine()
    engine.check_columns(stored_types(frame), schema, scales)
    names = list(types_of(frame))  # by position: Polars reads some names as patterns
    rows = collected(frame.select(pl.nth([names.index(one) for one in schema.names])))
    return engine.copied(schema, _chunks(rows, scales))


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
