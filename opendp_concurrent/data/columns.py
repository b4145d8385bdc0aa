"""Columns of pandas, Polars, NumPy and PyArrow where OpenDP takes a list.

None of these is imported. A column is known by its class: it has a method that makes a list. The
list is checked before OpenDP sees it: OpenDP reads the class of the first element only, and takes a
missing value for a number. A message never has an element.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from opendp.extras.polars import pl

from .._opendp import interruptible, native_frame
from ..errors import Data, DataSourceError, InvalidTypeError, InvalidValueError, log, pass_interrupt
from .kind import check_files

_METHODS = ("to_list", "to_pylist", "tolist")
_ROWS = (list, tuple, range, str, bytes, bytearray, dict, set, frozenset)
_ATOMS = {  # the narrowest type of OpenDP's vectors that has all values
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "i32"),
    **{"int64": "i64", "uint32": "u32", "uint64": "u64"},
    **{"float": "f32", "float32": "f32", "float64": "f64", "double": "f64"},
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("str", "string", "large_string", "string_view", "object"), "String"),
}
_EQUAL = {"int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64", "bool": "bool"}
_LIMITS = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "usize": "uint64",
}
DTYPES = {**_LIMITS, "f32": "float32", "f64": "float64", "bool": "bool"}  # of NumPy's arrays
_MOST = 2**36  # more than a machine holds


class _Kind(NamedTuple):
    """What the elements of one type of OpenDP are in Python."""

    classes: frozenset[type]
    words: str


_INTEGERS = _Kind(frozenset({int}), "integers")
_NUMBERS = _Kind(frozenset({int, float}), "numbers")
_KINDS = {
    **dict.fromkeys(_LIMITS, _INTEGERS),
    "f32": _NUMBERS,
    "f64": _NUMBERS,
    "bool": _Kind(frozenset({bool}), "booleans"),
    "String": _Kind(frozenset({str}), "strings"),
}


def is_column(data: Data) -> bool:
    """Whether the data are a column or an array: neither a list nor a table."""
    return not isinstance(data, _ROWS) and _method(data) is not None and _dimensions(data) == 1


def atom_of(column: Any) -> str:
    """Return OpenDP's type of a column's elements, from the column's own type, or raise."""
    dtype: Any = getattr(column, "dtype", getattr(column, "type", None))
    if isinstance(dtype, np.dtype) and dtype.kind == "U":
        return "String"
    atom = _ATOMS.get(str(dtype).lower())
    if atom is None:
        raise InvalidTypeError(
            f"data ({_named(column)} of {dtype}) must have integers, floats, booleans or strings; "
            "convert it, and pass a list and domain=dp.vector_domain(...)"
        )
    return atom


def as_rows(data: Data, atom: str, allows_nan: Callable[[], bool]) -> Any:
    """Return a column as a list of Python's values for vectors of ``atom``, or raise.

    An array whose type is the domain's is returned as it is, and anything else that is no column.

    :param allows_nan: whether the domain has NaN; asked for columns of floats only
    """
    kind = _KINDS.get(atom)
    if kind is _NUMBERS and isinstance(data, (list, tuple)) and _has_nan(data):
        _check_nan(data, allows_nan)  # OpenDP reads NaN as 0 before it adds noise (opendp#2935)
    if kind is None or isinstance(data, _ROWS):
        return data
    dimensions = _dimensions(data)
    if dimensions != 1:
        raise InvalidTypeError(
            f"data must be one column, found {_named(data)} of {dimensions} dimensions; "
            "pass one column of it, such as data['age'].to_list(), or array[:, 0]"
        )
    method = _method(data)
    if method is None:
        return data
    masked = isinstance(data, np.ma.MaskedArray)  # OpenDP would read what the mask hides
    if isinstance(data, np.ndarray) and not masked and _atom_of_array(data) == atom:
        if data.dtype.kind == "f" and _in_memory(data, lambda: np.isnan(data).any()):
            _check_nan(data, allows_nan)
        return data
    if not len(data) <= _MOST:
        raise InvalidValueError(f"data must have at most 2**36 rows, found {len(data)}")
    rows = _in_memory(data, getattr(data, method))
    _check(data, rows, atom, kind, allows_nan)
    return rows


def _in_memory(data: Data, read: Callable[[], Any]) -> Any:
    """Return ``read()``, or raise if there is no memory for it: an array may repeat one value."""
    try:
        return read()
    except MemoryError:
        pass  # raised out here, since the error and its frames hold data
    raise InvalidValueError(
        f"data ({_named(data)}) must fit in memory, found {len(data)} rows; pass fewer"
    )


def _check(
    data: Data, rows: list[Any], atom: str, kind: _Kind, allows_nan: Callable[[], bool]
) -> None:
    found = set(map(type, rows))
    if not found <= kind.classes:
        others = sorted(one.__name__ for one in found - kind.classes)
        if any(name in ("NoneType", "NAType", "NaTType") for name in others) or (
            float in found and _has_nan(rows)
        ):
            raise InvalidValueError(
                f"data ({_named(data)}) has missing values, which vectors of {atom} do not have; "
                "fill them with a value that does not depend on the data, such as "
                "data.fill_null(0) in Polars or data.fillna(0) in pandas"
            )
        raise InvalidTypeError(
            f"data ({_named(data)}) must be {kind.words} for vectors of {atom}, found "
            f"{', '.join(others)}; convert the column, or declare another domain"
        )
    if kind is _INTEGERS and rows:
        limits = np.iinfo(_LIMITS[atom])
        if not limits.min <= min(rows) <= max(rows) <= limits.max:
            raise InvalidValueError(
                f"data ({_named(data)}) has integers outside of {atom}; declare a wider domain, "
                'such as dp.vector_domain(dp.atom_domain(T="i64"))'
            )
    if float in found and _has_nan(rows):
        _check_nan(data, allows_nan)


def _check_nan(data: Data, allows_nan: Callable[[], bool]) -> None:
    if not allows_nan():
        raise InvalidValueError(
            f"data ({_named(data)}) has NaN, which the domain excludes; fill it with a value that "
            "does not depend on the data, or declare dp.atom_domain(T=float, nan=True)"
        )


def _has_nan(rows: Iterable[Any]) -> bool:
    return any(one != one for one in rows if type(one) is float)


def _atom_of_array(array: Any) -> str:
    if array.dtype.kind == "U":
        return "String"
    return _EQUAL.get(str(array.dtype), "")


def _method(data: Data) -> str | None:
    """Return the method of the data's class that makes a list."""
    kind = type(data)
    return next((name for name in _METHODS if callable(getattr(kind, name, None))), None)


def _dimensions(data: Data) -> int:
    kind = type(data)
    if any(hasattr(kind, name) for name in ("ndim", "shape")):
        shape = getattr(data, "shape", ())
        return len(shape) if isinstance(shape, tuple) else 1
    return 2 if hasattr(kind, "column_names") else 1


def _named(data: Data) -> str:
    kind = type(data)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


# The files that a Polars LazyFrame is scanned from, and tables that become LazyFrames.
#
# Polars is not imported here: without it nobody has a LazyFrame. Polars has no public list of a
# plan's files. Its nodes tell them for CSV, Parquet and NDJSON, and its printed plan for the rest.
# A file that neither shows is not seen.

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
        return interruptible(function)
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
