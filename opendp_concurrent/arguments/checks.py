"""Guards. The keyword is the argument's name, and so the first word of the message.

Each guard is written in the positive form, so that NaN fails it. The class of a value is read with
``type``, because ``__class__`` may claim another. A guard returns a value of Python's own, read
once, so that nobody can change it after the check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from inspect import signature
from itertools import islice
from math import inf
from typing import Any, TypeVar, cast

from ..errors import InvalidTypeError, InvalidValueError
from ..shown import is_a as is_a
from ..shown import rounded as rounded
from ..shown import shown as shown

Guard = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])
MOST_ELEMENTS = 10**6


def checked(**guards: Guard) -> Callable[[F], F]:
    """Let a function see its arguments only after these guards, in their order.

    A guard takes an argument by its name and returns the value that the function sees.
    """

    def decorate(function: F) -> F:
        parameters = signature(function)

        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            bound = parameters.bind(*args, **kwargs)
            for name, guard in guards.items():
                if name in bound.arguments:
                    bound.arguments[name] = guard(**{name: bound.arguments[name]})
            return function(*bound.args, **bound.kwargs)

        vars(guarded)["__signature__"] = parameters  # where OpenDP reads it
        return cast(F, guarded)

    return decorate


def optional(guard: Guard) -> Guard:
    """Return a guard that lets None through."""

    def check(**argument: Any) -> Any:
        ((_, value),) = argument.items()
        return None if value is None else guard(**argument)

    return check


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise InvalidValueError(f"{name} ({shown(value)}) must {rule}")


def number(**argument: Any) -> float:
    """Return the argument as a double that equals it, or raise."""
    ((name, value),) = argument.items()
    if is_a(value, float):
        return float.__float__(value)
    if is_a(value, bool) or not is_a(value, int):
        raise InvalidTypeError(
            f"{name} must be a number, found {type(value).__name__}; pass a float"
        )
    whole = int.__int__(value)
    try:
        double = float(whole)
    except OverflowError:
        raise InvalidValueError(
            f"{name} must be in the range of doubles, at most about 1.8e308"
        ) from None
    if double != whole:
        raise InvalidValueError(
            f"{name} ({whole}) cannot be represented exactly as a double; pass a float"
        )
    return double


def non_negative(**argument: Any) -> float:
    """Return the argument as a double in [0, inf], or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    _require(0.0 <= double, name, value, "be at least 0; pass a number in [0, inf]")
    return double + 0.0  # -0.0 becomes 0.0


def finite(**argument: Any) -> float:
    """Return the argument as a double in [0, inf), or raise."""
    ((name, value),) = argument.items()
    double = non_negative(**argument)
    _require(double < inf, name, value, "be finite; pass a number in [0, inf)")
    return double


def positive(**argument: Any) -> float:
    """Return the argument as a double in (0, inf), or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    _require(0.0 < double < inf, name, value, "be finite and above 0; pass a number in (0, inf)")
    return double


def probability(**argument: Any) -> float:
    """Return the argument as a double in [0, 1], or raise."""
    ((name, value),) = argument.items()
    double = non_negative(**argument)
    _require(double <= 1.0, name, value, "be at most 1; it bounds a probability")
    return double


def real(**argument: Any) -> float:
    """Return the argument as a double that is not NaN, or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    _require(double == double, name, value, "not be NaN")
    return double


def order(**argument: Any) -> float:
    """Return the argument as a Rényi order, finite and above 1, or raise."""
    ((name, value),) = argument.items()
    double = number(**argument)
    rule = "be finite and above 1: it is an order of Rényi divergence"
    _require(1.0 < double < inf, name, value, rule)
    return double


def orders(**argument: Any) -> tuple[float, ...]:
    """Return Rényi orders as an increasing tuple of finite doubles above 1, or raise."""
    ((name, _),) = argument.items()
    values = sequence("numbers above 1", **argument)
    return tuple(sorted({order(**{name: value}) for value in values}))


def pair(**argument: Any) -> tuple[Any, Any]:
    """Return the argument, a tuple of two, or raise; the two elements are not checked."""
    ((name, value),) = argument.items()
    parts = list(tuple.__iter__(value)) if is_a(value, tuple) else []
    if len(parts) != 2:
        raise InvalidTypeError(f"{name} must be a pair of numbers, found {shown(value)}")
    return parts[0], parts[1]


def epsilon_delta(**argument: Any) -> tuple[float, float]:
    """Return the argument as a pair (ε, δ), ε in [0, inf] and δ in [0, 1], or raise."""
    ((name, _),) = argument.items()
    epsilon, delta = pair(**argument)
    return non_negative(**{f"{name}[0]": epsilon}), probability(**{f"{name}[1]": delta})


def weights(**argument: Any) -> list[Fraction]:
    """Return nonnegative finite weights with a positive sum, exactly, or raise."""
    ((name, _),) = argument.items()
    values = sequence("weights", **argument)
    parts = [Fraction(finite(**{name: value})) for value in values]
    if not sum(parts) > 0:
        raise InvalidValueError(f"{name} must have a positive sum")
    return parts


def integer(**argument: Any) -> int:
    """Return the argument, an integer but not True or False, or raise."""
    ((name, value),) = argument.items()
    if is_a(value, bool) or not is_a(value, int):
        raise InvalidTypeError(f"{name} must be an integer, found {type(value).__name__}")
    return int.__int__(value)


def whole(**argument: Any) -> int:
    """Return the argument as an integer of at least 0, or raise."""
    ((name, value),) = argument.items()
    number = integer(**argument)
    _require(number >= 0, name, value, "be at least 0")
    return number


def count(**argument: Any) -> int:
    """Return the argument as an integer of at least 1, or raise."""
    ((name, value),) = argument.items()
    number = integer(**argument)
    _require(number >= 1, name, value, "be at least 1")
    return number


def at_most(most: int, reason: str, guard: Guard = count) -> Guard:
    """Return a guard of integers that are at most ``most``; the message gives the ``reason``."""

    def check(**argument: Any) -> int:
        ((name, _),) = argument.items()
        value: int = guard(**argument)
        _require(value <= most, name, value, f"be at most {most}: {reason}")
        return value

    return check


def read(of: str, **argument: Any) -> tuple[Any, ...]:
    """Return the elements of an iterable, read once, or raise.

    :param of: what its elements are, for the message
    """
    ((name, values),) = argument.items()
    try:
        found = tuple(islice(iter(values), MOST_ELEMENTS + 1))
    except Exception as error:
        raise InvalidTypeError(
            f"{name} must be {of} that can be read, found {type(values).__name__}: "
            f"{type(error).__name__}"
        ) from error
    if not len(found) <= MOST_ELEMENTS:
        raise InvalidValueError(
            f"{name} must have at most {MOST_ELEMENTS:,} elements, because each is checked"
        )
    return found


def _is_sequence(values: object) -> bool:
    return is_a(values, Sequence) and not is_a(values, str, bytes, bytearray, memoryview)


def elements(of: str, **argument: Any) -> tuple[Any, ...]:
    """Return the elements of a sequence other than a text, read once, or raise.

    :param of: what its elements are, for the message
    """
    ((name, values),) = argument.items()
    if not _is_sequence(values):
        raise InvalidTypeError(
            f"{name} must be a sequence of {of}, found {type(values).__name__}; pass a list"
        )
    return read(of, **argument)


def sequence(of: str, **argument: Any) -> tuple[Any, ...]:
    """Return the elements of a nonempty sequence other than a text, read once, or raise.

    :param of: what its elements are, for the message
    """
    ((name, values),) = argument.items()
    found = read(of, **argument) if _is_sequence(values) else ()
    if not found:
        raise InvalidTypeError(f"{name} must be a nonempty sequence of {of}")
    return found


def mapping(of: str, **argument: Any) -> dict[Any, Any]:
    """Return the argument, a mapping, as a new dictionary, or raise.

    :param of: what it maps from and to, for the message
    """
    ((name, values),) = argument.items()
    if not is_a(values, Mapping):
        raise InvalidTypeError(
            f"{name} must be a mapping from {of}, found {type(values).__name__}; pass a dict"
        )
    try:
        return {key: values[key] for key in read(of, **{name: values})}
    except (KeyError, TypeError) as error:
        raise InvalidTypeError(f"{name} must be a mapping from {of} that can be read") from error


def flag(**argument: Any) -> bool:
    """Return the argument if it is True or False, or raise."""
    ((name, value),) = argument.items()
    if value is True or value is False:
        return bool(value)
    raise InvalidTypeError(f"{name} must be True or False, found {shown(value)}")


def text(**argument: Any) -> str:
    """Return the argument as Python's own string, or raise."""
    ((name, value),) = argument.items()
    if not is_a(value, str):
        raise InvalidTypeError(f"{name} must be a string, found {type(value).__name__}")
    plain = str.__str__(value)
    if not plain.isascii():
        try:
            plain.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"{name} must be text that UTF-8 can encode") from error
    return plain


def one_of(*known: str) -> Guard:
    """Return a guard of strings that are among ``known``."""

    def check(**argument: Any) -> str:
        ((name, value),) = argument.items()
        is_known = is_a(value, str) and str.__str__(value) in known
        _require(is_known, name, value, f"be one of {', '.join(map(repr, known))}")
        return str.__str__(value)

    return check


def function(**argument: Any) -> Callable[..., Any]:
    """Return the argument if it can be called, or raise."""
    ((name, value),) = argument.items()
    if not callable(value):
        raise InvalidTypeError(f"{name} must be callable, found {type(value).__name__}")
    if type(value).__module__ == "opendp.mod" and "Queryable" in type(value).__name__:
        raise InvalidTypeError(
            f"{name} must be a function, found a queryable of OpenDP: a query of an unknown type "
            "would end the process; wrap the queryable in a function"
        )
    return cast("Callable[..., Any]", value)


def hashable(**argument: Any) -> Any:
    """Return the argument if it can be hashed, or raise."""
    ((name, value),) = argument.items()
    try:
        hash(value)
    except Exception as error:
        raise InvalidTypeError(f"{name} must be hashable, found {type(value).__name__}") from error
    return value


def instance(*kinds: type) -> Guard:
    """Return a guard of values of these classes, whatever ``__class__`` claims."""
    names = " or ".join(kind.__name__ for kind in kinds)

    def check(**argument: Any) -> Any:
        ((name, value),) = argument.items()
        if not is_a(value, *kinds):
            raise InvalidTypeError(f"{name} must be a {names}, found {type(value).__name__}")
        return value

    return check


def with_method(method: str, described: str) -> Guard:
    """Return a guard of values whose class has a method; ``described`` is for the message."""

    def check(**argument: Any) -> Any:
        ((name, value),) = argument.items()
        if not callable(getattr(type(value), method, None)):
            raise InvalidTypeError(f"{name} must {described}, found {type(value).__name__}")
        return value

    return check


def each(of: str, guard: Guard, *, empty: bool = True) -> Guard:
    """Return a guard of sequences whose elements pass another, which are named by their index.

    :param empty: whether a sequence without elements is valid
    """
    read_all = elements if empty else sequence

    def check(**argument: Any) -> list[Any]:
        ((name, _),) = argument.items()
        return [
            guard(**{f"{name}[{index}]": one}) for index, one in enumerate(read_all(of, **argument))
        ]

    return check
