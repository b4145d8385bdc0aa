"""The largest total that an analyst reaches, for losses that add up over launches.

These are the largest loss (pure DP), the mean loss (Kullback-Leibler divergence), and the Rényi
divergence of each order. They need no likelihood ratios, and no launch is omitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import inf, isinf
from typing import Any

from .. import _checks as checks
from ..errors import InvalidValueError
from .adversary import Item, Rule, S, check_depth, next_state, on_a_menu
from .mechanism import Number, one_way


def _loss_of_item(**argument: Any) -> Number:
    ((name, value),) = argument.items()
    if type(value) is not Fraction:
        return checks.non_negative(**argument)
    if not value >= 0:
        raise InvalidValueError(f"{name} ({checks.shown(value)}) must be at least 0")
    return value


@on_a_menu
@checks.checked(losses=checks.optional(checks.each("losses", _loss_of_item)))
def worst_loss(
    menu: Sequence[Item],
    accumulator: Hashable,
    rule: Rule[Any],
    *,
    losses: Sequence[Number] | None = None,
    most: int = 300,
) -> Number:
    """Compute the largest privacy loss against a filter, exactly: ε at δ = 0.

    Use it for pure DP: it finds a violation however small its probability is. The other parameters
    are those of :func:`worst_analyst`.

    :param losses: the exact largest loss of each item. By default they are computed in doubles from
        the probabilities, with an error of a few units in the last place
    :return: the exact sum, as a Fraction; infinite if some answer is impossible on one dataset

    :example:

    >>> from fractions import Fraction
    >>> menu = [oc.verify.Item("response", 0.1, oc.verify.randomized_response(0.1))]
    >>> measure = oc.extend.composition_measure(dp.max_divergence())
    >>> start = oc.accumulators.basic().start(measure)
    >>> worst = oc.verify.worst_loss(menu, start, oc.verify.Within(0.3), losses=[Fraction(0.1)])
    >>> worst == 2 * Fraction(0.1)  # three times the double 0.1 is more than the double 0.3
    True
    """
    if losses is not None and len(losses) != len(menu):
        raise InvalidValueError(
            f"losses ({len(losses)}) must have one element for each of the {len(menu)} items"
        )
    sides = _one_way(menu, inf) if losses is None else [losses]
    exact = [[one if isinf(one) else Fraction(one) for one in side] for side in sides]
    return max(_largest_total(one, menu, accumulator, rule, most) for one in exact)


@on_a_menu
def worst_renyi(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule[Any], order: float, *, most: int = 300
) -> float:
    """Compute the largest Rényi divergence of ``order`` against a filter.

    The divergences of interleaved mechanisms add up [LW22, Theorem 2], so no interleavings are
    listed. The other parameters are those of :func:`worst_analyst`.

    :param order: finite, at least 1. At 1 it is the mean of the privacy loss, which is the
        Kullback-Leibler divergence
    :return: the divergence, for the worse order of the datasets

    :example:

    >>> menu = [oc.verify.Item("response", 0.5, oc.verify.randomized_response(0.5))]
    >>> measure = oc.extend.composition_measure(dp.max_divergence())
    >>> start = oc.accumulators.basic().start(measure)
    >>> oc.verify.worst_renyi(menu, start, oc.verify.Within(1.0), order=2.0)
    0.45467...
    >>> 2 * oc.verify.randomized_response(0.5).renyi(2.0)
    0.45467...
    >>> oc.verify.worst_renyi(menu, start, oc.verify.Within(1.0), order=1.0)  # 2 * 0.5 * tanh(0.25)
    0.24491...
    """
    if not 1.0 <= checks.real(order=order) < inf:
        raise InvalidValueError(f"order ({order}) must be finite and at least 1")
    sides = _one_way(menu, order)
    return max(float(_largest_total(one, menu, accumulator, rule, most)) for one in sides)


def _one_way(menu: Sequence[Item], order: float) -> list[list[float]]:
    """For each order of the datasets, the divergence of each item."""
    return [[one_way(item.mechanism.tables, order, side) for item in menu] for side in (0, 1)]


def _largest_total(
    values: Sequence[Number], items: Sequence[Item], accumulator: S, rule: Rule[S], most: int
) -> Number:
    """Largest sum of the values of the items, over all sequences of launches that a rule admits."""
    known: dict[Any, Number] = {}

    def largest(state: S, depth: int) -> Number:
        if state not in known:
            check_depth(depth, most)
            best: Number = 0
            for item, value in zip(items, values, strict=True):
                after = next_state(rule, state, item)
                if after is not None:
                    best = max(best, value + largest(after, depth + 1))
            known[state] = best
        return known[state]

    return largest(accumulator, 0)
