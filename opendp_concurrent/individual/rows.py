"""Data as NumPy arrays with one row per person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.metrics import insert_delete_distance, symmetric_distance
from opendp.mod import Domain, Metric

from ..errors import InvalidTypeError, InvalidValueError
from ..native import opendp as _native
from ..queryables.data import Sealed, unseal

_MOST_NUMBERS = 2**32
EXTRINSIC = "ExtrinsicObject"
DTYPES = {
    f"Vec<{name}>": dtype
    for name, dtype in {
        "bool": np.bool_,
        "f32": np.float32,
        "f64": np.float64,
        "i8": np.int8,
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "u64": np.uint64,
        "usize": np.uint64,
    }.items()
}


def check_people(input_domain: Domain, input_metric: Metric) -> None:
    """Raise unless neighbours differ by added or removed rows, one row per person."""
    carrier = str(input_domain.carrier_type)
    if carrier != EXTRINSIC and not carrier.startswith("Vec<"):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be of vectors, or a user's own of NumPy arrays "
            "such as dp.numpy.array2_domain(T=float), with a row for each person"
        )
    if input_metric not in (symmetric_distance(), insert_delete_distance()):
        raise InvalidValueError(
            f"input_metric ({input_metric}) must be the symmetric or the insert-delete distance, "
            "where people are added or removed: if one row may change into another, what a person "
            "loses depends on both, and no budget can be kept by looking at one"
        )


def check_small(numbers: int) -> None:
    """Raise if the data have more than 2^32 numbers."""
    if not numbers <= _MOST_NUMBERS:
        raise InvalidValueError(f"the data must have at most 2**32 numbers, found {numbers}")


def as_rows(data: Any, input_domain: Domain) -> NDArray[Any]:
    """Return data as a read-only array; a NumPy array is not copied."""
    carrier = str(input_domain.carrier_type)
    rows: NDArray[Any]
    if carrier == EXTRINSIC:
        if not isinstance(data, np.ndarray) or data.ndim == 0:
            raise InvalidTypeError(
                "the data must be a NumPy array with a row for each person; "
                "map input_domain to one first"
            )
        if isinstance(data, np.ma.MaskedArray):  # asarray would read what the mask hides
            raise InvalidTypeError(
                "the data must be an array without a mask, whose numbers would be counted; pass "
                "data.filled(value), with a value that does not depend on the data"
            )
        check_small(data.size)
        rows = np.asarray(data).view()
    elif carrier in DTYPES:
        rows = np.asarray(data, dtype=DTYPES[carrier])
    else:
        rows = np.fromiter(data, dtype=object, count=len(data))
    rows.setflags(write=False)
    return rows


def open_rows(token: Sealed, input_domain: Domain) -> NDArray[Any]:
    """Return sealed data as rows."""
    return as_rows(_native.to_python(unseal(token)), input_domain)


def values_of(rows: NDArray[Any], per_row: Callable[[Any], Any]) -> Callable[[slice], NDArray[Any]]:
    """Return a function from a slice of rows to its numbers; its error messages show no value."""

    def values(part: slice) -> NDArray[Any]:
        returned = per_row(rows[part])
        numbers = np.asarray(returned)  # as NumPy's own class, not a subclass
        if (
            not isinstance(returned, np.ndarray)
            or isinstance(returned, np.ma.MaskedArray)
            or numbers.dtype.kind not in "biuf"
            or numbers.shape != (part.stop - part.start,)
        ):
            raise InvalidTypeError(
                "per_row must return a NumPy array of one dimension and without a mask, with one "
                "boolean, integer or float for each row that it is given; nothing was charged"
            )
        return numbers

    return values
