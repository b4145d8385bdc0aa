"""How many units of one trade-off function another is worth: powers of one are totally ordered."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf

from .order import is_at_most, with_gaussians
from .product import Product

MOST = 2**22  # units


@lru_cache(maxsize=65536)
def least_power(unit: Product, child: Product) -> int | None:
    """Least k found with child <= unit^k; None if none is found up to ``MOST``."""
    if child.is_identity:
        return 0
    known = _exact(unit, child, up=True)
    if known is not None:
        return known
    larger = with_gaussians(child)
    if unit.squares and larger != child:
        return least_power(unit, larger)
    if unit.infinite.upper == 0.0 < child.infinite.upper:
        return None
    low, high = 0, 1
    if unit.largest_loss and child.largest_loss < inf and unit.largest_loss < inf:
        high = max(1, int(min(child.largest_loss / unit.largest_loss, MOST)))
    while not is_at_most(child, unit.power(high)):
        low, high = high, 2 * high
        if high > MOST:
            return None
    return _last(lambda k: not is_at_most(child, unit.power(k)), low, high) + 1


@lru_cache(maxsize=4096)
def largest_power(unit: Product, budget: Product) -> int:
    """Largest k found with unit^k <= budget, at most ``MOST``."""
    known = _exact(unit, budget, up=False)
    if known is not None:
        return known
    low, high = 0, 1
    while high <= MOST and is_at_most(unit.power(high), budget):
        low, high = high, 2 * high
    return _last(lambda k: is_at_most(unit.power(k), budget), low, min(high, MOST + 1))


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Last integer for which a predicate holds that is true at ``low`` and false at ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _exact(unit: Product, other: Product, *, up: bool) -> int | None:
    """How many units another product of the same factors has, without a comparison."""
    if not unit.factors and not other.factors:  # Gaussians
        return -(-other.squares // unit.squares) if up else other.squares // unit.squares
    if set(unit.factors) != set(other.factors) or bool(unit.squares) != bool(other.squares):
        return None
    times = {other.factors[factor] // n for factor, n in unit.factors.items()}
    if len(times) != 1:
        return None
    (count,) = times
    return count if unit.power(count) == other else None
