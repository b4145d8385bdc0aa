"""Annotations that carry guards, and the decorator that reads them.

``scale: Finite`` is a float that the guard :data:`.finite` has checked, if the function has the
decorator :func:`checked`. So a signature is the only list of what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature, unwrap
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, overload

from . import checks
from .checks import Guard, optional

F = TypeVar("F", bound=Callable[..., Any])
BY_CLASS: dict[Any, Guard[Any]] = {bool: checks.flag}

Count = Annotated[int, checks.count]
Finite = Annotated[float, checks.finite]
Integer = Annotated[int, checks.integer]
NonNegative = Annotated[float, checks.non_negative]
Positive = Annotated[float, checks.positive]
Probability = Annotated[float, checks.probability]
Real = Annotated[float, checks.real]
Text = Annotated[str, checks.text]
Whole = Annotated[int, checks.whole]


@overload
def checked(function: F, /) -> F: ...
@overload
def checked(**given: Callable[..., Any]) -> Callable[[F], F]: ...
def checked(function: Any = None, /, **given: Callable[..., Any]) -> Any:
    """Let a function see its arguments only after their guards, in the order of its parameters.

    The guard of an argument is what its annotation carries; OpenDP's objects and flags have the
    guards in ``BY_CLASS``. A guard that no annotation can carry is given by the argument's name.
    """
    if function is None:
        return lambda function: _checked(function, given)
    return _checked(function, given)


def guards_of(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Return the guards of a function with the decorator :func:`checked`, by argument."""
    found: dict[str, Callable[..., Any]] = getattr(function, "__guards__", {})
    return found


def find_guards(
    function: Callable[..., Any], given: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return the guards that annotations carry or that are given, by argument."""
    found = {
        name: given.get(name) or of_annotation(_read(one, function))
        for name, one in signature(function).parameters.items()
    }
    guards = {name: one for name, one in found.items() if one is not None}
    assert given.keys() <= guards.keys(), function.__qualname__
    return guards


def _checked(function: F, given: Mapping[str, Callable[..., Any]]) -> F:
    parameters, guards = signature(function), find_guards(function, given)

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}() {error}") from None
        for name in filter(bound.arguments.__contains__, guards):
            bound.arguments[name] = guards[name](**{name: bound.arguments[name]})
        return function(*bound.args, **bound.kwargs)

    vars(guarded)["__signature__"] = parameters  # where OpenDP reads it
    vars(guarded)["__guards__"] = guards
    return cast(F, guarded)


def _read(parameter: Parameter, function: Callable[..., Any]) -> Any:
    text = parameter.annotation
    return eval(text, unwrap(function).__globals__) if isinstance(text, str) else text


def of_annotation(annotation: Any) -> Callable[..., Any] | None:
    """Return the guard that an annotation carries; None if it carries none."""
    kind = get_origin(annotation)
    if kind is Annotated:
        return next(filter(callable, annotation.__metadata__), None)
    if kind in (Union, UnionType):
        parts = [one for one in get_args(annotation) if one is not NoneType]
        inner = of_annotation(parts[0]) if len(parts) == 1 else None
        return None if inner is None else optional(inner)
    if getattr(annotation, "__module__", None) == "opendp.mod":
        return BY_CLASS[annotation]  # an error, if the guards of OpenDP's objects are not there
    return BY_CLASS.get(annotation) if annotation is bool else None
