"""The files that a Polars LazyFrame is scanned from, and tables that become LazyFrames.

Polars is not imported here: without it nobody has a LazyFrame. Polars has no public list of a
plan's files. Its nodes tell them for CSV, Parquet and NDJSON, and its printed plan for the rest. A
file that neither shows is not seen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from opendp.extras.polars import pl

from ..errors import DataSourceError, InvalidTypeError, InvalidValueError
from ..failures import log, pass_interrupt
from ..interrupts import let_in
from ..native.attributes import native_frame
from ..types import Data
from .columns import is_column
from .kind import check_files

_REFUSED = {"pandas": "from_pandas", "pyarrow": "from_arrow"}  # and how they are converted
_SCANNED = re.compile(r" SCAN \[(.*?)(?:, \.\.\. \d+ other sources?)?\]$", re.MULTILINE)

LOGGER = logging.getLogger("opendp_concurrent.data")


class Uncollected:
    """A LazyFrame whose plan runs at each launch. Make it by :func:`.uncollected`.

    :ivar frame: the LazyFrame
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame


def uncollected(frame: Any) -> Uncollected:
    """Run the plan of a LazyFrame again at each launch, for frames that do not fit in memory.

    Without this, a LazyFrame is collected once, when it is passed to a measurement or a context.

    .. warning::

        A plan can fail on one row: a word in a column of numbers, invalid UTF-8, NaN that the
        domain excludes, a cast of your own. Each launch that reads the row then fails, and no
        launch fails without it. So an error is an answer that tells the row. A Python function in
        the plan that raises even ends the process. The caller promises that the plan fails on no
        row, and that its files do not change.

    :param frame: a Polars LazyFrame
    :return: data, in place of the frame
    :raises InvalidTypeError: if it is no LazyFrame

    :example:

    >>> import polars as pl
    >>> visits = pl.LazyFrame({"age": [30, 40]})  # pl.scan_parquet(...)
    >>> context = oc.concurrent_context(
    ...     data=oc.uncollected(visits),
    ...     privacy_unit=dp.unit_of(contributions=1),
    ...     privacy_loss=dp.loss_of(epsilon=1.0),
    ... )
    """
    if pl is None or not isinstance(frame, pl.LazyFrame):
        raise InvalidTypeError(f"frame must be a Polars LazyFrame, found {type(frame).__name__}")
    return Uncollected(frame)


def plan_of(data: Any) -> Any:
    """Return the LazyFrame of :func:`uncollected`, and other data unchanged."""
    return data.frame if isinstance(data, Uncollected) else data


def collected(frame: Any) -> Any:
    """Return the rows of a LazyFrame as a DataFrame. What is in memory already is not copied.

    :raises DataSourceError: if a file is missing
    :raises InvalidValueError: if the plan fails; the log of the owner has the reason
    """
    return readable(frame, frame.collect)


def types_of(frame: Any) -> Mapping[str, Any]:
    """Return Polars' types of the columns of a LazyFrame, whose plan does not run; or raise."""
    types: Mapping[str, Any] = readable(frame, frame.collect_schema)
    return types


def readable(data: Data, function: Callable[[], Any]) -> Any:
    """Return what a function reads of a LazyFrame, or of its rows; or raise without a row."""
    try:
        files_of(data)
        return let_in(function)
    except DataSourceError:
        raise
    except BaseException as error:  # its text, and the frames of its traceback, may have rows
        pass_interrupt(error)
        log(LOGGER, "a LazyFrame cannot be read", error)
    raise InvalidValueError(
        "data (LazyFrame) must be readable: its plan has failed; the logger "
        "'opendp_concurrent.data' has the reason, which may contain rows"
    )


def files_of(data: Data) -> tuple[str, ...]:
    """Return the local files that a LazyFrame is scanned from, as far as its plan shows them.

    :raises DataSourceError: if one is missing already
    """
    if pl is None or not isinstance(data, pl.LazyFrame):
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
    if pl is not None and isinstance(data, (pl.LazyFrame, pl.DataFrame, Uncollected)):
        return True
    return _package(data) in _REFUSED and not is_column(data)


def as_lazyframe(data: Data, name: str = "data") -> Any:
    """Return a LazyFrame for a Polars DataFrame, and other data unchanged; refuse other tables."""
    if pl is not None and isinstance(data, pl.DataFrame):
        return data.lazy()
    package = _package(data)
    if package in _REFUSED:
        convert = _REFUSED[package]
        raise InvalidTypeError(
            f"{name} ({type(data).__name__} of {package}) must be a Polars LazyFrame; "
            f"pass pl.{convert}(frame).lazy()"
        )
    return data


def _package(data: Data) -> str:
    return type(data).__module__.partition(".")[0]
