"""Noisy integers of a table as data frames: keys, value and accuracy.

All of this is postprocessing. The library of the frame is imported only if a frame is asked for,
and before the launch, so that a missing library costs nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import ceil
from typing import Any, TypeAlias

from .._opendp import dp
from ..errors import InvalidTypeError, InvalidValueError, shown
from ..queryables import Accuracy, known_accuracy, of_one
from ..tables import Decimal, Estimate, Type, in_unit

LIBRARIES = ("polars", "pandas")
VALUE, ACCURACY, LOWER, UPPER = "value", "accuracy", "lower", "upper"
LISTED = 10_000.0  # OpenDP adds up the outcomes of discrete Gaussian noise one by one


def discrete_laplace_accuracy(scale: float, alpha: float) -> float:
    """Return what discrete Laplace noise is at most, with probability 1 - alpha."""
    # OpenDP returns -inf for tiny scales
    return max(0.0, float(dp.discrete_laplacian_scale_to_accuracy(scale, alpha)))


def discrete_gaussian_accuracy(scale: float, alpha: float) -> float:
    """Return what discrete Gaussian noise is at most, with probability 1 - alpha.

    The noise exceeds m with at most the probability that a Gaussian exceeds m - 1.
    """
    if scale <= LISTED:
        return float(dp.discrete_gaussian_scale_to_accuracy(scale, alpha))
    return float(dp.gaussian_scale_to_accuracy(scale, alpha)) + 1.0


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
        schema = {
            name: library.Decimal(38, kind.scale) if isinstance(kind, Decimal) else kind
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


# What a query would release: its noise, and the accuracy of its answers.

Quantile = Callable[[float, float], float]
LAPLACE = "Laplace", dp.laplacian_scale_to_accuracy, dp.discrete_laplacian_scale_to_accuracy
NATIVE: dict[str, tuple[str, Quantile, Quantile]] = {
    "make_laplace": LAPLACE,
    "make_geometric": LAPLACE,
    "make_gaussian": ("Gaussian", dp.gaussian_scale_to_accuracy, discrete_gaussian_accuracy),
}
CASTS = "make_pureDP_to_zCDP", "make_zCDP_to_approxDP", "make_fix_delta", "make_approximate"


@dataclass(frozen=True)
class Summary:
    """Noise and accuracy of a query, as OpenDP's queries on frames have them.

    :ivar distribution: of the noise
    :ivar scale: of the noise, in units of the answers; None if there are several
    :ivar accuracy: with probability at least 1 - ``alpha``, all answers are within it; None if no
        ``alpha`` was given
    :ivar alpha: probability of a larger error
    :ivar shares: of a mean, a variance or a deviation: the parts of the answer, and the share of
        the loss that each takes; they are chosen for the least error of a mean
    """

    distribution: str
    scale: float | None
    accuracy: float | None = None
    alpha: float | None = None
    shares: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        scale = "-" if self.scale is None else f"{self.scale:.6g}"
        rows = [("distribution", self.distribution), ("scale", scale)]
        if self.accuracy is not None:
            rows.append(("accuracy", f"{self.accuracy:.6g}"))
            rows.append(("alpha", f"{self.alpha:g}"))
        rows += [(f"share of {name}", f"{share:.2f}") for name, share in self.shares]
        wide = [max(len(one), len(other)) for one, other in rows]
        lines = zip(*rows, strict=True)
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
            for line in lines
        )


def summarize(measurement: dp.Measurement, alpha: float | None, answers: int | None) -> Summary:
    """Return the summary of a measurement, or raise if its noise is not known."""
    found = known_accuracy(measurement) or _native(measurement)
    if found is None:
        raise InvalidTypeError(
            f"the accuracy of {measurement} is not known; summarize queries that end in noise, or "
            "in a mechanism of oc.m"
        )
    error = None if alpha is None else found.at(alpha, answers)
    return Summary(found.noise, found.scale, error, alpha)


def _native(measurement: dp.Measurement) -> Accuracy | None:
    """Return the accuracy of OpenDP's noise, at the end of a chain of transformations."""
    while isinstance(measurement, dp.Measurement):
        made = getattr(measurement, "__opendp_dict__", None) or {}
        name, given = made.get("__function__"), made.get("__kwargs__", {})
        if name == "make_chain_mt" and isinstance(given.get("transformation0"), dp.Transformation):
            measurement = given["measurement1"]
            known = known_accuracy(measurement)
            if known is not None:
                return known
            continue
        if name in CASTS:  # the same function
            measurement = given["measurement"]
            continue
        if name not in NATIVE or given.get("k") is not None:  # a coarse grid
            return None
        return _of_noise(*NATIVE[name], measurement.input_domain, float(given["scale"]))
    return None


def _of_noise(
    noise: str, real: Quantile, whole: Quantile, domain: dp.Domain, scale: float
) -> Accuracy:
    carrier = str(domain.carrier_type)
    many = carrier.startswith("Vec<")
    on_reals = carrier.removeprefix("Vec<").removesuffix(">") in ("f32", "f64")

    def one(failing: float) -> float:
        if scale == 0.0:
            return 0.0
        if on_reals:
            return real(scale, failing)
        return float(ceil(whole(scale, failing)) - 1)  # noise of this size has at most failing

    size: int | None = getattr(domain, "size", None)
    return Accuracy(noise, scale, of_one(one), size if many else 1)
