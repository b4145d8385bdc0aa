"""The largest total that an analyst reaches, where what single launches tell adds up.

So it is with the largest loss (pure DP), the mean loss (Kullback and Leibler) and the Rényi
divergence of any order between: ratios need not be known, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import fsum, inf, isinf, log, log1p
from typing import Any

from ... import checks
from ...checks import checked, hashable, optional
from ...errors import InvalidValueError
from ..mechanism import FiniteMechanism, Number
from .menu import MOST_LAUNCHES, Item, Rule, a_rule, check_depth, check_menu, next_state


def _loss_of_item(**argument: Any) -> Number:
    """Return a loss, an exact fraction or a double of at least 0, or raise."""
    ((name, value),) = argument.items()
    if type(value) is not Fraction:
        return checks.non_negative(**argument)
    if not value >= 0:
        raise InvalidValueError(f"{name} ({checks.shown(value)}) must be at least 0")
    return value


_losses = checks.each("losses", _loss_of_item)


@checked(accumulator=hashable, rule=a_rule, losses=optional(_losses), most=MOST_LAUNCHES)
def worst_loss(
    menu: Sequence[Item],
    accumulator: Hashable,
    rule: Rule,
    *,
    losses: Sequence[Number] | None = None,
    most: int = 300,
) -> Number:
    """Largest privacy loss that an analyst reaches against a filter: ε at δ = 0, exactly.

    Judges pure DP: a violation that has little mass counts as any other.

    :param menu: what may be launched, any number of times
    :param accumulator: of no launch; frozen and hashable
    :param rule: when a launch is admitted, such as ``Within(d_out)``
    :param losses: the largest loss of each item, where it is known exactly; else the logarithms of
        its probabilities are used, each off by some units in the last place
    :param most: launches at most; reaching it raises, since then the worst may be cut off
    :return: the exact sum, as a Fraction; infinite if some answer tells the datasets apart
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from fractions import Fraction
    >>> from opendp_concurrent import verify
    >>> from opendp_concurrent.accumulators import basic
    >>> from opendp_concurrent.accounts.rule import Within
    >>> item = verify.Item("response", 0.1, verify.randomized_response(0.1))
    >>> rule = Within(0.3)
    >>> worst = verify.worst_loss([item], basic().start(0.0), rule, losses=[Fraction(0.1)])
    >>> worst == 2 * Fraction(0.1)  # three times the double 0.1 are more than the double 0.3
    True
    """
    items = check_menu(menu)
    given = [item.mechanism.epsilon() for item in items] if losses is None else losses
    if len(given) != len(items):
        raise InvalidValueError(f"losses must be one for each item: {len(items)}, {len(given)}")
    exact = [one if isinf(one) else Fraction(one) for one in given]
    return largest_total(exact, items, accumulator, rule, most)


@checked(accumulator=hashable, rule=a_rule, most=MOST_LAUNCHES)
def worst_mean_loss(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, *, most: int = 300
) -> float:
    """Largest mean of the loss that an analyst reaches against a filter.

    The divergence of Kullback and Leibler, which is the limit of Rényi's at order 1.

    :param menu: what may be launched, any number of times
    :param accumulator: of no launch; frozen and hashable
    :param rule: when a launch is admitted, such as ``Within(d_out)``
    :param most: launches at most; reaching it raises, since then the worst may be cut off
    :return: the divergence, for the worse order of the datasets
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> from opendp_concurrent.accumulators import basic
    >>> from opendp_concurrent.accounts.rule import Within
    >>> item = verify.Item("response", 0.5, verify.randomized_response(0.5))
    >>> verify.worst_mean_loss([item], basic().start(0.0), Within(1.0))  # 2 * 0.5 * tanh(0.25)
    0.24491...
    """
    items = check_menu(menu)
    totals = []
    for swapped in (False, True):
        each = [mean_loss(item.mechanism, swapped=swapped) for item in items]
        totals.append(float(largest_total(each, items, accumulator, rule, most)))
    return max(totals)


def mean_loss(mechanism: FiniteMechanism, *, swapped: bool = False) -> float:
    """Mean of log P/Q under P; of log Q/P under Q if ``swapped``."""
    laws = mechanism.first, mechanism.second
    first, second = laws[::-1] if swapped else laws
    pairs = [(p, q) for p, q in zip(first, second, strict=True) if p > 0.0]
    return inf if any(q == 0.0 for _, q in pairs) else fsum(p * _loss(p, q) for p, q in pairs)


def _loss(p: float, q: float) -> float:
    """Log p/q, without cancellation where the two nearly agree."""
    return log1p((p - q) / q) if 0.5 < p / q < 2.0 else log(p / q)


def largest_total(
    values: Sequence[Number], items: list[Item], accumulator: Any, rule: Rule, most: int
) -> Number:
    """Largest sum of the values of launches that a rule admits one after the other."""
    known: dict[Any, Number] = {}

    def largest(state: Any, depth: int) -> Number:
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


def launchable(
    items: list[Item], accumulator: Any, rule: Rule, most: int = 300
) -> set[tuple[int, ...]]:
    """How often each item may have been launched, in all ways that a rule admits."""
    onward: list[tuple[Any, tuple[int, ...]]] = [(accumulator, (0,) * len(items))]
    seen = set(onward)
    while onward:
        state, counts = onward.pop()
        check_depth(sum(counts), most)
        for index, item in enumerate(items):
            after = next_state(rule, state, item)
            if after is not None:
                more = (after, (*counts[:index], counts[index] + 1, *counts[index + 1 :]))
                if more not in seen:
                    seen.add(more)
                    onward.append(more)
    return {counts for _, counts in seen}
