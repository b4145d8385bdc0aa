"""Guards for what trade-off functions are made of: the keyword is the argument's name."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from .. import checks, owned
from ..errors import InvalidTypeError, InvalidValueError
from .bounds import TINY, Array


def numbers(**argument: Any) -> list[float]:
    """Return a nonempty sequence of finite doubles, or raise."""
    ((name, values),) = argument.items()
    if isinstance(values, np.ndarray):
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
    try:
        points: Array = owned.array("" if value is None else value, float)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"{name} must be a number or an array of numbers") from None
    if np.any(np.isnan(points)):
        raise InvalidValueError(f"{name} must not be NaN")
    return points


def check_kept(name: str, masses: Iterable[float]) -> None:
    """Raise unless all masses are 0 or as large as doubles need them."""
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
    check_kept(name, masses)
    if not abs(sum(masses) - 1.0) <= 1e-9:
        raise InvalidValueError(f"{name} must add up to 1, found {sum(masses)}")
    return masses
