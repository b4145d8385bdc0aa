"""The worst analyst against a filter: start reading here.

An analyst has a menu of mechanisms, each with the privacy loss that it declares. He launches one,
sees its answer, launches another, as long as the filter admits it. How well can he tell two
neighbouring datasets apart? For finite mechanisms this is computed exactly, over *all* analysts:

>>> from opendp_concurrent import verify
>>> from opendp_concurrent.accumulators import basic
>>> from opendp_concurrent.accounts.rule import Within
>>> menu = verify.response_menu(0.5, 1.0)                            # declared (ε, 0)
>>> worst = verify.worst_analyst(menu, basic().start((0.0, 0.0)), Within((1.5, 0.0)), epsilon=1.0)
>>> worst.delta
0.17904988921...
>>> print(worst.strategy)
launch 0.5
  answer 0 (0.6225 | 0.3775): launch 1
    answer 0 (0.7311 | 0.2689): stop at loss 1.5
    answer 1 (0.2689 | 0.7311): stop at loss -0.5
  answer 1 (0.3775 | 0.6225): stop at loss -0.5

The rule and the accumulator are the objects that filters use, not copies: ``Within(d_out)`` and
``accounting.start(zero)``. A menu of one's own is a list of ``Item(name, d_mid, mechanism)``.

How: what matters of the past is the state of the accumulator and the likelihood ratio of what was
seen. With x = P/Q so far, the largest value of sum (P - e^ε Q)+ over what is to come is, per unit
of P, a function g(state, x):

    g(state, x) = max(stop: (1 - e^ε/x)+,  launch an admitted item: sum over answers a of
                      P(a) g(state after, x P(a)/Q(a)))

Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3]. Logarithms of ratios are kept as whole
numbers of steps where all losses of the menu are multiples of one, so that equal ratios are
recognised. A launch that gains less than 1e-15 is left out of the strategy, and so of ``delta``;
``delta_upper`` has all of them, and the rounding of doubles: no analyst exceeds it. Neither tells
pure DP, where a violation may have less mass than doubles resolve: use :func:`worst_loss`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import expm1, inf
from typing import Any

from ... import checks
from ...checks import checked, hashable
from ..mechanism import FiniteMechanism
from .lattice import Lattice
from .menu import MOST_LAUNCHES, Item, Remembered, Rule, a_rule, check_depth, check_menu, next_state
from .strategy import Launch, Stop, Strategy, view_of

WORTHWHILE = 1e-15  # gain, per unit of P, of a launch that is part of a strategy
ULP = 2.0**-52


@dataclass(frozen=True)
class Worst:
    """What the worst analyst reaches, and how.

    :ivar delta: sum over answers of (P - e^ε Q)+ that the strategy reaches, for the worse order of
        the datasets
    :ivar swapped: whether that is the order second, first; strategy and view are as in the menu
    :ivar strategy: what he does, as a tree
    :ivar view: the law of all that he sees, on both datasets
    :ivar delta_upper: what no analyst exceeds: with the launches that were left out for their small
        gain, and all rounding
    """

    delta: float
    swapped: bool
    strategy: Strategy
    view: FiniteMechanism
    delta_upper: float


@checked(
    accumulator=hashable,
    rule=a_rule,
    most=MOST_LAUNCHES,
)
def worst_analyst(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, epsilon: float, *, most: int = 300
) -> Worst:
    """Find the analyst who reaches the largest δ at ``epsilon`` against a filter.

    :param menu: what may be launched, any number of times
    :param accumulator: of no launch; frozen and hashable, such as
        ``oc.accumulators.zcdp(1e-6).start(None)``
    :param rule: when a launch is admitted, such as ``Within(d_out)``
    :param epsilon: at which privacy is asked
    :param most: launches at most; reaching it raises, since then the worst may be cut off
    :return: the strategy, what it reaches, and what none exceeds
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> from opendp_concurrent.accounts.rule import Within
    >>> from opendp_concurrent.accumulators import zcdp
    >>> menu, start = verify.response_menu(0.25, 0.5), zcdp(0.05).start(None)
    >>> worst = verify.worst_analyst(menu, start, Within((1.5, 0.05)), epsilon=1.5)
    >>> 0.0 < worst.delta <= worst.delta_upper <= 0.05
    True
    """
    items, bound = check_menu(menu), checks.real(epsilon=epsilon)
    found, remembered = [], Remembered(rule)
    for swapped in (False, True):
        solver = _Solver(items, remembered, bound, most, swapped)
        found.append((solver.value(accumulator, solver.lattice.origin), solver))
    upper = max(solver.upper(value) for value, solver in found)
    value, solver = max(found, key=lambda pair: pair[0])
    strategy = solver.strategy(accumulator, solver.lattice.origin)
    view = view_of(strategy)
    return Worst(min(value, view.delta(bound)), solver.swapped, strategy, view, upper)


class _Solver:
    """The dynamic programme for one order of the two datasets."""

    def __init__(
        self, items: list[Item], rule: Rule, epsilon: float, most: int, swapped: bool
    ) -> None:
        self._items, self._rule, self._epsilon, self._most = items, rule, epsilon, most
        self.swapped = swapped
        mechanisms = [item.mechanism.swapped if swapped else item.mechanism for item in items]
        self.lattice = Lattice(mechanisms)
        self._answers = [self.lattice.answers(one) for one in mechanisms]
        self._values: dict[Any, float] = {}
        self._after: dict[Any, list[Any]] = {}
        self._choice: dict[Any, int | None] = {}
        self._nodes: dict[Any, Strategy] = {}
        self._launches: dict[Any, int] = {}  # at most, from a situation on
        self._largest = 0.0

    def upper(self, value: float) -> float:
        """What no analyst exceeds, if ``value`` was computed: rounding is added.

        A leaf is off by no more than its loss is; a sum of positive terms by its relative rounding.
        """
        launches = max(self._launches.values())
        terms = 2 + max(len(answers) for answers in self._answers)
        off = launches * self.lattice.error + 4 * ULP * (self._largest + abs(self._epsilon))
        return min(1.0, value * (1 + launches * terms * ULP) + off)

    def value(self, state: Any, ratio: Any, depth: int = 0) -> float:
        """Per unit of P, the largest value of what is to come."""
        key = (state, ratio)
        known = self._values.get(key)
        if known is not None:
            return known
        check_depth(depth, self._most)
        best, choice, launches = self._stop(ratio), None, 0
        chosen = best
        for index, after in enumerate(self._admitted(state)):
            if after is None:
                continue
            value = 0.0
            for first, _, steps in self._answers[index]:
                if steps is None:  # impossible on the other dataset: told apart for sure
                    value += first
                elif first > 0.0:
                    onward = self.lattice.after(ratio, steps)
                    value += first * self.value(after, onward, depth + 1)
                    launches = max(launches, 1 + self._launches[after, onward])
            if value > chosen + WORTHWHILE:
                chosen, choice = value, index
            best = max(best, value)
        self._values[key], self._choice[key] = best, choice
        self._launches[key] = launches
        return best

    def _stop(self, ratio: Any) -> float:
        loss = self.lattice.log(ratio)
        self._largest = max(self._largest, abs(loss))
        return -expm1(self._epsilon - loss) if loss > self._epsilon else 0.0

    def _admitted(self, state: Any) -> list[Any]:
        """Accumulators after each item; None where refused, or where nothing is learned."""
        known = self._after.get(state)
        if known is None:
            known = self._after[state] = [
                next_state(self._rule, state, item) for item in self._items
            ]
        return known

    def strategy(self, state: Any, ratio: Any) -> Strategy:
        """The best choices; equal situations share one node."""
        key = (state, ratio)
        if key in self._nodes:
            return self._nodes[key]
        sign = -1.0 if self.swapped else 1.0
        loss, index = sign * self.lattice.log(ratio), self._choice[key]
        node: Strategy = Stop(loss)
        if index is not None:
            after, branches = self._admitted(state)[index], []
            for first, second, steps in self._answers[index]:
                if steps is None:
                    onward: Strategy = Stop(sign * inf)
                elif first == 0.0:
                    onward = Stop(-sign * inf)
                else:
                    onward = self.strategy(after, self.lattice.after(ratio, steps))
                pair = (second, first) if self.swapped else (first, second)
                branches.append((*pair, onward))
            node = Launch(self._items[index].name, loss, tuple(branches))
        self._nodes[key] = node
        return node
