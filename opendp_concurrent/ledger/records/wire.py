"""The names with which values are written, in both forms. Records contain no Python names.

A record of form 2 has the tags and keys of the table in ``arguments/written.py``, to which each
class adds itself. A record of form 1, which version 0.1.0 wrote, has the names that classes and
fields had in 0.1.0; ``FORM_1`` lists them, and never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ...arguments.written import BY_CLASS, KINDS, Kind
from ...errors import InvalidTypeError
from ...errors.ledger import UnregisteredError
from ...types import Json

NEWEST = 2  # the form of new budgets


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


# Form 1: class name in 0.1.0 -> tag, and field name in 0.1.0 -> key
FORM_1: dict[str, tuple[str, dict[str, str]]] = {
    "Advanced": ("advanced", {"delta_slack": "slack"}),
    "Basic": ("basic", {}),
    "Either": ("either", _same("rules")),
    "Finite": (
        "pair",
        _same(
            *("losses", "masses", "infinite", "never", "mass_error", "loss_error", "symmetric"),
            *("limit", "slack", "gaussian", "back", "stands_for"),
        ),
    ),
    "GridCurve": ("curve", _same("orders", "values")),
    "Ladder": ("ladder", _same("unit")),
    "Laplace": ("laplace", _same("epsilon", "steps")),
    "OnOrders": ("orders", _same("orders")),
    "Renyi": ("renyi", {"order": "order", "delta_slack": "slack"}),
    "Residue": ("residue", _same("mu")),
    "Squares": ("squares", {}),
    "TradeoffFunction": ("function", _same("squares", "factors")),
    "Truncated": ("least-omega", {}),
    "TruncatedConcentrated": ("tcdp", _same("rho", "omega")),
    "Zcdp": ("zcdp", {"delta_slack": "slack"}),
}
_NAMES_1 = {  # the inverse: tag -> class name, and key -> field name
    tag: (name, {key: old for old, key in keys.items()}) for name, (tag, keys) in FORM_1.items()
}


def kind_of(value: Json) -> Kind:
    """Return the kind of a value.

    :raises InvalidTypeError: if its class is not in the table
    """
    kind = BY_CLASS.get(type(value))
    if kind is None:
        above = (BY_CLASS.get(cls) for cls in type(value).__mro__)
        kind = next((one for one in above if one is not None and one.subclasses), None)
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
        return kind.tag, _keys(kind.keys)
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
        return kind, _keys(kind.keys)
    if is_outside(name):
        raise UnregisteredError(name)
    raise LookupError(name)


@lru_cache(maxsize=256)
def _keys(keys: tuple[str, ...]) -> dict[str, str]:
    return _same(*keys)


def is_outside(tag: str) -> bool:
    """Return whether a tag belongs to another package: our own tags have no colon."""
    return ":" in tag
