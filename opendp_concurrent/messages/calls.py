"""Calls that a message may make: constructors in a table, and the kinds of their arguments.

A name is looked up in the table, which was made at import. Nothing is imported or read by name.
Constructors that take Python functions or Polars plans are not in the table, nor are those whose
loss rests on a promise of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Signature, signature
from types import MappingProxyType
from typing import Any

from opendp import (
    combinators,
    core,
    domains,
    measurements,
    measures,
    metrics,
    transformations,
)

from ..arguments import checks
from ..arguments.provenance import CONSTRUCTORS, MODULE
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Json
from .kinds import BY_ANNOTATION, BY_NAME, KINDS, OF_OPENDP
from .values import READ

_SHOWN = 300
EXCLUDED = frozenset(  # what can be called in a message is not made for what these need
    {
        "make_chain_po",
        "make_continual",
        "make_frame_count",
        "make_interactive_postprocessing",
        "make_parallel_continual",
        "make_stream_filter",
        "make_stream_map",
        "record_stream",
    }
)
_MODULES = (combinators, core, domains, measurements, measures, metrics, transformations)
Key = tuple[str, str]  # of a message: module, name


def _table() -> dict[Key, Callable[..., Any]]:
    modules = {one.__name__.rpartition(".")[2]: one for one in _MODULES}
    table: dict[Key, Callable[..., Any]] = {}
    for module, names in OF_OPENDP.items():
        found = modules[module]
        table |= {(module, name): getattr(found, name) for name in names}
    table |= {(MODULE, name): made for name, made in READ.items()}
    table |= {(MODULE, name): made for name, made in CONSTRUCTORS.items() if name not in EXCLUDED}
    return table


TABLE = MappingProxyType(_table())


def key_of(one: dict[str, Any]) -> Key:
    """Return the module and the name that a call has, or raise."""
    module, name = one["__module__"], one["__function__"]
    if not (isinstance(module, str) and isinstance(name, str)):
        raise InvalidValueError("message calls a constructor whose name is no string")
    return module, name


@cache
def signature_of(key: Key) -> Signature:
    """Return what a constructor of the table takes."""
    return signature(TABLE[key])


def call(key: Key, given: dict[str, Any]) -> Any:
    """Call a constructor of the table, or raise an error that names it."""
    try:
        signature_of(key).bind(**given)
        _check_kinds(key, given)
        return TABLE[key](**given)
    except Exception as error:
        raise InvalidValueError(
            f"message: {key[1]} refuses its arguments: {str(error).strip()[:_SHOWN]}"
        ) from None


def _check_kinds(key: Key, given: dict[str, Any]) -> None:
    """Raise for an argument of another kind than the constructor takes.

    OpenDP passes pointers on as they are, and a wrong one ends the process. Constructors of this
    package check their arguments themselves. But they take a Python function for a Rényi curve, and
    measurements and transformations can be called, too: a noisy curve is no bound.
    """
    if key[0] == MODULE:
        for name, value in given.items():
            if name not in _WITH_CALLS and _is_called(value):
                raise InvalidTypeError(f"{name} must have no mechanism in it")
    if key[0] == MODULE and key[1] not in ("chain", "chain_stream"):
        return
    for name, value in given.items():
        kind = kind_of(key, name)
        if not KINDS[kind](value):
            raise InvalidTypeError(
                f"{name} must be {kind}, found {'a ' * (value is not None)}{type(value).__name__}"
            )


_WITH_CALLS = (  # mechanisms, and types of columns
    *("composition", "measurement", "measurements", "odometer", "schema", "transformation"),
)


def _is_called(value: Json) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_called, value))
    if isinstance(value, dict):
        return any(map(_is_called, (*value, *value.values())))
    return callable(value)


def kind_of(key: Key, name: str) -> str:
    """Return the kind of an argument, a key of ``KINDS``."""
    taken = signature_of(key).parameters[name].annotation
    found = BY_ANNOTATION.get(getattr(taken, "__name__", str(taken))) or BY_NAME.get(name)
    return found or ("a type" if "GenericAlias" in str(taken) else "a value")


def rebuild(record: dict[str, Any]) -> Any:
    """Call the constructor of this package that a record in ``dp.deserialize`` names."""
    key = key_of(record)
    if key not in TABLE:
        raise InvalidValueError(
            f"message calls {checks.shown(key[1])}, which opendp_concurrent does not deserialise"
        )
    return call(key, record.get("__kwargs__", {}))
