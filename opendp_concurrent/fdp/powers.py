"""How many units of one trade-off function another is worth: powers of one are totally ordered."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from .order import is_at_most, with_gaussians
from .product import Product

MOST = 2**22  # units
_NORMAL = NormalDist()


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
    found = _last(lambda k: not is_at_most(child, unit.power(k)), _guess(unit, child))
    return found + 1 if found < MOST else None


def _guess(unit: Product, child: Product) -> int:
    """About the number of units with the δ at ε = 0 of the child, if both were Gaussian."""
    delta = float(child.profile(np.zeros(1), 1e-3).upper[0])
    squares = (2 * _NORMAL.inv_cdf(min((1 + delta) / 2, 1 - 2.0**-53))) ** 2
    return int(min(max(1.0, squares / max(unit.variance, 1e-200)), MOST))


@lru_cache(maxsize=4096)
def largest_power(unit: Product, budget: Product) -> int:
    """Largest k found with unit^k <= budget, at most ``MOST``."""
    known = _exact(unit, budget, up=False)
    if known is not None:
        return known
    return _last(lambda k: is_at_most(unit.power(k), budget), _guess(unit, budget))


def _last(holds: Callable[[int], bool], at: int) -> int:
    """Last integer up to ``MOST`` for which a predicate holds that is true at 0, and false later.

    :param at: where the search starts: outward, until it has both answers
    """
    low, high, step = 0, MOST + 1, 1
    while high - low > 1:
        low, high = (at, high) if holds(at) else (low, at)
        at = low + step if high > MOST else high - step if low == 0 else (low + high) // 2
        at, step = min(max(at, low + 1), high - 1), 2 * step
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
