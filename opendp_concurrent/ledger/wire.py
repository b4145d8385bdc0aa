"""What is written of a value: its tag, and the keys of its fields, whatever Python calls them.

These tables decide. A record of form 2 has the tags and keys of ``KINDS``, with those that other
packages register. A record of form 1, which 0.1.0 wrote, has the names that classes and fields had
then, and ``FORM_1`` keeps those. So a class or a field may be renamed: its tag and its keys stay. A
tag is never used for anything else, and what is to be written otherwise gets another one.
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

    :ivar tag: what says that it is one
    :ivar cls: the class
    :ivar keys: under which something is written
    :ivar parts: of a value, what is written under each key
    :ivar make: the value again, of that
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
    """The kind of values that are their attributes.

    :param attributes: for each key, the attribute that is written under it
    :param make: makes a value, of the keys; by default the class does, of the attributes
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
            f"fields must have every field of {cls.__name__}, and has no "
            f"{', '.join(sorted(missing))}: what is not written is lost"
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

# The names of form 1, which are those of classes and fields in 0.1.0: the tag, and the keys.
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
_NAMES_1 = {  # by tag: the name, and the names of the keys
    tag: (name, {key: old for old, key in keys.items()}) for name, (tag, keys) in FORM_1.items()
}
_SAME = {kind.tag: {key: key for key in kind.keys} for kind in _OURS}

KINDS = {kind.tag: kind for kind in _OURS}
BY_CLASS = {kind.cls: kind for kind in _OURS}


def add(kind: Kind) -> None:
    """Add a kind of another package, or put it in the place of an older one."""
    older = KINDS.get(kind.tag)
    if older is not None:
        BY_CLASS.pop(older.cls, None)
    _SAME[kind.tag] = {key: key for key in kind.keys}
    KINDS[kind.tag] = kind
    BY_CLASS[kind.cls] = kind


def kind_of(value: Any) -> Kind:
    """Return how a value is written.

    :raises InvalidTypeError: if it is not
    """
    kind = BY_CLASS.get(type(value))
    if kind is None and isinstance(value, TradeoffFunction):
        kind = KINDS["function"]
    if kind is None:
        raise InvalidTypeError(
            f"{type(value).__name__} has no exact form there; a class of your own is registered by "
            "opendp_concurrent.ledger.register"
        )
    return kind


def names(kind: Kind, form: int) -> tuple[str, Mapping[str, str]]:
    """Return the name of a kind in a form, and for each key the name that is written.

    :raises InvalidTypeError: if the form has none
    """
    if form == NEWEST:
        return kind.tag, _SAME[kind.tag]
    found = _NAMES_1.get(kind.tag)
    if found is None:
        raise InvalidTypeError(
            f"the budget was begun by an older version, which could not write {kind.tag!r}; create "
            "another ledger"
        )
    return found


def named(name: str, form: int) -> tuple[Kind, Mapping[str, str]]:
    """Return the kind of this name in a form, and for each name that is written its key.

    :raises LookupError: if there is none
    :raises UnregisteredError: if it is another package's, which did not register it here
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
