"""How values are written: a class says here, once, under which tag.

A ledger keeps values of these classes exactly, and messages have some of them. Both read the tables
of this file, and know none of the classes. Never change a tag or a key, and never use it again with
another meaning: ledgers and messages contain them. The class, its module and its attributes may be
renamed, because ledgers do not contain these names; messages contain those of the attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from ..errors import InvalidValueError
from .provenance import VALUES

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


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


def written(tag: str, *same: str, **attributes: str) -> Callable[[C], C]:
    """Let a frozen class be written, whose parts are attributes; a decorator of the class.

    :param same: keys that are also the names of their attributes
    :param attributes: the attribute of each other key
    """
    keys = {name: name for name in same} | attributes

    def add_to_table(cls: C) -> C:
        add(plain(tag, cls, keys))
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


def plain(
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
