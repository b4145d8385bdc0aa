"""Noisy integers of a table as data frames: keys, value and accuracy.

All of this is postprocessing. The library of the frame is imported only if a frame is asked for,
and before the launch, so that a missing library costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from importlib import import_module
from typing import Any

from opendp.accuracy import (
    discrete_gaussian_scale_to_accuracy,
    discrete_laplacian_scale_to_accuracy,
    gaussian_scale_to_accuracy,
)

from ..arguments.checks import shown
from ..errors import InvalidValueError
from ..tables.moments import Estimate, Moments, Statistic

LIBRARIES = ("polars", "pandas")
VALUE, ACCURACY, LOWER, UPPER = "value", "accuracy", "lower", "upper"
LISTED = 10_000.0  # OpenDP adds up the outcomes of discrete Gaussian noise one by one


def discrete_laplace_accuracy(scale: float, alpha: float) -> float:
    """Return what discrete Laplace noise is at most, with probability 1 - alpha."""
    return max(0.0, float(discrete_laplacian_scale_to_accuracy(scale, alpha)))  # -inf of tiny ones


def discrete_gaussian_accuracy(scale: float, alpha: float) -> float:
    """Return what discrete Gaussian noise is at most, with probability 1 - alpha.

    The noise exceeds m with at most the probability that a Gaussian exceeds m - 1.
    """
    if scale <= LISTED:
        return float(discrete_gaussian_scale_to_accuracy(scale, alpha))
    return float(gaussian_scale_to_accuracy(scale, alpha)) + 1.0


ACCURACIES: dict[str, Callable[[float, float], float]] = {
    "laplace": discrete_laplace_accuracy,
    "certified_laplace": discrete_laplace_accuracy,
    "gaussian": discrete_gaussian_accuracy,
    "certified_gaussian": discrete_gaussian_accuracy,
}


@dataclass(frozen=True, slots=True)
class Labels:
    """What the integers of an answer are about: public keys, and the unit of the integers.

    :ivar columns: names and types of the keys
    :ivar keys: one for each integer, with a value for each column
    :ivar quantum: what an integer counts; None for rows, units and integer sums
    :ivar moments: how integers are read as a statistic, and which one; None for plain integers
    """

    columns: tuple[tuple[str, type], ...] = ()
    keys: Sequence[tuple[Any, ...]] = ((),)
    quantum: float | None = None
    moments: tuple[Moments, Statistic] | None = None

    def estimates(self, values: Any, accuracy: float) -> list[Estimate]:
        """Return the statistic of each group, from noisy integers."""
        assert self.moments is not None
        moments, statistic = self.moments
        return moments.estimates(values, accuracy, statistic)

    def frame(self, library: Any, values: Any, accuracy: float) -> Any:
        """Return the frame of a noisy answer.

        :param library: the module, from :func:`library_of`
        :param values: the integers; one integer, if there are no keys
        :param accuracy: of each integer
        """
        columns: dict[str, tuple[type, list[Any]]] = {
            name: (kind, [key[place] for key in self.keys])
            for place, (name, kind) in enumerate(self.columns)
        }
        if self.moments is None:
            integers = values if self.columns else [values]
            unit = 1 if self.quantum is None else self.quantum
            kind = int if self.quantum is None else float
            columns[VALUE] = kind, [unit * one for one in integers]
            columns[ACCURACY] = float, [unit * accuracy] * len(integers)
        else:
            found = self.estimates(values, accuracy)
            for name in (VALUE, LOWER, UPPER):
                columns[name] = float, [getattr(one, name) for one in found]
        if library.__name__ == "pandas":
            return library.DataFrame({name: column for name, (_, column) in columns.items()})
        types = {
            int: library.Int64,
            float: library.Float64,
            str: library.String,
            bool: library.Boolean,
            date: library.Date,
            datetime: library.Datetime("us"),
        }
        schema = {name: types[kind] for name, (kind, _) in columns.items()}
        return library.DataFrame({name: column for name, (_, column) in columns.items()}, schema)

    def check(self) -> None:
        """Raise if a key has the name of a column that the frame adds."""
        for name, _ in self.columns:
            if name in (VALUE, ACCURACY, LOWER, UPPER):
                raise InvalidValueError(
                    f"by ({name!r}) must not be the name of a column that the frame adds; release "
                    "without frame, or rename the column in the engine"
                )


def library_of(**argument: Any) -> Any:
    """Return the module that makes frames, or raise.

    :raises ImportError: if it is not installed
    """
    ((place, name),) = argument.items()
    if type(name) is not str or name not in LIBRARIES:
        raise InvalidValueError(f"{place} ({shown(name)}) must be 'polars' or 'pandas'")
    return import_module(name)
