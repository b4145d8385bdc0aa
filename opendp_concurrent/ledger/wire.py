"""The tags and keys that values are written with. No Python name is written.

A record of form 2 has the tags and keys of ``KINDS``, which also has the classes that other
packages registered. A record of form 1, which version 0.1.0 wrote, has the names that classes and
fields had in 0.1.0; ``FORM_1`` lists them. You may rename a class or a field, and change the table
on the Python side. Never change a tag or a key, and never use one again for something else: to
write a value in another way, give it another tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ..accumulators.advanced import Advanced
from ..accumulators.basic import Basic
from ..accumulators.either import Either
from ..accumulators.ladder import Ladder
from ..accumulators.renyi import Renyi
from ..accumulators.residue import Residue
from ..accumulators.zcdp import Zcdp
from ..errors import InvalidTypeError, InvalidValueError, UnregisteredError
from ..fdp.finite import Finite
from ..fdp.function import TradeoffFunction
from ..fdp.laplace import Laplace
from ..measures.distances import TruncatedConcentrated
from ..measures.sums.orders_sum import GridCurve, OnOrders
from ..measures.sums.square_sum import Squares
from ..measures.sums.truncated_sum import Truncated
from .functions import (
    FUNCTION_KEYS,
    PAIR,
    function_parts,
    make_function,
    make_pair,
    pair_parts,
)

NEWEST = 2  # the form of what is written now


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of one class are written.

    :ivar tag: identifies the class in a record
    :ivar cls: the class
    :ivar keys: all keys that a record may have
    :ivar parts: returns what is written of a value, by key
    :ivar make: returns the value that has these parts
    :ivar outside: whether another package registered it
    """

    tag: str
    cls: type
    keys: tuple[str, ...]
    parts: Callable[[Any], Mapping[str, Any]]
    make: Callable[[Mapping[str, Any]], Any]
    outside: bool = False


def plain(
    tag: str,
    cls: type,
    attributes: Mapping[str, str],
    make: Callable[..., Any] | None = None,
    outside: bool = False,
) -> Kind:
    """Return the kind of a class whose values are given by some attributes.

    :param attributes: the attribute that is written under each key
    :param make: makes a value from the keys; if left out, the class is called with the attributes
    :raises InvalidValueError: if it is a dataclass with a field that would not be written
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
    """Raise if a dataclass has a field that would not be written.

    :raises InvalidValueError: naming the fields
    """
    if not is_dataclass(cls):
        return
    missing = {field.name for field in fields(cls) if field.init} - set(attributes.values())
    if missing:
        raise InvalidValueError(
            f"fields must have all fields of {cls.__name__}, and lacks "
            f"{', '.join(sorted(missing))}: a field that is not written would be lost"
        )


check_fields(Finite, PAIR)
_OURS = (
    # accumulators
    plain("advanced", Advanced, {"slack": "delta_slack"}),
    plain("basic", Basic, {}),
    plain("either", Either, {"rules": "rules"}),
    plain("ladder", Ladder, {"unit": "unit"}),
    plain("least-omega", Truncated, {}),
    plain("orders", OnOrders, {"orders": "orders"}),
    plain("renyi", Renyi, {"order": "order", "slack": "delta_slack"}),
    plain("residue", Residue, {"mu": "mu"}),
    plain("squares", Squares, {}),
    plain("zcdp", Zcdp, {"slack": "delta_slack"}),
    # distances
    plain("curve", GridCurve, {"orders": "orders", "values": "values"}),
    plain("tcdp", TruncatedConcentrated, {"rho": "rho", "omega": "omega"}),
    Kind("function", TradeoffFunction, FUNCTION_KEYS, function_parts, make_function),
    # factors of trade-off functions
    plain("laplace", Laplace, {"epsilon": "epsilon", "steps": "steps"}),
    Kind("pair", Finite, tuple(PAIR), pair_parts, make_pair),
)

# Form 1: for each name of a class in 0.1.0, the tag, and the key of each field.
FORM_1: dict[str, tuple[str, dict[str, str]]] = {
    "Advanced": ("advanced", {"delta_slack": "slack"}),
    "Basic": ("basic", {}),
    "Either": ("either", {"rules": "rules"}),
    "Finite": (
        "pair",
        {
            "losses": "losses",
            "masses": "masses",
            "infinite": "infinite",
            "never": "never",
            "mass_error": "mass_error",
            "loss_error": "loss_error",
            "symmetric": "symmetric",
            "limit": "limit",
            "slack": "slack",
            "gaussian": "gaussian",
            "back": "back",
            "stands_for": "stands_for",
        },
    ),
    "GridCurve": ("curve", {"orders": "orders", "values": "values"}),
    "Ladder": ("ladder", {"unit": "unit"}),
    "Laplace": ("laplace", {"epsilon": "epsilon", "steps": "steps"}),
    "OnOrders": ("orders", {"orders": "orders"}),
    "Renyi": ("renyi", {"order": "order", "delta_slack": "slack"}),
    "Residue": ("residue", {"mu": "mu"}),
    "Squares": ("squares", {}),
    "TradeoffFunction": ("function", {"squares": "squares", "factors": "factors"}),
    "Truncated": ("least-omega", {}),
    "TruncatedConcentrated": ("tcdp", {"rho": "rho", "omega": "omega"}),
    "Zcdp": ("zcdp", {"delta_slack": "slack"}),
}
_NAMES_1 = {  # the inverse: for each tag the name, and the field of each key
    tag: (name, {key: old for old, key in keys.items()}) for name, (tag, keys) in FORM_1.items()
}
_SAME = {kind.tag: {key: key for key in kind.keys} for kind in _OURS}

KINDS = {kind.tag: kind for kind in _OURS}
BY_CLASS = {kind.cls: kind for kind in _OURS}


def add(kind: Kind) -> None:
    """Add a kind of another package, or replace the older one with this tag."""
    older = KINDS.get(kind.tag)
    if older is not None:
        BY_CLASS.pop(older.cls, None)
    _SAME[kind.tag] = {key: key for key in kind.keys}
    KINDS[kind.tag] = kind
    BY_CLASS[kind.cls] = kind


def kind_of(value: Any) -> Kind:
    """Return how a value is written.

    :raises InvalidTypeError: if its class is not in the table
    """
    kind = BY_CLASS.get(type(value))
    if kind is None and isinstance(value, TradeoffFunction):
        kind = KINDS["function"]
    if kind is None:
        raise InvalidTypeError(
            f"{type(value).__name__} has no exact record; to keep values of your own class, "
            "register it with opendp_concurrent.ledger.register"
        )
    return kind


def names(kind: Kind, form: int) -> tuple[str, Mapping[str, str]]:
    """Return what a form has in place of the tag, and in place of each key.

    :raises InvalidTypeError: if the form has none
    """
    if form == NEWEST:
        return kind.tag, _SAME[kind.tag]
    found = _NAMES_1.get(kind.tag)
    if found is None:
        raise InvalidTypeError(
            f"the budget was begun by an older version, which cannot read {kind.tag!r}; create "
            "another ledger"
        )
    return found


def named(name: str, form: int) -> tuple[Kind, Mapping[str, str]]:
    """Return the kind that a form calls ``name``, and the key of each name in its record.

    :raises LookupError: if there is none
    :raises UnregisteredError: if the class belongs to another package and was not registered
    """
    if form != NEWEST:
        tag, keys = FORM_1[name]
        return KINDS[tag], keys
    kind = KINDS.get(name)
    if kind is not None:
        return kind, _SAME[name]
    if is_outside(name):
        raise UnregisteredError(name)
    raise LookupError(name)


def is_outside(tag: str) -> bool:
    """Whether a tag is another package's, as none of ours can be."""
    return ":" in tag
