"""The largest Rényi divergence that an analyst reaches against a filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ... import checks
from ...checks import checked, hashable
from ..mechanism import one_way_renyi
from .menu import MOST_LAUNCHES, Item, Rule, a_rule, check_menu
from .totals import largest_total


@checked(
    accumulator=hashable,
    rule=a_rule,
    most=MOST_LAUNCHES,
)
def worst_renyi(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, order: float, *, most: int = 300
) -> float:
    """Largest Rényi divergence of ``order`` that an analyst reaches against a filter.

    Ratios need not be known: the moment of a launch multiplies that of what follows, so that the
    divergences along a path add up.

    :param menu: what may be launched, any number of times
    :param accumulator: of no launch; frozen and hashable
    :param rule: when a launch is admitted, such as ``Within(d_out)``
    :param order: finite, above 1
    :param most: launches at most; reaching it raises, since then the worst may be cut off
    :return: the divergence, for the worse order of the datasets
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> from opendp_concurrent.accumulators import basic
    >>> from opendp_concurrent.accounts.rule import Within
    >>> item = verify.Item("response", 0.5, verify.randomized_response(0.5))
    >>> verify.worst_renyi([item], basic().start(0.0), Within(1.0), order=2.0)
    0.45467...
    >>> 2 * verify.randomized_response(0.5).renyi(2.0)
    0.45467...
    """
    order = checks.order(order=order)
    items = check_menu(menu)
    totals = []
    for swapped in (False, True):
        laws = [(item.mechanism.first, item.mechanism.second) for item in items]
        each = [one_way_renyi(*(pair[::-1] if swapped else pair), order) for pair in laws]
        totals.append(float(largest_total(each, items, accumulator, rule, most)))
    return max(totals)
