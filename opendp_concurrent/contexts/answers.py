"""Noisy integers of a table as data frames: keys, value and accuracy.

All of this is postprocessing. The library of the frame is imported only if a frame is asked for,
and before the launch, so that a missing library costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import Any

from opendp.accuracy import (
    discrete_gaussian_scale_to_accuracy,
    discrete_laplacian_scale_to_accuracy,
)

from ..arguments.checks import shown
from ..errors import InvalidValueError

LIBRARIES = ("polars", "pandas")
VALUE, ACCURACY = "value", "accuracy"
ACCURACIES: dict[str, Callable[[float, float], float]] = {
    "laplace": discrete_laplacian_scale_to_accuracy,
    "certified_laplace": discrete_laplacian_scale_to_accuracy,
    "gaussian": discrete_gaussian_scale_to_accuracy,
    "certified_gaussian": discrete_gaussian_scale_to_accuracy,
}


@dataclass(frozen=True, slots=True)
class Labels:
    """What the integers of an answer are about: public keys, and the unit of the integers.

    :ivar columns: names and types of the keys
    :ivar keys: one for each integer, with a value for each column
    :ivar quantum: what an integer counts; None for rows, units and integer sums
    """

    columns: tuple[tuple[str, type], ...] = ()
    keys: Sequence[tuple[Any, ...]] = ((),)
    quantum: float | None = None

    def frame(self, library: Any, values: Any, accuracy: float) -> Any:
        """Return the frame of a noisy answer.

        :param library: the module, from :func:`library_of`
        :param values: the integers; one integer, if there are no keys
        :param accuracy: of each integer
        """
        integers = values if self.columns else [values]
        columns: dict[str, tuple[type, list[Any]]] = {
            name: (kind, [key[place] for key in self.keys])
            for place, (name, kind) in enumerate(self.columns)
        }
        unit = 1 if self.quantum is None else self.quantum
        columns[VALUE] = (int if self.quantum is None else float, [unit * one for one in integers])
        columns[ACCURACY] = (float, [unit * accuracy] * len(integers))
        if library.__name__ == "pandas":
            return library.DataFrame({name: column for name, (_, column) in columns.items()})
        types = {
            int: library.Int64,
            float: library.Float64,
            str: library.String,
            bool: library.Boolean,
            date: library.Date,
        }
        schema = {name: types[kind] for name, (kind, _) in columns.items()}
        return library.DataFrame({name: column for name, (_, column) in columns.items()}, schema)

    def check(self) -> None:
        """Raise if a key has the name of a column that the frame adds."""
        for name, _ in self.columns:
            if name in (VALUE, ACCURACY):
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
