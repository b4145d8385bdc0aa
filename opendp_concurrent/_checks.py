"""Guards: what is checked of an argument. The keyword of a call is the argument's name.

A :class:`Guard` checks a value, has the words of the message, and knows values that it must refuse.
Annotations carry guards, and the decorator :func:`checked` reads them.

Each guard is written in the positive form, so that NaN fails it. A guard returns a value of
Python's own, read once, so that a later change of the argument has no effect.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import wraps
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, signature, unwrap
from itertools import islice
from math import inf, isfinite, nan
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from .errors import Argument, InvalidTypeError, InvalidValueError, Key, shown

T = TypeVar("T")
MOST_ELEMENTS = 10**6
MOST_BITS = 2**13


@dataclass(frozen=True, eq=False, slots=True)
class Guard(Generic[T]):
    """The description of an argument.

    :ivar check: takes the argument's name and value; returns what the function sees, or raises
    :ivar kind: what a valid value is, in a word
    :ivar refused: values just outside of what is valid, which must be refused
    """

    check: Callable[[str, Any], T]
    kind: str
    refused: tuple[Any, ...] = ()

    def __call__(self, **argument: Any) -> T:
        """Return what the function sees, or raise naming the argument."""
        ((name, value),) = argument.items()
        return self.check(name, value)

    def narrowed(
        self, holds: Callable[[T], bool], rule: str, *refused: Any, kind: str = ""
    ) -> Guard[T]:
        """Return a guard of fewer values.

        :param holds: whether a value that this guard returns is valid, in the positive form
        :param rule: what the message says after 'must'
        """

        def check(name: str, value: Argument) -> T:
            found = self.check(name, value)
            if not holds(found):
                raise InvalidValueError(f"{name} ({shown(value)}) must {rule}")
            return found

        return Guard(check, kind or self.kind, (*self.refused, *refused))


def guard(kind: str, *refused: Any) -> Callable[[Callable[[str, Any], T]], Guard[T]]:
    """Make a guard of a function from a name and a value to what is seen, which raises."""
    return lambda check: Guard(check, kind, refused)


def optional(inner: Callable[..., Any]) -> Guard[Any]:
    """Return a guard that lets None through."""

    def check(name: str, value: Argument) -> Any:
        return None if value is None else inner(**{name: value})

    return Guard(check, f"None or {kind_of(inner)}", refused_by(inner))


def kind_of(inner: Callable[..., Any]) -> str:
    """Return what a guard takes, in a word; its name for one that does not say it."""
    return inner.kind if isinstance(inner, Guard) else getattr(inner, "__name__", "value")


def refused_by(inner: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the values that a guard says it refuses."""
    return inner.refused if isinstance(inner, Guard) else ()


# --- numbers -------------------------------------------------------------------------------------


@guard("number", "1", None, True, 1j, 2**53 + 1)
def number(name: str, value: Argument) -> float:
    """Return the argument as a double that equals it, or raise."""
    if isinstance(value, float):
        return float(value)
    value = own_number(value)
    if isinstance(value, float):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(
            f"{name} must be a number, found {type(value).__name__}; pass a float"
        )
    whole = int(value)
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


_at_least_0 = number.narrowed(
    lambda one: 0.0 <= one, "be at least 0; pass a number in [0, inf]", -5e-324, -1, nan
)


@guard("non_negative", *_at_least_0.refused)
def non_negative(name: str, value: Argument) -> float:
    """Return the argument as a double in [0, inf], or raise."""
    return _at_least_0.check(name, value) + 0.0  # -0.0 becomes 0.0


finite = non_negative.narrowed(
    lambda one: one < inf, "be finite; pass a number in [0, inf)", inf, kind="finite"
)
positive = number.narrowed(
    lambda one: 0.0 < one < inf,
    "be finite and above 0; pass a number in (0, inf)",
    *(0.0, -0.0, -1.0, inf, nan),
    kind="positive",
)
probability = non_negative.narrowed(
    lambda one: one <= 1.0, "be at most 1; it bounds a probability", 1 + 2**-52, kind="probability"
)
real = number.narrowed(lambda one: one == one, "not be NaN", nan, kind="real")
order = number.narrowed(
    lambda one: 1.0 < one < inf,
    "be finite and above 1: it is an order of Rényi divergence",
    *(1.0, 1, -2.0, inf, nan),
    kind="order",
)


@guard("list of order", "12", 2.0, None, [], [1.0], [2.0, nan], [inf])
def orders(name: str, values: Argument) -> tuple[float, ...]:
    """Return Rényi orders as an increasing tuple of finite doubles above 1, or raise."""
    found = sequence("numbers above 1", **{name: values})
    return tuple(sorted({order.check(name, one) for one in found}))


def two(value: Argument) -> tuple[Any, ...]:
    """Return the elements of a tuple of two; nothing for all else."""
    return tuple(value) if isinstance(value, tuple) and len(value) == 2 else ()


@guard("pair", None, 0.5, [0.5, 0.0], (0.5,), (0.5, 0.0, 0.0), "ab")
def pair(name: str, value: Argument) -> tuple[Any, Any]:
    """Return the argument, a tuple of two, or raise; the two elements are not checked."""
    parts = two(value)
    if not parts:
        raise InvalidTypeError(f"{name} must be a pair of numbers, found {shown(value)}")
    return parts[0], parts[1]


@guard("pair", *pair.refused, (-1.0, 0.0), (1.0, nan), (nan, 0.0), (1.0, 1.5))
def epsilon_delta(name: str, value: Argument) -> tuple[float, float]:
    """Return the argument as a pair (ε, δ), ε in [0, inf] and δ in [0, 1], or raise."""
    epsilon, delta = pair.check(name, value)
    return non_negative.check(f"{name}[0]", epsilon), probability.check(f"{name}[1]", delta)


@guard("integer", True, 1.0, "1", None, 2**MOST_BITS)
def integer(name: str, value: Argument) -> int:
    """Return the argument, an integer but not True or False, or raise."""
    value = own_number(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{name} must be an integer, found {type(value).__name__}")
    if value.bit_length() > MOST_BITS:  # Python writes no text of 4300 digits
        raise InvalidValueError(f"{name} must have at most {MOST_BITS} bits")
    return int(value)


whole = integer.narrowed(lambda one: one >= 0, "be at least 0", -1, kind="whole")
count = integer.narrowed(lambda one: one >= 1, "be at least 1", 0, -3, kind="count")


def at_most(most: int, reason: str, inner: Guard[Any] = count) -> Guard[Any]:
    """Return a guard of integers that are at most ``most``; the message gives the ``reason``."""
    return inner.narrowed(lambda one: one <= most, f"be at most {most}: {reason}", most + 1)


# --- sequences, texts, functions -----------------------------------------------------------------


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
            f"{type(error).__name__}; pass a list"
        ) from error
    if not len(found) <= MOST_ELEMENTS:
        raise InvalidValueError(
            f"{name} must have at most {MOST_ELEMENTS:,} elements, because each is checked"
        )
    return found


def _is_sequence(values: Argument) -> bool:
    return isinstance(values, Sequence) and not isinstance(
        values, (str, bytes, bytearray, memoryview)
    )


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
        raise InvalidTypeError(f"{name} must be a nonempty sequence of {of}, such as a list")
    return found


def mapping(of: str, **argument: Any) -> dict[Any, Any]:
    """Return the argument, a mapping, as a new dictionary, or raise.

    :param of: what it maps from and to, for the message
    """
    ((name, values),) = argument.items()
    if not isinstance(values, Mapping):
        raise InvalidTypeError(
            f"{name} must be a mapping from {of}, found {type(values).__name__}; pass a dict"
        )
    try:
        return {key: values[key] for key in read(of, **{name: values})}
    except (KeyError, TypeError) as error:
        raise InvalidTypeError(f"{name} must be a mapping from {of} that can be read") from error


@guard("flag", None, 0, 1, "yes", 1.0)
def flag(name: str, value: Argument) -> bool:
    """Return the argument if it is True or False, or raise."""
    if value is True or value is False:
        return bool(value)
    raise InvalidTypeError(f"{name} must be True or False, found {shown(value)}")


@guard("text", None, 3, b"a", "\ud800")
def text(name: str, value: Argument) -> str:
    """Return the argument as Python's own string, or raise."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be a string, found {type(value).__name__}")
    plain = str.__str__(value)
    if not plain.isascii():
        try:
            plain.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(f"{name} must be text that UTF-8 can encode") from error
    return plain


def is_text(value: str) -> bool:
    """Return whether a string can be shown and written: it has no NUL and no lone surrogate."""
    if "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value)


def one_of(*known: str) -> Guard[str]:
    """Return a guard of strings that are among ``known``."""

    def check(name: str, value: Argument) -> str:
        if not (isinstance(value, str) and str.__str__(value) in known):
            rule = f"be one of {', '.join(map(repr, known))}"
            raise InvalidValueError(f"{name} ({shown(value)}) must {rule}")
        return str.__str__(value)

    return Guard(check, "nothing hostile", (None, 3, "", *(one + " " for one in known)))


@guard("callable", None, 3, "len")
def function(name: str, value: Argument) -> Callable[..., Any]:
    """Return the argument if it can be called, or raise."""
    if not callable(value):
        raise InvalidTypeError(f"{name} must be callable, found {type(value).__name__}")
    if type(value).__module__ == "opendp.mod" and "Queryable" in type(value).__name__:
        raise InvalidTypeError(
            f"{name} must be a function, found a queryable of OpenDP: a query of an unknown type "
            "would end the process; wrap the queryable in a function"
        )
    return cast("Callable[..., Any]", value)


def each(of: str, inner: Callable[..., Any], *, empty: bool = True) -> Guard[list[Any]]:
    """Return a guard of sequences whose elements pass another, which are named by their index.

    :param empty: whether a sequence without elements is valid
    """
    read_all = elements if empty else sequence

    def check(name: str, value: Argument) -> list[Any]:
        found = read_all(of, **{name: value})
        return [inner(**{f"{name}[{index}]": one}) for index, one in enumerate(found)]

    refused = (None, 3, "12", *([one] for one in refused_by(inner)))
    return Guard(check, f"list of {kind_of(inner)}", refused if empty else (*refused, []))


# Guards of objects, by what they can do, or by their class.


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


# Annotations that carry guards, and the decorator that reads them.
#
# ``scale: Finite`` is a float that the guard :data:`.finite` has checked, if the function has the
# decorator :func:`checked`. So a signature is the only list of what is checked.

F = TypeVar("F", bound=Callable[..., Any])
GUARDS: dict[Any, Guard[Any]] = {bool: flag}

Count = Annotated[int, count]
Finite = Annotated[float, finite]
Integer = Annotated[int, integer]
NonNegative = Annotated[float, non_negative]
Positive = Annotated[float, positive]
Probability = Annotated[float, probability]
Real = Annotated[float, real]
Text = Annotated[str, text]
Whole = Annotated[int, whole]


@overload
def checked(function: F, /) -> F: ...
@overload
def checked(**given: Callable[..., Any]) -> Callable[[F], F]: ...
def checked(function: Any = None, /, **given: Callable[..., Any]) -> Any:
    """Let a function see its arguments only after their guards, in the order of its parameters.

    The guard of an argument is what its annotation carries; OpenDP's objects and flags have the
    guards in ``GUARDS``. A guard that no annotation can carry is given by the argument's name.
    """
    if function is None:
        return lambda function: _checked(function, given)
    return _checked(function, given)


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
        return GUARDS[annotation]  # an error, if the guards of OpenDP's objects are not there
    return GUARDS.get(annotation) if annotation is bool else None


# Public keys: what may be looked up, and equals itself.


def check_key(name: str, key: Key) -> None:
    """Raise unless ``key`` can be looked up."""
    try:
        hash(key)
    except Exception:
        raise InvalidTypeError(
            f"{name} has {shown(key)}, which is not hashable ({type(key).__name__}); "
            "pass a string, a number or a tuple of these"
        ) from None
    if _has_nan(key):
        raise InvalidValueError(f"{name} has {shown(key)}, which does not equal itself")


def _has_nan(key: Key) -> bool:
    """Return whether a key, or a part of it, does not equal itself. Tuples hide this."""
    return any(map(_has_nan, key)) if isinstance(key, tuple) else bool(key != key)


# Copies of what a caller passes: first copied, then checked and used.
#
# A check is only valid if the same values are used afterwards. But the caller may change an array
# after the check, and an object of the caller's own class may return other values each time it is
# read. Sequences and mappings are read once, by ``checks.elements``, ``checks.read`` and
# ``checks.mapping``.

_SCALARS = frozenset(np.dtype(code).type for code in "bBhHiIlLqQefdg")  # no times, no truth values


def array(values: Argument, dtype: Any = None) -> NDArray[Any]:
    """Return values as a new NumPy array that shares its memory with no other, or raise.

    :raises TypeError, ValueError: as reading the values does
    """
    try:
        read = np.asarray(values, dtype=dtype)  # NumPy's class; the memory may be the caller's
        return np.array(read, copy=True, subok=False)
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise TypeError(f"cannot be read: {type(error).__name__}") from error


def own_number(value: Argument) -> Any:
    """Return a NumPy number as the number of Python that equals it; any other value as it is."""
    if type(value) not in _SCALARS:
        return value
    own = int(value) if value.dtype.kind in "iu" else float(value)
    return own if own == value or value != value else value  # a long double may lie between two


def plain(value: Argument) -> Argument:
    """Return a number or text of a subclass or of NumPy as Python's own; any other as it is."""
    kind = type(value)
    if kind in (int, float, bool, str):
        return value
    value = own_number(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str.__str__(value) if isinstance(value, str) else value


# How the objects of this package were made: constructors and arguments, for ``dp.serialize``.
#
# ``dp.serialize`` writes the constructor and the arguments that it finds in ``__opendp_dict__``. A
# constructor with the decorator :func:`recorded` leaves a :class:`Record` there, and enters itself
# in ``CONSTRUCTORS``: the only names of this package that a message may call.
#
# A record never has Python functions, handles, ledgers or data. An argument that cannot be written
# is replaced by its type at once, so a record keeps nothing alive.

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

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The constructor's name, and its arguments; those that cannot be written are missing."""
        return self._name, self._arguments

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


def _with_own_lists(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with a copy of each list: the caller may change it later."""
    return {name: [*one] if type(one) is list else one for name, one in given.items()}


class CopiedRecord:
    """An attribute of OpenDP's measurements: how one was made, with its parts of then."""

    def __get__(self, made: Any, kind: type) -> Any:
        if made is None:
            return self
        try:
            return vars(made)["__opendp_dict__"]
        except KeyError:
            raise AttributeError("__opendp_dict__") from None

    def __set__(self, made: object, record: dict[str, Any]) -> None:
        if type(record) is dict and "__kwargs__" in record:
            record = {**record, "__kwargs__": _with_own_lists(record["__kwargs__"])}
        vars(made)["__opendp_dict__"] = record

    def __delete__(self, made: object) -> None:
        del vars(made)["__opendp_dict__"]


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
            given |= _with_own_lists(given)
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
    if kind is int and not -_LARGEST <= value < _LARGEST:
        raise _refusal(f"{what} does not fit 64 bits")
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


# The guard of weights, by which a budget is split.


@guard("list of finite", "12", 2.0, None, [], [0.0], [-1.0, 2.0], [inf], [nan])
def weights(name: str, values: Argument) -> list[Fraction]:
    """Return nonnegative finite weights with a positive sum, exactly, or raise."""
    found = sequence("weights", **{name: values})
    parts = [Fraction(finite.check(name, one)) for one in found]
    if not sum(parts) > 0:
        raise InvalidValueError(f"{name} must have a positive sum")
    return parts


# How values are written: a class says here, once, under which tag.
#
# A ledger keeps values of these classes exactly, and messages have some of them. Both read the
# tables of this file, and know none of the classes. Never change a tag or a key, and never use it
# again with another meaning: ledgers and messages contain them. The class, its module and its
# attributes may be renamed, because ledgers do not contain these names; messages contain those of
# the attributes.

C = TypeVar("C", bound=type)


@dataclass(frozen=True, slots=True)
class Around:
    """A tag around another value of the same kind, from which a value follows.

    :ivar of: returns that value; None if there is none
    :ivar make: the inverse
    """

    tag: str
    of: Callable[[Any], Any]
    make: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of one class are written.

    :ivar tag: identifies the class in a record
    :ivar cls: the class of the values
    :ivar keys: all keys that a record may have
    :ivar parts: returns the parts of a value, by key
    :ivar make: returns the value that has these parts
    :ivar outside: whether another package registered the class
    :ivar subclasses: whether values of its subclasses are written as values of the class
    :ivar around: how some of the values are written instead
    """

    tag: str
    cls: type
    keys: tuple[str, ...]
    parts: Callable[[Any], Mapping[str, Any]]
    make: Callable[[Mapping[str, Any]], Any]
    outside: bool = False
    subclasses: bool = False
    around: Around | None = None


KINDS: dict[str, Kind] = {}
BY_CLASS: dict[type, Kind] = {}
AROUND: dict[str, Around] = {}
READ: dict[str, Callable[..., Any]] = {}  # by name in messages: what makes a value, and checks it


def add(kind: Kind) -> None:
    """Add a kind, or replace the older kind with this tag."""
    older = KINDS.get(kind.tag)
    if older is not None:
        BY_CLASS.pop(older.cls, None)
    KINDS[kind.tag] = BY_CLASS[kind.cls] = kind
    if kind.around is not None:
        AROUND[kind.around.tag] = kind.around


def tagged(tag: str, *same: str, **attributes: str) -> Callable[[C], C]:
    """Let a frozen class be written, whose parts are attributes; a decorator of the class.

    :param same: keys that are also the names of their attributes
    :param attributes: the attribute of each other key
    """
    keys = {name: name for name in same} | attributes

    def add_to_table(cls: C) -> C:
        add(attribute_kind(tag, cls, keys))
        return cls

    return add_to_table


def sent(cls: type, name: str = "") -> Callable[[F], F]:
    """Let messages have the values of a frozen class; a decorator of the function that makes them.

    The fields of a value are the arguments of the function, which checks them.

    :param name: in messages, if it is not the tag of the class
    """
    said, names = name or BY_CLASS[cls].tag, [one.name for one in fields(cls)]

    def add_to_tables(make: F) -> F:
        VALUES[cls] = lambda value: (said, {one: getattr(value, one) for one in names})
        READ[said] = make
        return make

    return add_to_tables


def attribute_kind(
    tag: str,
    cls: type,
    attributes: Mapping[str, str],
    make: Callable[..., Any] | None = None,
    outside: bool = False,
) -> Kind:
    """Return the kind of a class whose parts are attributes.

    :param attributes: attribute for each key
    :param make: makes a value from parts by key; by default the class is called with the attributes
    :raises InvalidValueError: if a field of a dataclass has no key
    """
    check_fields(cls, attributes)

    def parts(value: Any) -> dict[str, Any]:
        return {key: getattr(value, attribute) for key, attribute in attributes.items()}

    def made(values: Mapping[str, Any]) -> Any:
        if make is not None:
            return make(**values)
        return cls(**{attributes[key]: value for key, value in values.items()})

    return Kind(tag, cls, tuple(attributes), parts, made, outside)


def check_fields(cls: type, attributes: Mapping[str, str]) -> None:
    """Check that each field of a dataclass or a named tuple has a key.

    :raises InvalidValueError: naming the fields without a key
    """
    names: set[str] = set()
    if is_dataclass(cls):
        names = {field.name for field in fields(cls) if field.init}
    elif issubclass(cls, tuple):
        names = set(getattr(cls, "__match_args__", ()))
    missing = names - set(attributes.values())
    if missing:
        raise InvalidValueError(
            f"fields must have all fields of {cls.__name__}, but lacks "
            f"{', '.join(sorted(missing))}: a field without a key would be lost"
        )


# The papers, by the keys that OpenDP's documentation uses for them.

# key: title and link
REFERENCES: dict[str, tuple[str, str]] = {
    key: (title, link)
    for key, (title, link) in json.loads(
        files(__package__).joinpath("references.json").read_text(encoding="utf-8")
    ).items()
}


def cite(key: str, where: str = "") -> str:
    """Render a citation such as ``[VW21, Theorem 1.5] https://...``."""
    _, link = REFERENCES[key]
    return f"[{key}, {where}] {link}" if where else f"[{key}] {link}"


# A bar for what takes long, by tqdm if it is installed.
#
# Nothing that it shows depends on data: it is how many steps are done, and of how many.


def counted(
    items: Iterable[T], progress: bool, total: int | None = None
) -> Generator[T, None, None]:
    """Yield items, and show a bar of how many are done if there is to be progress."""
    if progress:
        with suppress(ImportError):  # the extra named progress installs it
            items = import_module("tqdm.auto").tqdm(items, total=total)
    yield from items


# Files that only their owner may read: what was spent, by whom and for what, and answers.

_MODE = 0o600
_OTHERS = 0o007


def make_private(path: str | os.PathLike[str]) -> bool:
    """Make an empty file that only its owner may read and write, unless there is a file.

    SQLite gives its side files the mode of the database. A file that is there is not opened:
    closing it would release the locks that SQLite has on it. If none can be made, nothing happens:
    who opens it finds out.

    :return: whether it was made
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE))
    except OSError:
        return False
    return True


def warn_if_open(logger: logging.Logger, what: str, *paths: str | os.PathLike[str]) -> None:
    """Log those of some files that every user of the computer may read or write.

    Their modes are the owner's to choose.

    :param what: what they have
    """
    if os.name != "posix":
        return
    found = []
    for path in map(Path, paths):
        with suppress(OSError):
            if path.stat().st_mode & _OTHERS:
                found.append(shlex.quote(str(path)))
    if found:
        close = f"chmod o-rwx {' '.join(found)}"
        logger.warning(
            "every user of this computer may read %s; unless you want this, run: %s", what, close
        )
