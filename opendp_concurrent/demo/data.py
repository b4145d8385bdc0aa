"""What the demonstration reads: a survey that statsmodels ships, or a column of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from math import isfinite, nan
from pathlib import Path
from typing import Any

LARGEST_BOUND = 1e100
PARQUET = b"PAR1"  # the first bytes of such a file


def ages() -> list[float]:
    """Ages in the ``fair`` survey of 6,366 respondents, which is published."""
    package = find_spec("statsmodels")  # found, not imported: that takes a second
    if package is None or package.origin is None:
        raise SystemExit(
            "the demonstration reads a survey from statsmodels, which the extra 'demo' "
            "installs (in a clone: pip install -e '.[demo]'); or pass --csv, --column and "
            "--bounds"
        )
    return column(str(Path(package.origin).parent / "datasets/fair/fair.csv"), "age")


def column(path: str, name: str) -> list[float]:
    """Read a column of numbers from a CSV or Parquet file.

    Errors tell of the structure of the table, which is public, and never of a row. A cell that is
    missing, or no finite number, is NaN, so that a row stays a row.
    """
    try:
        with open(path, "rb") as file:
            cells = _parquet if file.read(len(PARQUET)) == PARQUET else _csv
        return [_number(cell) for cell in cells(path, name)]
    except OSError as error:
        raise SystemExit(f"{path} cannot be read: {error.strerror}") from None


def _number(cell: Any) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return nan
    return number if isfinite(number) else nan


def _csv(path: str, name: str) -> Iterator[Any]:
    """The cells of a column; what cannot be read as a row is a row without cells."""
    csv.field_size_limit(2**31 - 1)
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        names = _row(rows) or []
        if name not in names:
            raise SystemExit(f"--column ({name}) is not in the header of {path}")
        place = names.index(name)
        while (row := _row(rows)) is not None:
            yield row[place] if place < len(row) else None


def _row(rows: Iterator[list[str]]) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error:
        return []


def _parquet(path: str, name: str) -> Iterable[Any]:
    """The cells of a column of numbers."""
    try:
        import polars
    except ImportError:
        raise SystemExit(
            f"{path} is a Parquet file, which polars reads: pip install polars, or write the table "
            "as CSV with a header first"
        ) from None
    try:
        kind = polars.read_parquet_schema(path).get(name)
        if kind is None:
            raise SystemExit(f"--column ({name}) is not in {path}")
        if not kind.is_numeric():
            raise SystemExit(f"--column ({name}) must have numbers, its type is {kind}")
        return polars.read_parquet(path, columns=[name]).get_column(name).to_list()
    except polars.exceptions.PolarsError:  # its text may contain rows
        raise SystemExit(f"{path} cannot be read as a Parquet file") from None
