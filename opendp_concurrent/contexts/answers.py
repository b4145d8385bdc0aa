"""Noisy integers of a table as data frames: keys, value and accuracy.

All of this is postprocessing. The library of the frame is imported only if a frame is asked for,
and before the launch, so that a missing library costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from importlib import import_module
from typing import Any, TypeAlias

from opendp.accuracy import (
    discrete_gaussian_scale_to_accuracy,
    discrete_laplacian_scale_to_accuracy,
    gaussian_scale_to_accuracy,
)

from ..arguments.checks import shown
from ..errors import InvalidValueError
from ..tables.moments import Estimate
from ..tables.schema import Decimal, Type, in_unit

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
class Noise:
    """The noise in the integers of an answer.

    :ivar name: of its constructor
    :ivar scale: of the noise
    :ivar alpha: probability, for each answer, that its noise is above its accuracy
    """

    name: str
    scale: float
    alpha: float

    def accuracy(self, integers: int = 1) -> float:
        """Return what the noise in each of so many integers is at most."""
        return ACCURACIES[self.name](self.scale, self.alpha / integers)


Read: TypeAlias = Callable[[Any, Noise], dict[str, list[Estimate]]]


@dataclass(frozen=True, slots=True)
class Labels:
    """What the integers of an answer are about: public keys, and the unit of the integers.

    :ivar columns: names and types of the keys
    :ivar keys: one for each integer, with a value for each column
    :ivar value: type of the answers
    :ivar unit: what an integer counts, in the unit of the column: a quantum, the last digit of a
        decimal, or 1
    :ivar read: how integers and their noise are read as statistics, by name; the name is empty if
        there is only one. None for plain integers
    :ivar shares: names of the parts of a statistic, and the share of the loss that each takes
    """

    columns: tuple[tuple[str, Type], ...] = ()
    keys: Sequence[tuple[Any, ...]] = ((),)
    value: Type = int
    unit: Fraction = Fraction(1)
    read: Read | None = None
    shares: tuple[tuple[str, float], ...] = ()

    def number(self, steps: int) -> Any:
        """Return an integer of the answer as a number in the unit of the column."""
        return float(steps * self.unit) if self.value is float else in_unit(self.value, steps)

    def numbers(self, values: Any) -> Any:
        """Return an answer in the unit of the column: a number, or a list of them by key."""
        return list(map(self.number, values)) if self.columns else self.number(values)

    def frame(self, library: Any, values: Any, noise: Noise | None) -> Any:
        """Return the frame of a noisy answer.

        :param library: the module, from :func:`library_of`
        :param values: the integers; one integer, if there are no keys
        :param noise: in each integer; None for keys only
        """
        columns: dict[str, tuple[Type, list[Any]]] = {
            name: (kind, [key[place] for key in self.keys])
            for place, (name, kind) in enumerate(self.columns)
        }
        if noise is not None and self.read is not None:
            for name, found in self.read(values, noise).items():
                for end in (VALUE, LOWER, UPPER):
                    numbers = [getattr(one, end) for one in found]
                    columns[_column(name, end)] = float, numbers
        elif noise is not None:
            integers = values if self.columns else [values]
            columns[VALUE] = self.value, list(map(self.number, integers))
            columns[ACCURACY] = float, [float(self.unit) * noise.accuracy()] * len(integers)
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
        schema = {
            name: library.Decimal(38, kind.scale) if isinstance(kind, Decimal) else types[kind]
            for name, (kind, _) in columns.items()
        }
        return library.DataFrame({name: column for name, (_, column) in columns.items()}, schema)

    def check(self, names: Sequence[str] = ("",)) -> None:
        """Raise if a key has the name of a column that the frame adds.

        :param names: of the statistics
        """
        added = {_column(name, end) for name in names for end in (VALUE, ACCURACY, LOWER, UPPER)}
        for name, _ in self.columns:
            if name in added:
                raise InvalidValueError(
                    f"by ({name!r}) must not be the name of a column that the frame adds; release "
                    "without frame, or rename the column in the engine"
                )


def _column(name: str, end: str) -> str:
    return end if not name else name if end == VALUE else f"{name}_{end}"


def library_of(**argument: Any) -> Any:
    """Return the module that makes frames, or raise.

    :raises ImportError: if it is not installed
    """
    ((place, name),) = argument.items()
    if type(name) is not str or name not in LIBRARIES:
        raise InvalidValueError(f"{place} ({shown(name)}) must be 'polars' or 'pandas'")
    return import_module(name)
