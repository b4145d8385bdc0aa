"""Guards. The keyword is the argument's name, and so the first word of the message.

Each guard is written in the positive form, so that NaN fails it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isinf
from typing import Any

from .errors import InvalidTypeError, InvalidValueError


def number(**argument: Any) -> float:
    """Return the argument as a double that equals it, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidTypeError(
            f"{name} must be a number, found {type(value).__name__}; pass a float"
        )
    try:
        double = float(value)
    except OverflowError:
        raise InvalidValueError(f"{name} must be within the doubles, about 1.8e308") from None
    if double != value and double == double:
        raise InvalidValueError(f"{name} ({value}) has no exact double; pass a float")
    return double


def non_negative(**argument: Any) -> float:
    """Return the argument as a double in [0, inf], or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    if not 0.0 <= double:
        raise InvalidValueError(f"{name} ({value}) must be at least 0; pass a number in [0, inf]")
    return double + 0.0  # -0.0 becomes 0.0


def finite(**argument: float) -> float:
    """Return a nonnegative double that is not infinite, or raise."""
    ((name, value),) = argument.items()
    if isinf(value):
        raise InvalidValueError(
            f"{name} ({value}) must be finite; use the odometer itself for an unlimited loss"
        )
    return value


def probability(**argument: Any) -> float:
    """Return the argument as a double in [0, 1], or raise."""
    ((name, value),) = argument.items()
    double = non_negative(**argument)
    if not double <= 1.0:
        raise InvalidValueError(f"{name} ({value}) must be at most 1; it bounds a probability")
    return double


def real(**argument: Any) -> float:
    """Return the argument as a double that is not NaN, or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    if double != double:
        raise InvalidValueError(f"{name} ({value}) must be a number")
    return double


def order(**argument: Any) -> float:
    """Return the argument as a Rényi order, finite and above 1, or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    if not 1.0 < double < inf:
        raise InvalidValueError(f"{name} ({value}) must be finite and above 1")
    return double


def weights(**argument: Any) -> list[Fraction]:
    """Return nonnegative finite weights with a positive sum, exactly, or raise."""
    ((name, values),) = argument.items()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise InvalidTypeError(f"{name} must be a sequence of weights")
    parts = [Fraction(finite(**{name: non_negative(**{name: value})})) for value in values]
    if not sum(parts) > 0:
        raise InvalidValueError(f"{name} must have a positive sum")
    return parts


def orders(**argument: Any) -> tuple[float, ...]:
    """Return Rényi orders as an increasing tuple of finite doubles above 1, or raise."""
    ((name, values),) = argument.items()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
        raise InvalidTypeError(f"{name} must be a nonempty sequence of numbers above 1")
    doubles = tuple(sorted({number(**{name: value}) for value in values}))
    if not all(1.0 < order < inf for order in doubles):
        raise InvalidValueError(f"{name} ({values}) must all be finite and above 1")
    return doubles


def count(**argument: Any) -> int:
    """Return the argument as an integer of at least 1, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{name} must be an integer, found {type(value).__name__}")
    if not value >= 1:
        raise InvalidValueError(f"{name} ({value}) must be at least 1")
    return value
