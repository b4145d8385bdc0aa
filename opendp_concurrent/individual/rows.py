"""Data as NumPy arrays with one row per person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.metrics import insert_delete_distance, symmetric_distance
from opendp.mod import Domain, Metric

from ..data.kind import kind_of
from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.data import Sealed, in_python


def check_people(input_domain: Domain, input_metric: Metric) -> None:
    """Raise unless neighbours differ by added or removed rows, one row per person."""
    if not kind_of(input_domain).has_rows:
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


def open_rows(token: Sealed, input_domain: Domain) -> NDArray[Any]:
    """Return sealed data as a read-only array with one row per person."""
    return kind_of(input_domain).rows(in_python(token), input_domain)


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
