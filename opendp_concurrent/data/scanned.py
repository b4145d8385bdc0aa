"""The files that a Polars LazyFrame is scanned from, and tables that become LazyFrames.

Polars is not imported here: without it nobody has a LazyFrame. Polars has no public list of a
plan's files. Its nodes tell them for CSV, Parquet and NDJSON, and its printed plan for the rest. A
file that neither shows is not seen.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from opendp.extras.polars import pl

from ..arguments.checks import is_a
from ..errors import InvalidTypeError
from ..errors.data import DataSourceError
from ..native.attributes import native_frame
from ..types import Data
from .columns import is_column
from .kind import check_files

_REFUSED = {"pandas": "from_pandas", "pyarrow": "from_arrow"}  # and how they are converted
_SCANNED = re.compile(r" SCAN \[(.*?)(?:, \.\.\. \d+ other sources?)?\]$", re.MULTILINE)


def files_of(data: Data) -> tuple[str, ...]:
    """Return the local files that a LazyFrame is scanned from, as far as its plan shows them.

    :raises DataSourceError: if one is missing already
    """
    if pl is None or not is_a(data, pl.LazyFrame):
        return ()
    try:
        shown = {path for path in _printed(data) if Path(path).exists()}  # it may be cut wrongly
        files = {path for path in _nodes(data) if "://" not in path} | shown
    except FileNotFoundError:
        raise DataSourceError from None
    check_files(tuple(files))
    return tuple(sorted(files))


def _printed(frame: Any) -> list[str]:
    plan: str = frame.explain(optimized=False)
    return _SCANNED.findall(plan)


def _nodes(frame: Any) -> list[str]:
    """Return the paths in the nodes of the plan. It is not run."""
    found: list[str] = []
    with suppress(AttributeError, NotImplementedError):  # another version of Polars
        plan = native_frame(frame).visit()
        left = [plan.get_node()]
        while left:
            plan.set_node(left.pop())
            left += plan.get_inputs()
            with suppress(NotImplementedError):  # a node that it cannot show
                found += map(str, getattr(plan.view_current_node(), "paths", ()))
    return found


def is_frame(data: Data) -> bool:
    """Whether the data are a table of Polars, pandas or PyArrow, and not a column."""
    if pl is not None and is_a(data, pl.LazyFrame, pl.DataFrame):
        return True
    return _package(data) in _REFUSED and not is_column(data)


def as_lazyframe(data: Data) -> Any:
    """Return a LazyFrame for a Polars DataFrame, and other data unchanged; refuse other tables."""
    if pl is not None and is_a(data, pl.DataFrame):
        return data.lazy()
    package = _package(data)
    if package in _REFUSED:
        convert = _REFUSED[package]
        raise InvalidTypeError(
            f"data ({type(data).__name__} of {package}) must be a Polars LazyFrame; "
            f"pass pl.{convert}(frame).lazy()"
        )
    return data


def _package(data: Data) -> str:
    return type(data).__module__.partition(".")[0]
