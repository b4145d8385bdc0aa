"""Split trade-off functions into parts that can be written, and make them again with all checks.

Ledgers keep them under the tags ``function``, ``pair`` and ``swapped``, and those of the factors.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .._checks import BY_CLASS, Around, Kind, add, check_fields
from .finite import Finite
from .function import TradeoffFunction, of_product
from .laplace import Laplace
from .product import Product
from .session import Session
from .shapes import UNITS
from .subsampled import Subsampled

FUNCTION_KEYS = ("squares", "factors")
PAIR = (  # keys, which are also the names of the attributes
    *("losses", "masses", "infinite", "never", "mass_error", "loss_error", "symmetric"),
    *("limit", "slack", "gaussian", "back", "stands_for", "unit"),
)
_ABOUT_ONE = 1.01  # masses have an error, which is written with them


class Back(NamedTuple):
    """The other direction of a pair. It is written as a pair, not as a swapped pair."""

    pair: Finite


def function_parts(function: TradeoffFunction) -> dict[str, Any]:
    """Return the sum of squares of the Gaussians, and the other factors with their counts."""
    product = function.product
    return {"squares": hex(product.squares), "factors": tuple(product.factors.items())}


def make_function(parts: Mapping[str, Any]) -> TradeoffFunction:
    """Inverse of :func:`function_parts`."""
    factors = {_factor(factor): int(count) for factor, count in parts["factors"]}
    squares = int(parts["squares"], 16)
    _require(squares >= 0 and all(count >= 1 for count in factors.values()))
    return of_product(Product(squares, factors))


def original(pair: Finite) -> Finite | None:
    """Return the pair that this pair was swapped from; None if it was not swapped."""
    twin: Finite | None = pair.__dict__.get("_twin")
    return twin if "_origin" in pair.__dict__ else None


def pair_parts(pair: Finite) -> dict[str, Any]:
    """Return the fields of a pair; ``back``, ``stands_for`` and ``unit`` only if they are set."""
    parts = {key: getattr(pair, key) for key in PAIR}
    if pair.back is None:
        del parts["back"]
    else:
        parts["back"] = Back(pair.back)
    for key in ("stands_for", "unit"):
        if not parts[key]:
            del parts[key]
    return parts


def make_pair(parts: Mapping[str, Any]) -> Finite:
    """Inverse of :func:`pair_parts`.

    :raises ValueError: if the parts are not those of a pair of distributions
    """
    pair = Finite(**parts)
    losses, masses = pair.losses, pair.masses
    _require(losses.shape == masses.shape and bool(np.isfinite(losses).all()))
    _require(bool((losses[1:] >= losses[:-1]).all()) and bool((masses >= 0.0).all()))
    _require(float(masses.sum()) + pair.infinite <= _ABOUT_ONE)
    _require(all(0.0 <= one <= 1.0 for one in (pair.infinite, pair.never)))
    _require(all(0.0 <= one < inf for one in (pair.mass_error, pair.loss_error, pair.slack)))
    _require(isinstance(pair.stands_for, str) and pair.unit in ("", *UNITS))
    _require(pair.back is None or (isinstance(pair.back, Finite) and pair.back.back is None))
    _require(pair.limit >= 0.0 and pair.gaussian >= 0.0)
    return pair


def _factor(factor: Any) -> Any:
    """Check a factor of a product, and return it."""
    if isinstance(factor, Laplace):
        _require(0.0 < factor.epsilon < inf and factor.steps >= 1.0)
        _require(factor.steps == inf or float(factor.steps).is_integer())
    elif isinstance(factor, Subsampled):
        _require(factor.noise in ("gaussian", "laplace") and factor.unit in UNITS)
        _require(0.0 < factor.size < inf and 0.0 < factor.rate < 1.0)
    else:
        _require(isinstance(factor, Finite))
    return factor


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("a part of the trade-off function is out of range")


check_fields(Finite, {key: key for key in PAIR})
_PAIR = Kind("pair", Finite, PAIR, pair_parts, make_pair)
add(replace(_PAIR, around=Around("swapped", original, Finite.swapped)))
BY_CLASS[Back] = replace(_PAIR, cls=Back, parts=lambda back: pair_parts(back.pair))
add(
    Kind(
        "function", TradeoffFunction, FUNCTION_KEYS, function_parts, make_function, subclasses=True
    )
)


# Losses that rooms above this one know: each registers what it reads when it is imported.

# of the best of several runs: from the losses of a run, the mean number of runs, and its shape
SELECTIONS: list[Callable[[Session, float, float], TradeoffFunction]] = []
