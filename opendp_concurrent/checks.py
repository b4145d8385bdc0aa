"""Guards. The keyword is the argument's name, and so the first word of the message.

Each guard is written in the positive form, so that NaN fails it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf
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


def finite(**argument: Any) -> float:
    """Return the argument as a double in [0, inf), or raise."""
    ((name, value),) = argument.items()
    double = non_negative(**argument)
    if not double < inf:
        raise InvalidValueError(f"{name} ({value}) must be finite; pass a number in [0, inf)")
    return double


def positive(**argument: Any) -> float:
    """Return the argument as a double in (0, inf), or raise."""
    ((name, value),) = argument.items()
    double = non_negative(**argument)
    if not 0.0 < double < inf:
        raise InvalidValueError(f"{name} ({value}) must be finite and above 0")
    return double


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
    if not double == double:
        raise InvalidValueError(f"{name} ({value}) must not be NaN")
    return double


def order(**argument: Any) -> float:
    """Return the argument as a Rényi order, finite and above 1, or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    if not 1.0 < double < inf:
        raise InvalidValueError(
            f"{name} ({value}) must be finite and above 1: it is an order of Rényi divergence"
        )
    return double


def pair(**argument: Any) -> tuple[Any, Any]:
    """Return the argument, a tuple of two, or raise; what they are is not looked at."""
    ((name, value),) = argument.items()
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidTypeError(f"{name} must be a pair of numbers, found {value!r}")
    return value


def epsilon_delta(**argument: Any) -> tuple[float, float]:
    """Return the argument as a pair (ε, δ), ε in [0, inf] and δ in [0, 1], or raise."""
    ((name, _),) = argument.items()
    epsilon, delta = pair(**argument)
    return non_negative(**{f"{name}[0]": epsilon}), probability(**{f"{name}[1]": delta})


def sequence(of: str, **argument: Any) -> Sequence[Any]:
    """Return the argument, a sequence that is not empty and no text, or raise.

    :param of: what its elements are, for the message
    """
    ((name, values),) = argument.items()
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
        raise InvalidTypeError(f"{name} must be a nonempty sequence of {of}")
    return values


def weights(**argument: Any) -> list[Fraction]:
    """Return nonnegative finite weights with a positive sum, exactly, or raise."""
    ((name, _),) = argument.items()
    values = sequence("weights", **argument)
    parts = [Fraction(finite(**{name: value})) for value in values]
    if not sum(parts) > 0:
        raise InvalidValueError(f"{name} must have a positive sum")
    return parts


def orders(**argument: Any) -> tuple[float, ...]:
    """Return Rényi orders as an increasing tuple of finite doubles above 1, or raise."""
    ((name, _),) = argument.items()
    values = sequence("numbers above 1", **argument)
    return tuple(sorted({order(**{name: value}) for value in values}))


def integer(**argument: Any) -> int:
    """Return the argument, an integer and no truth value, or raise."""
    ((name, value),) = argument.items()
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{name} must be an integer, found {type(value).__name__}")
    return value


def whole(**argument: Any) -> int:
    """Return the argument as an integer of at least 0, or raise."""
    return _at_least(0, **argument)


def count(**argument: Any) -> int:
    """Return the argument as an integer of at least 1, or raise."""
    return _at_least(1, **argument)


def _at_least(least: int, **argument: Any) -> int:
    ((name, _),) = argument.items()
    value = integer(**argument)
    if not value >= least:
        raise InvalidValueError(f"{name} ({value}) must be at least {least}")
    return value
