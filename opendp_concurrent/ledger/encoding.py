"""Distances and accountings as text: exact, so that what is decoded computes the same.

Doubles are written in hexadecimal, so that they survive bit for bit; arrays of them by their bytes.
The text is JSON without spaces, keys in order. What is decoded encodes to the same text again, and
values that are equal to the same text, but for the order of a product's factors.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import fields
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from ..accumulators.advanced import Advanced
from ..accumulators.basic import Basic
from ..accumulators.either import Either
from ..accumulators.ladder import Ladder
from ..accumulators.renyi import Renyi
from ..accumulators.residue import Residue
from ..accumulators.zcdp import Zcdp
from ..errors import InvalidTypeError, InvalidValueError
from ..fdp.finite import Finite
from ..fdp.function import TradeoffFunction
from ..fdp.laplace import Laplace
from ..fdp.product import Product
from ..measures.distances import TruncatedConcentrated
from ..measures.sums.orders_sum import GridCurve, OnOrders
from ..measures.sums.square_sum import Squares
from ..measures.sums.truncated_sum import Truncated
from .readable import UNREADABLE

_PLAIN = {  # values that are their fields
    one.__name__: one
    for one in (
        Advanced,
        Basic,
        Either,
        GridCurve,
        Ladder,
        Laplace,
        OnOrders,
        Renyi,
        Residue,
        Squares,
        Truncated,
        TruncatedConcentrated,
        Zcdp,
    )
}
_ABOUT_ONE = 1.01  # masses are known up to errors that they carry
_NEWER = ("back", "stands_for")  # fields of a pair that are written where they say something
_FINITE = [field.name for field in fields(Finite) if field.init and field.name not in _NEWER]


_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """Write what JSON can say, in the one way that counts here."""
    return _WRITER.encode(value)


def encode(name: str, value: Any) -> str:
    """Write a distance or an accounting; ``name`` says which argument it is.

    :raises InvalidTypeError: if it has no exact form
    """
    try:
        return canonical(_shape(value))
    except InvalidTypeError as error:
        raise InvalidTypeError(f"{name} ({value}) cannot be kept in a ledger: {error}") from None


@lru_cache(maxsize=1024)  # values are immutable, and mostly the same few
def decode(text: str) -> Any:
    """Inverse of :func:`encode`.

    :raises InvalidValueError: if the text is not what :func:`encode` writes
    """
    try:
        value = _value(json.loads(text))
        if encode("value", value) == text:
            return value
    except UNREADABLE:
        pass
    raise InvalidValueError(f"{text[:200]!r} is not an exact record of a value")


def _shape(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"double": value.hex()}
    if type(value) is tuple:
        return [_shape(one) for one in value]
    name = type(value).__name__
    if _PLAIN.get(name) is type(value):
        return {name: {field.name: _shape(getattr(value, field.name)) for field in fields(value)}}
    if isinstance(value, TradeoffFunction):
        return {"TradeoffFunction": _product(value._product)}
    if isinstance(value, Finite):
        return _finite(value)
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1:
        return {"doubles": b64encode(value.astype("<f8").tobytes()).decode("ascii")}
    raise InvalidTypeError(f"a {name} has no exact form there")


def _product(product: Product) -> Any:
    # in their order, in which they are added up: so the last digits are the same when they are read
    factors = [[_shape(factor), count] for factor, count in product.factors.items()]
    return {"squares": hex(product.squares), "factors": factors}


def _fields(pair: Finite) -> dict[str, Any]:
    shape = {name: _shape(getattr(pair, name)) for name in _FINITE}
    return shape | {"stands_for": pair.stands_for} if pair.stands_for else shape


def _finite(pair: Finite) -> Any:
    original = pair.__dict__.get("_twin")
    if original is not None and "_origin" in pair.__dict__:
        return {"swapped": _finite(original)}
    shape = _fields(pair)
    if pair.back is not None:
        shape["back"] = {"Finite": _fields(pair.back)}
    return {"Finite": shape}


def _value(shape: Any) -> Any:
    if isinstance(shape, list):
        return tuple(_value(one) for one in shape)
    if not isinstance(shape, dict):
        return shape
    ((name, inner),) = shape.items()
    if name == "double":
        return float.fromhex(inner)
    if name == "doubles":
        return np.frombuffer(b64decode(inner, validate=True), "<f8").astype(np.float64)
    if name == "TradeoffFunction":
        factors = {_factor(_value(factor)): int(count) for factor, count in inner["factors"]}
        squares = int(inner["squares"], 16)
        _require(squares >= 0 and all(count >= 1 for count in factors.values()))
        return TradeoffFunction._of(Product(squares, factors))
    if name == "Finite":
        return _pair(Finite(**{key: _value(one) for key, one in inner.items()}))
    if name == "swapped":
        return _value(inner).swapped()
    return _PLAIN[name](**{key: _value(one) for key, one in inner.items()})


def _factor(factor: Any) -> Any:
    """A factor of a product, if it is one: what is read computes without a check."""
    if isinstance(factor, Laplace):
        _require(0.0 < factor.epsilon < inf and factor.steps >= 1.0)
        _require(factor.steps == inf or float(factor.steps).is_integer())
    else:
        _require(isinstance(factor, Finite))
    return factor


def _pair(pair: Finite) -> Finite:
    """A pair of distributions, if it is one."""
    losses, masses = pair.losses, pair.masses
    _require(losses.shape == masses.shape and bool(np.isfinite(losses).all()))
    _require(bool((losses[1:] >= losses[:-1]).all()) and bool((masses >= 0.0).all()))
    _require(float(masses.sum()) + pair.infinite <= _ABOUT_ONE)
    _require(all(0.0 <= one <= 1.0 for one in (pair.infinite, pair.never)))
    _require(all(0.0 <= one < inf for one in (pair.mass_error, pair.loss_error, pair.slack)))
    _require(isinstance(pair.stands_for, str))
    _require(pair.back is None or (isinstance(pair.back, Finite) and pair.back.back is None))
    _require(pair.limit >= 0.0 and pair.gaussian >= 0.0)
    return pair


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("a value that none has")
