"""The largest Rényi divergence that an analyst reaches against a filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp, inf, log
from typing import Any

from ..errors import BudgetExceededError, InvalidValueError
from .mechanism import FiniteMechanism
from .menu import Item, Rule, check_depth, check_menu


def worst_renyi(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, order: float, *, most: int = 1000
) -> float:
    """Largest Rényi divergence of ``order`` that an analyst reaches against a filter.

    Ratios need not be known: the moment of a launch multiplies that of what follows, so that the
    divergences along a path add up.

    :param order: finite, above 1
    :raises InvalidTypeError, InvalidValueError: naming the argument
    """
    if not 1.0 < order < inf:
        raise InvalidValueError(f"order ({order}) must be finite and above 1")
    items = check_menu(menu)
    worst = 0.0
    for swapped in (False, True):
        mechanisms = [item.mechanism.swapped if swapped else item.mechanism for item in items]
        divergences = [_one_way(mechanism, order) for mechanism in mechanisms]
        known: dict[Any, float] = {}

        def largest(state: Any, depth: int, each: Any = divergences, known: Any = known) -> Any:
            if state not in known:
                check_depth(depth, most)
                best = 0.0
                for item, divergence in zip(items, each, strict=True):
                    after = rule.admits(state, item.d_mid)
                    if not isinstance(after, BudgetExceededError) and after != state:
                        best = max(best, divergence + largest(after, depth + 1, each, known))
                known[state] = best
            return known[state]

        worst = max(worst, largest(accumulator, 0))
    return worst


def _one_way(mechanism: FiniteMechanism, order: float) -> float:
    """Rényi divergence of the first distribution from the second."""
    pairs = zip(mechanism.first, mechanism.second, strict=True)
    logs = [inf if q == 0.0 else order * log(p) + (1 - order) * log(q) for p, q in pairs if p > 0.0]
    top = max(logs)
    return inf if top == inf else (top + log(sum(exp(one - top) for one in logs))) / (order - 1)
