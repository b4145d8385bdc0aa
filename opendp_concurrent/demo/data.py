"""What the demonstration reads: a survey that statsmodels ships, or a column of a file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import isfinite
from typing import Any

COLUMNS = {"age": 6, "religious": 4, "educ": 6, "occupation": 6}  # and how many levels each has


def _fair() -> Any:
    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise SystemExit(
            "the demonstration reads a survey that statsmodels ships: "
            "the extra named demo brings it; from a clone: pip install -e '.[demo]'. Or pass "
            "--csv, --column and --bounds"
        ) from None
    return fair.load_pandas().data


def ages() -> tuple[str, list[float], tuple[float, float]]:
    """Ages in the ``fair`` survey of 6,366 respondents."""
    return "fair survey, age", _fair()["age"].tolist(), (15.0, 50.0)


def cells() -> tuple[list[int], list[tuple[int, ...]]]:
    """Each respondent's cell in a table of ``COLUMNS``, and the levels that a cell stands for.

    The levels are public: those of the questionnaire.
    """
    survey = _fair()
    levels = {name: sorted(survey[name].unique()) for name in COLUMNS}
    records = [0] * len(survey)
    universe: list[tuple[int, ...]] = [()]
    for name, known in levels.items():
        index = {level: place for place, level in enumerate(known)}
        places = [index[value] for value in survey[name]]
        records = [cell * len(known) + place for cell, place in zip(records, places, strict=True)]
        universe = [(*cell, place) for cell in universe for place in range(len(known))]
    return records, universe


def arrivals() -> tuple[list[int], list[str]]:
    """How religious each respondent is, in the order of the survey, and what the levels mean."""
    levels = ["not", "mildly", "fairly", "strongly"]
    return [int(level) - 1 for level in _fair()["religious"]], levels


LARGEST_BOUND = 1e100
PARQUET = b"PAR1"  # the first bytes of such a file


def table(path: str, column: str, bounds: list[float]) -> tuple[str, list[float], Any]:
    """Read a column of numbers from a CSV or Parquet file.

    Nothing here tells of a row: the structure of a table is public, its rows are not. A cell that
    is missing, or no finite number, counts as the middle of the bounds, so that a row stays a row.
    """
    low, high = bounds
    if not -LARGEST_BOUND <= low < high <= LARGEST_BOUND:
        raise SystemExit(f"--bounds ({low} {high}) must increase, within {LARGEST_BOUND:g} of 0")
    middle = low + (high - low) / 2
    try:
        with open(path, "rb") as file:
            cells = _parquet if file.read(len(PARQUET)) == PARQUET else _csv
        values = [_number(cell, middle) for cell in cells(path, column)]
    except OSError as error:
        raise SystemExit(f"--csv ({path}) cannot be read: {error.strerror}") from None
    return f"{path}, {column}", values, (low, high)


def _number(cell: Any, middle: float) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return middle
    return number if isfinite(number) else middle


def _csv(path: str, column: str) -> Iterator[Any]:
    """The cells of a column; what cannot be read as a row is a row without cells."""
    csv.field_size_limit(2**31 - 1)
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            names = next(rows, [])
        except csv.Error:
            names = []
        if column not in names:
            raise SystemExit(f"--column ({column}) is not in the header of {path}")
        place = names.index(column)
        while True:
            try:
                row = next(rows, None)
            except csv.Error:
                row = []
            if row is None:
                return
            yield row[place] if place < len(row) else None


def _parquet(path: str, column: str) -> list[Any]:
    """The cells of a column of numbers."""
    try:
        import polars
    except ImportError:
        raise SystemExit(
            f"--csv ({path}) is a Parquet file, which polars reads: pip install polars, or write "
            "the table as CSV with a header first"
        ) from None
    try:
        kind = polars.read_parquet_schema(path).get(column)
        cells = None if kind is None else polars.read_parquet(path, columns=[column])
    except polars.exceptions.PolarsError:  # its text may tell of rows
        raise SystemExit(f"--csv ({path}) cannot be read as a Parquet file") from None
    if kind is None or cells is None:
        raise SystemExit(f"--column ({column}) is not in {path}")
    if not kind.is_numeric():
        raise SystemExit(f"--column ({column}) must have numbers, its type is {kind}")
    return cells.get_column(column).to_list()
