"""How the objects of this package were made: constructors and arguments, for ``dp.serialize``.

``dp.serialize`` writes the constructor and the arguments that it finds in ``__opendp_dict__``. A
constructor with the decorator :func:`recorded` leaves a :class:`Record` there, and enters itself in
``CONSTRUCTORS``: the only names of this package that a message may call.

A record never has Python functions, handles, ledgers or data. An argument that cannot be written
is replaced by its type at once, so a record keeps nothing alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

from ..errors import InvalidTypeError
from ..types import Argument

F = TypeVar("F", bound=Callable[..., Any])
MODULE = "opendp_concurrent"
MOST_NUMBERS = 2**16
_DEEPEST = 100  # of values in values
CONSTRUCTORS: dict[str, Callable[..., Any]] = {}
# how a value is written: the name in a message, and the arguments
VALUES: dict[type, Callable[[Any], tuple[str, Mapping[str, Any]]]] = {}
# for each of OpenDP's functions such as transformation_output_domain: a function from what it has
# returned to what equals this and is not made of another object; None if there is none
PLAINER: dict[str, Callable[[Any], Any]] = {}
_PLAIN = (int, bool, str, type(None))
_LARGEST = 2**63


class Unrecorded(dict[str, Any]):
    """The record of an object that cannot be rebuilt: empty, and it refuses serialisation.

    ``dp.serialize`` takes a record that is merely empty for an object without content.
    """

    def keys(self) -> NoReturn:
        """Raise: only ``dp.serialize`` calls this method."""
        raise _refusal(
            "an object that has no record of how it was made; send the arguments, and call the "
            "constructor in the process that receives them"
        )

    __iter__ = keys


class Record(dict[str, Any]):
    """The record of an object that can be rebuilt. Only ``dp.serialize`` sees its entries."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        super().__init__()
        self._name, left = name, [MOST_NUMBERS]
        self._arguments = dict[str, Any]()
        for key, one in arguments.items():
            plain = type(one) in _PLAIN or type(one) is float
            self._arguments[key] = one if plain else _kept(one, left)

    def __iter__(self) -> Any:
        return iter(self.keys())

    def keys(self) -> Any:
        """Return the keys that ``dp.deserialize`` needs, or raise."""
        return ("__function__", "__module__", "__kwargs__")

    def __getitem__(self, key: str) -> Any:
        if key == "__function__":
            return self._name
        if key == "__module__":
            return MODULE
        return {
            name: written(one, f"{self._name}: its argument {name}")
            for name, one in self._arguments.items()
        }


class Missing(NamedTuple):
    """An argument that cannot be written.

    :ivar what: what it is, without its value
    """

    what: str


class Written:
    """Where ``dp.serialize`` finds the record of a value that has no attribute for it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.__opendp_dict__ = record


def recorded(
    make: F,
    guards: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
    before: Callable[[], object] | None = None,
) -> F:
    """Let a constructor record its name and arguments on what it makes.

    :param guards: of arguments; the constructor sees these only after their guards
    :param before: is called before anything else
    """
    parameters, name = signature(make), make.__name__
    kinds = {one.kind for one in parameters.parameters.values()}
    assert kinds <= {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}, name

    @wraps(make)
    def making(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{make.__qualname__}() {error}") from None
        given, seen = bound.arguments, dict(bound.arguments)
        for argument, guard in guards.items():
            if argument in given:
                seen[argument] = guard(**{argument: given[argument]})
        made = make(**seen)
        made.__opendp_dict__ = Record(name, given)
        return made

    vars(making)["__signature__"] = parameters  # where OpenDP reads it
    assert name not in CONSTRUCTORS, name
    CONSTRUCTORS[name] = making
    return cast(F, making)


def _kept(value: Argument, left: list[int], depth: int = 0) -> Any:
    """Return a copy of an argument that nobody else can change; ``left`` counts numbers."""
    kind = type(value)
    if kind in _PLAIN or kind is float:
        left[0] -= 1
        return value
    if depth > _DEEPEST:
        return Missing("is nested too deeply")
    if left[0] < 0:
        return Missing(f"has more than {MOST_NUMBERS} numbers")
    if kind is list or kind is tuple:
        return kind(_kept(one, left, depth + 1) for one in value)
    if kind is dict and value and all(type(one) is type for one in value.values()):
        kinds = {key: one.__name__ for key, one in value.items()}
        return Written(Record("columns", {"kinds": kinds}))
    if kind is dict:
        items = tuple((_kept(key, left), _kept(one, left, depth + 1)) for key, one in value.items())
        if value and all("__opendp_dict__" in _attributes(one) for one in value.values()):
            return Written(Record("by_part", {"measurements": items}))
        return Written(Record("mapping", {"items": items}))
    if kind in VALUES:
        return Written(Record(*VALUES[kind](value)))
    if kind is np.ndarray and value.dtype.kind in "biuf" and value.size <= left[0]:
        left[0] -= value.size
        return Written(Record("array", {"values": value.tolist(), "dtype": value.dtype.name}))
    if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in "biuf":
        return value.item()
    package = kind.__module__.partition(".")[0]
    if package in ("opendp", MODULE) and ("__opendp_dict__" in _attributes(value)):
        _keep_lists(value)
        return value
    return Missing(f"is a {kind.__name__}")


def _keep_lists(value: object) -> None:
    """Copy the lists in OpenDP's records of an object, which are those that the caller passed."""
    seen, waiting = set[int](), [value]
    while waiting:
        record = _attributes(waiting.pop()).get("__opendp_dict__")
        if type(record) is dict and id(record) not in seen:
            seen.add(id(record))
            given = record.get("__kwargs__", {})
            given |= {name: [*one] for name, one in given.items() if type(one) is list}
            waiting += given.values()


def _attributes(value: object) -> dict[str, Any]:
    try:
        found: dict[str, Any] = vars(value)
    except TypeError:
        return {}
    return found


def written(value: Argument, what: str, depth: int = 0) -> Any:
    """Return a value as ``dp.serialize`` takes it, or raise saying what cannot be written."""
    if depth > _DEEPEST:
        raise _refusal(f"{what} is nested too deeply")
    kind = type(value)
    if kind is Missing:
        raise _refusal(f"{what} {value.what}")
    if kind is float and not isfinite(value):
        raise _refusal(f"{what} is not finite")
    if kind is int and not abs(value) < _LARGEST:
        raise _refusal(f"{what} has more than 63 bits")
    if kind in _PLAIN or kind is float:
        return value
    if kind is list or kind is tuple:
        return kind(written(one, what, depth + 1) for one in value)
    if (kind.__module__, kind.__name__) == ("opendp.typing", "RuntimeType"):
        return str(value)
    found: Any = _attributes(value).get("__opendp_dict__")
    if found is None:
        raise _refusal(f"{what} is a {kind.__name__}")
    if type(found) is dict:  # of OpenDP
        name, arguments = found.get("__function__"), found.get("__kwargs__")
        if not isinstance(name, str) or type(arguments) is not dict:
            raise _refusal(f"{what} has no record of how it was made")
        plainer = PLAINER[name](value) if name in PLAINER else None
        if plainer is not None:
            return written(plainer, what, depth + 1)
        own = {
            key: written(part, f"{what}, {name}: its argument {key}", depth + 1)
            for key, part in arguments.items()
        }
        return Written({**found, "__kwargs__": own})
    return value


def _refusal(what: str) -> InvalidTypeError:
    return InvalidTypeError(f"dp.serialize cannot serialise {what}")
