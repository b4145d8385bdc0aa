"""Guards: what is checked of an argument. The keyword of a call is the argument's name.

A :class:`Guard` checks a value, has the words of the message, and knows values that it must refuse.
:mod:`.checked` has the annotations that carry guards.

Each guard is written in the positive form, so that NaN fails it. A guard returns a value of
Python's own, read once, so that a later change of the argument has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf, nan
from typing import Any, Generic, TypeVar, cast

from ..errors import InvalidTypeError, InvalidValueError
from ..shown import rounded as rounded
from ..shown import shown as shown
from ..types import Argument

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
