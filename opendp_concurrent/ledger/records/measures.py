"""The tags of privacy measures.

Terms contain the name of a measure. A name that is not in the table is written as a string.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ...fdp.function import TradeoffFunction
from ...measures import families
from ...measures.approximate_zero_concentrated_divergence import (
    APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE,
)
from ...measures.distances import TruncatedConcentrated

_APPROXIMATE_ZCDP = APPROXIMATE_ZERO_CONCENTRATED_DIVERGENCE.family


class _Known(NamedTuple):
    """A measure.

    :ivar name: that is shown; before its parameter, if it has one
    :ivar zero: the loss of nothing; None where the accumulator knows it
    :ivar key: of the parameter; empty if it has none
    :ivar shown: the name of the parameter that is shown
    """

    name: str
    zero: Any
    key: str = ""
    shown: str = ""


MEASURES = {
    "approximate": _Known(families.APPROXIMATE, (0.0, 0.0)),
    "approximate-zcdp": _Known(_APPROXIMATE_ZCDP, (0.0, 0.0)),
    "fdp": _Known(families.TRADEOFF, TradeoffFunction.identity()),
    "fixed-renyi": _Known(families.FIXED, 0.0, "order", "alpha"),
    "gdp": _Known(families.GAUSSIAN, 0.0),
    "pure": _Known(families.PURE, 0.0),
    "renyi": _Known(families.RENYI, None),
    "tcdp": _Known(families.TRUNCATED, TruncatedConcentrated(0.0, inf), "omega", "omega"),
    "zcdp": _Known(families.ZCDP, 0.0),
}


def written(name: str) -> Any:
    """Return what is written of the measure with this name."""
    for tag, known in MEASURES.items():
        if not known.key:
            if name == known.name:
                return {tag: {}}
            continue
        text = name.removeprefix(f"{known.name}({known.shown}=").removesuffix(")")
        try:
            value = float(text)
        except ValueError:
            continue
        if name == _name(known, value):
            return {tag: {known.key: {"double": value.hex()}}}
    return name


def read(shape: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the name of a measure, and the loss of nothing if that follows: one, or none.

    :raises LookupError, TypeError, ValueError: if nothing like it is written
    """
    if isinstance(shape, str):
        return shape, ()
    ((tag, parameters),) = shape.items()
    known = MEASURES[tag]
    if not known.key:
        return known.name, (known.zero,)
    return _name(known, float.fromhex(parameters[known.key]["double"])), (known.zero,)


def _name(known: _Known, value: float) -> str:
    return f"{known.name}({known.shown}={value!r})"
