"""What the demonstration reads: a survey that statsmodels ships, or a column of a CSV file."""

from __future__ import annotations

import csv
from typing import Any

COLUMNS = {"age": 6, "religious": 4, "educ": 6, "occupation": 6}  # and how many levels each has


def _fair() -> Any:
    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise SystemExit(
            "the demonstration reads a survey that statsmodels ships: "
            "pip install 'opendp-concurrent[demo]', or pass --csv, --column and --bounds"
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


def table(path: str, column: str, bounds: list[float]) -> tuple[str, list[float], Any]:
    """Read a column of numbers from a CSV file."""
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise SystemExit(f"--csv ({path}) cannot be read: {error.strerror}") from None
    if not rows or column not in rows[0]:
        raise SystemExit(f"--column ({column}) is not in {path}")
    low, high = bounds
    if not low < high:
        raise SystemExit(f"--bounds ({low} {high}) must increase")
    try:
        values = [float(row[column]) for row in rows if row[column]]
    except ValueError:
        raise SystemExit(f"--column ({column}) must have numbers only") from None
    return f"{path}, {column}", values, (low, high)
