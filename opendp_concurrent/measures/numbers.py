"""Distances that are one number or a pair of numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .. import checks
from ..exact.rounding import split, sqrt_down, to_units


def validate_number(name: str, value: Any) -> float:
    """A double in [0, inf]."""
    return checks.non_negative(**{name: value})


def validate_finite_number(name: str, value: Any) -> float:
    """A double in [0, inf)."""
    return checks.finite(**{name: value})


def number_at_most(left: float, right: float) -> bool:
    """The usual order."""
    return left <= right


def validate_pair(name: str, value: Any) -> tuple[float, float]:
    """Two doubles in [0, inf]; a second component above 1 promises nothing, but is a bound."""
    first, second = checks.pair(**{name: value})
    return (
        checks.non_negative(**{f"{name}[0]": first}),
        checks.non_negative(**{f"{name}[1]": second}),
    )


def validate_finite_pair(name: str, value: Any) -> tuple[float, float]:
    """A double in [0, inf) and a probability."""
    first, second = checks.pair(**{name: value})
    return (
        validate_finite_number(f"{name}[0]", first),
        checks.probability(**{f"{name}[1]": second}),
    )


def pair_at_most(left: tuple[float, float], right: tuple[float, float]) -> bool:
    """The product order; pairs may be incomparable."""
    return left[0] <= right[0] and left[1] <= right[1]


def split_number(d_out: float, weights: list[Fraction]) -> list[Any]:
    """Shares that add up to at most ``d_out``."""
    return list(split(d_out, weights))


def split_pair(d_out: tuple[float, float], weights: list[Fraction]) -> list[Any]:
    """Shares that add up to at most ``d_out``, component by component."""
    return list(zip(*(split(part, weights) for part in d_out), strict=True))


def split_squares(d_out: float, weights: list[Fraction]) -> list[Any]:
    """Shares whose squares add up to at most that of ``d_out``."""
    square, whole = to_units(d_out) ** 2, sum(weights)
    return [sqrt_down(int(square * weight / whole)) for weight in weights]
