"""Guards for the arguments of trade-off functions: the keyword is the argument's name."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from ..arguments import checks, owned
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Argument
from .bounds import TINY, Array

MOST_POINTS = 10**7
UNITS = ("removed", "added")


def numbers(**argument: Any) -> list[float]:
    """Return a nonempty sequence of finite doubles, or raise."""
    ((name, values),) = argument.items()
    if isinstance(values, np.ndarray) and values.size <= checks.MOST_ELEMENTS:
        values = values.tolist()
    given = checks.sequence("numbers", **{name: values})
    doubles = [checks.real(**{name: value}) for value in given]
    for double in doubles:
        if not abs(double) < inf:
            raise InvalidValueError(f"{name} must be finite, found {double}")
    return doubles


def array(**argument: Any) -> Array:
    """Return the argument as an array without NaN, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, (int, float)):
        return np.array(checks.real(**argument))
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidTypeError(f"{name} must be a number or an array of numbers, none masked")
    if isinstance(value, np.ndarray) and not value.size <= MOST_POINTS:
        raise InvalidValueError(f"{name} must have at most {MOST_POINTS:,} numbers")
    kinds = (np.ndarray, np.number, list, tuple)
    try:
        given = owned.array(value if isinstance(value, kinds) else None)
        points: Array = given.astype(float)
    except Exception:
        given = points = np.array("")
    if given.dtype.kind not in "iuf":
        raise InvalidTypeError(f"{name} must be a number or an array of numbers")
    if np.any(np.isnan(points)):
        raise InvalidValueError(f"{name} must not be NaN")
    if np.any(points != given):
        raise InvalidValueError(f"{name} has numbers without an exact double; pass floats")
    return points


def check_representable(name: str, masses: Iterable[float]) -> None:
    """Raise unless each mass is 0 or large enough for the relative accuracy of doubles."""
    for mass in masses:
        if 0.0 < mass < TINY:
            raise InvalidValueError(
                f"{name} must be 0 or at least {TINY}, where doubles are accurate; found {mass}"
            )


def distribution(**argument: Any) -> list[float]:
    """Return probabilities that add up to 1, or raise."""
    ((name, _),) = argument.items()
    masses = numbers(**argument)
    for mass in masses:
        if not 0.0 <= mass <= 1.0:
            raise InvalidValueError(f"{name} must be probabilities, in [0, 1]; found {mass}")
    check_representable(name, masses)
    if not abs(sum(masses) - 1.0) <= 1e-9:
        raise InvalidValueError(f"{name} must add up to 1, found {sum(masses)}")
    return masses


def direction(*, unit: Argument) -> str:
    """Return a direction of neighbours, or raise."""
    if not isinstance(unit, str) or unit not in UNITS:
        raise InvalidValueError(
            f"unit ({checks.shown(unit)}) must be 'removed' or 'added'; for both, use "
            "oc.fdp.Session"
        )
    return str(unit)
