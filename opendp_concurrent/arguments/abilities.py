"""Guards of objects, by what they can do, or by their class."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidTypeError
from ..types import Argument
from .checks import Guard, guard


@guard("hashable", [], {}, ([],))
def hashable(name: str, value: Argument) -> Any:
    """Return the argument if it can be hashed, or raise."""
    try:
        hash(value)
    except Exception as error:
        raise InvalidTypeError(f"{name} must be hashable, found {type(value).__name__}") from error
    return value


def with_method(method: str, described: str) -> Guard[Any]:
    """Return a guard of values whose class has a method; ``described`` is for the message."""

    def check(name: str, value: Argument) -> Any:
        if not callable(getattr(type(value), method, None)):
            raise InvalidTypeError(f"{name} must {described}, found {type(value).__name__}")
        return value

    return Guard(check, "nothing hostile", (None, 3, "text"))


def instance(*kinds: type) -> Guard[Any]:
    """Return a guard of values of these classes."""
    names = " or ".join(kind.__name__ for kind in kinds)

    def check(name: str, value: Argument) -> Any:
        if not isinstance(value, kinds):
            raise InvalidTypeError(f"{name} must be a {names}, found {type(value).__name__}")
        return value

    return Guard(check, "nothing hostile", (None, 3, "text"))
