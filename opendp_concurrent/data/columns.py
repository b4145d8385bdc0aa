"""Columns of pandas, Polars, NumPy and PyArrow where OpenDP takes a list.

None of these is imported. A column is known by its class: it has a method that makes a list. The
list is checked before OpenDP sees it: OpenDP reads the class of the first element only, and takes a
missing value for a number. A message never has an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidTypeError, InvalidValueError
from ..types import Data

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
