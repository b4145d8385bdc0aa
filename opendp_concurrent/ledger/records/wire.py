"""The table of tags and keys with which values are written. Records contain no Python names.

A record of form 2 has the tags and keys of ``KINDS``. Other packages add their classes to it. A
record of form 1, which version 0.1.0 wrote, has the names that classes and fields had in 0.1.0;
``FORM_1`` lists them. If you rename a class or a field, change the Python names in the tables.
Never change a tag or a key, and never use it again with another meaning. To write a value in
another way, add another tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from ...accumulators.advanced import Advanced
from ...accumulators.basic import Basic
from ...accumulators.either import Either
from ...accumulators.renyi import Renyi
from ...accumulators.zcdp import Zcdp
from ...blocks.recorded import OnEachBlock
from ...blocks.totals import OnKeys
from ...errors import InvalidTypeError, InvalidValueError
from ...errors.ledger import UnregisteredError
from ...fdp.finite import Finite
from ...fdp.function import TradeoffFunction
from ...fdp.laplace import Laplace
from ...fdp.subsampled import Subsampled
from ...fdp.truncated_gaussian import TruncatedGaussian
from ...fdp.truncated_laplace import TruncatedLaplace
from ...measures.distances import TruncatedConcentrated
from ...measures.truncated_sum import Truncated
from ...sums.orders_sum import GridCurve, OnOrders
from ...sums.square_sum import Squares
from ...tradeoffs.ladder import Ladder
from ...tradeoffs.ladder_at_delta import EpsilonDeltaLadder
from ...tradeoffs.residue import Residue
from .functions import (
    FUNCTION_KEYS,
    PAIR,
    function_parts,
    make_function,
    make_pair,
    pair_parts,
    same,
)
from .limited import Limited, Opened

NEWEST = 2  # the form of new budgets


@dataclass(frozen=True, slots=True)
class Kind:
    """How the values of one class are written.

    :ivar tag: identifies the class in a record
    :ivar cls: the class of the values
    :ivar keys: all keys that a record may have
    :ivar parts: returns the parts of a value, by key
    :ivar make: returns the value that has these parts
    :ivar outside: whether another package registered the class
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
    """Check that each field of a dataclass has a key.

    :raises InvalidValueError: naming the fields without a key
    """
    if not is_dataclass(cls):
        return
    missing = {field.name for field in fields(cls) if field.init} - set(attributes.values())
    if missing:
        raise InvalidValueError(
            f"fields must have all fields of {cls.__name__}, but lacks "
            f"{', '.join(sorted(missing))}: a field without a key would be lost"
        )


check_fields(Finite, PAIR)
_OURS = (
    # accumulators
    plain("advanced", Advanced, {"slack": "delta_slack"}),
    plain("basic", Basic, {}),
    plain("either", Either, same("rules")),
    plain("ladder", Ladder, same("unit")),
    plain("ladder-at-delta", EpsilonDeltaLadder, {"unit": "unit", "slack": "delta_slack"}),
    plain("least-omega", Truncated, {}),
    plain("on-each-block", OnEachBlock, {"of": "accounting", "d_out": "d_out"}),
    plain("orders", OnOrders, same("orders")),
    plain("renyi", Renyi, {"order": "order", "slack": "delta_slack"}),
    plain("residue", Residue, same("mu")),
    plain("squares", Squares, {}),
    plain("zcdp", Zcdp, {"slack": "delta_slack"}),
    # charges below limits
    plain("limited", Limited, same("d_mid", "limit", "d_mids", "opened")),
    plain("limit", Opened, same("above", "label", "terms")),
    # distances
    plain("curve", GridCurve, same("orders", "values")),
    plain("on-blocks", OnKeys, same("keys", "d_mid")),
    plain("tcdp", TruncatedConcentrated, same("rho", "omega")),
    Kind("function", TradeoffFunction, FUNCTION_KEYS, function_parts, make_function),
    # factors of trade-off functions
    plain("laplace", Laplace, same("epsilon", "steps")),
    plain("subsampled", Subsampled, same("noise", "size", "rate", "unit")),
    plain("truncated-gaussian", TruncatedGaussian, same("mu", "bound")),
    plain("truncated-laplace", TruncatedLaplace, same("epsilon", "bound")),
    Kind("pair", Finite, tuple(PAIR), pair_parts, make_pair),
)

# Form 1: class name in 0.1.0 -> tag, and field name in 0.1.0 -> key
FORM_1: dict[str, tuple[str, dict[str, str]]] = {
    "Advanced": ("advanced", {"delta_slack": "slack"}),
    "Basic": ("basic", {}),
    "Either": ("either", same("rules")),
    "Finite": (
        "pair",
        same(
            *("losses", "masses", "infinite", "never", "mass_error", "loss_error", "symmetric"),
            *("limit", "slack", "gaussian", "back", "stands_for"),
        ),
    ),
    "GridCurve": ("curve", same("orders", "values")),
    "Ladder": ("ladder", same("unit")),
    "Laplace": ("laplace", same("epsilon", "steps")),
    "OnOrders": ("orders", same("orders")),
    "Renyi": ("renyi", {"order": "order", "delta_slack": "slack"}),
    "Residue": ("residue", same("mu")),
    "Squares": ("squares", {}),
    "TradeoffFunction": ("function", same("squares", "factors")),
    "Truncated": ("least-omega", {}),
    "TruncatedConcentrated": ("tcdp", same("rho", "omega")),
    "Zcdp": ("zcdp", {"delta_slack": "slack"}),
}
_NAMES_1 = {  # the inverse: tag -> class name, and key -> field name
    tag: (name, {key: old for old, key in keys.items()}) for name, (tag, keys) in FORM_1.items()
}
_SAME = {kind.tag: {key: key for key in kind.keys} for kind in _OURS}

KINDS = {kind.tag: kind for kind in _OURS}
BY_CLASS = {kind.cls: kind for kind in _OURS}


def add(kind: Kind) -> None:
    """Add a kind of another package, or replace the older kind with this tag."""
    older = KINDS.get(kind.tag)
    if older is not None:
        BY_CLASS.pop(older.cls, None)
    _SAME[kind.tag] = {key: key for key in kind.keys}
    KINDS[kind.tag] = kind
    BY_CLASS[kind.cls] = kind


def kind_of(value: Any) -> Kind:
    """Return the kind of a value.

    :raises InvalidTypeError: if its class is not in the table
    """
    kind = BY_CLASS.get(type(value))
    if kind is None and isinstance(value, TradeoffFunction):
        kind = KINDS["function"]
    if kind is None:
        raise InvalidTypeError(
            f"{type(value).__name__} has no exact record; to keep values of your own class, "
            "register the class with opendp_concurrent.ledger.register"
        )
    return kind


def names(kind: Kind, form: int) -> tuple[str, Mapping[str, str]]:
    """Return the name of a kind in a form, and the name of each key in that form.

    :raises InvalidTypeError: if the form cannot contain the kind
    """
    if form == NEWEST:
        return kind.tag, _SAME[kind.tag]
    found = _NAMES_1.get(kind.tag)
    if found is None:
        raise InvalidTypeError(
            f"an older version created the budget, and cannot read {kind.tag!r}; create another "
            "ledger"
        )
    return found


def named(name: str, form: int) -> tuple[Kind, Mapping[str, str]]:
    """Inverse of :func:`names`: return the kind, and the key of each name in its record.

    :raises LookupError: if the form has no such name
    :raises UnregisteredError: if the class belongs to another package and is not registered
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
    """Return whether a tag belongs to another package: our own tags have no colon."""
    return ":" in tag
