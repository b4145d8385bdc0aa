"""The worst analyst against a filter. Start reading here.

An analyst has a menu of mechanisms, each with its declared privacy loss. The analyst launches a
mechanism, sees its answer, and launches the next one, as long as the filter admits it. How well can
the analyst distinguish two neighbouring datasets? For finite mechanisms this is computed exactly,
over *all* analysts, with the rule and the accumulator of the filter itself.

The future depends on the past only through the state of the accumulator and the likelihood ratio
x = P/Q of the answers so far. The largest value of the sum of (P - e^ε Q)+ over all futures is, per
unit of P, a function g(state, x), and a dynamic programme computes it:

    g(state, x) = max(stop: (1 - e^ε/x)+,
                      launch an admitted item: sum over answers a of
                      P(a) g(state after, x P(a)/Q(a)))

Deterministic analysts suffice [HSTVVXZ23, Lemma 2.3]. The logarithm of a ratio is stored as integer
multiples of common steps, so that equal ratios are recognised. The strategy omits launches that
gain less than 1e-15, so ``delta`` omits them, too. ``delta_upper`` includes them and all rounding:
no analyst exceeds it. For pure DP use :func:`worst_loss`, because the probability of a violation
may be too small for doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from math import expm1, inf
from typing import Any, NamedTuple

from ...arguments import checks
from ...types import State
from ..mechanism import FiniteMechanism
from .lattice import Lattice
from .menu import Item, Rule, check_depth, next_state, on_a_menu
from .strategy import Launch, Stop, Strategy, view_of

SMALLEST_GAIN = 1e-15  # per unit of P, of a launch that is part of a strategy
ULP = 2.0**-52


@dataclass(frozen=True)
class Worst:
    """The largest δ that an analyst reaches, and the strategy that reaches it.

    :ivar delta: sum over answers of (P - e^ε Q)+ under the strategy, for the worse order of the
        datasets
    :ivar swapped: whether the worse order is (second, first); strategy and view keep the order of
        the menu
    :ivar strategy: a tree of launches
    :ivar view: distributions of all that the analyst sees, on both datasets
    :ivar delta_upper: bound for all analysts: includes all rounding, and the launches that the
        strategy omits for their small gain
    """

    delta: float
    swapped: bool
    strategy: Strategy
    view: FiniteMechanism
    delta_upper: float


@on_a_menu
def worst_analyst(
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, epsilon: float, *, most: int = 300
) -> Worst:
    """Find the analyst who reaches the largest δ at ``epsilon`` against a filter.

    :param menu: mechanisms that may be launched, any number of times. Your own menu is a list
        of ``Item(name, d_mid, mechanism)``
    :param accumulator: before the first launch; frozen and hashable, such as
        ``oc.accumulators.zcdp(1e-6).start()``
    :param rule: admits launches, such as ``Within(d_out)``
    :param epsilon: at which δ is computed
    :param most: largest number of launches; raises if the rule admits more
    :return: the strategy, its δ, and an upper bound for all analysts

    :example:

    >>> menu = oc.verify.response_menu(0.5, 1.0)  # randomized responses that declare (ε, 0)
    >>> measure = oc.measures.composition_measure(dp.approximate(dp.max_divergence()))
    >>> start = oc.accumulators.basic().start(measure)
    >>> worst = oc.verify.worst_analyst(menu, start, oc.verify.Within((1.5, 0.0)), epsilon=1.0)
    >>> worst.delta
    0.17904988921...
    >>> print(worst.strategy)
    launch 0.5
      answer 0 (0.6225 | 0.3775): launch 1
        answer 0 (0.7311 | 0.2689): stop at loss 1.5
        answer 1 (0.2689 | 0.7311): stop at loss -0.5
      answer 1 (0.3775 | 0.6225): stop at loss -0.5
    """
    bound = checks.real(epsilon=epsilon)
    after = cache(lambda state: [next_state(rule, state, item) for item in menu])
    solvers = [_Solver(menu, after, bound, most, swapped) for swapped in (False, True)]
    best = [solver.best(accumulator, solver.lattice.origin) for solver in solvers]
    upper = max(solver.upper(one) for solver, one in zip(solvers, best, strict=True))
    swapped = best[1].value > best[0].value
    value, _, strategy = best[swapped]
    view = view_of(strategy)
    return Worst(min(value, view.delta(bound)), swapped, strategy, view, upper)


class _Best(NamedTuple):
    """The largest value in a situation, per unit of P."""

    value: float
    launches: int  # the largest number that may follow
    strategy: Strategy


class _Solver:
    """The dynamic programme for one order of the two datasets."""

    def __init__(
        self,
        items: Sequence[Item],
        after: Callable[[Any], list[Any]],
        epsilon: float,
        most: int,
        swapped: bool,
    ) -> None:
        self._items, self._after, self._epsilon, self._most = items, after, epsilon, most
        self._swapped = swapped
        mechanisms = [item.mechanism.swapped if swapped else item.mechanism for item in items]
        self.lattice = Lattice(mechanisms)
        self._answers = [self.lattice.answers(one) for one in mechanisms]
        self._best: dict[Any, _Best] = {}
        self._largest = 0.0

    def upper(self, best: _Best) -> float:
        """A bound for all analysts, from the computed value: adds the error of rounding.

        The error of a leaf is at most that of its loss; a sum of positive terms adds its relative
        error of rounding.
        """
        terms = 2 + max(len(answers) for answers in self._answers)
        error = best.launches * self.lattice.error + 4 * ULP * (self._largest + abs(self._epsilon))
        return min(1.0, best.value * (1 + best.launches * terms * ULP) + error)

    def best(self, state: State, ratio: Any, depth: int = 0) -> _Best:
        """The largest value over all futures of a situation; equal situations share one result."""
        if (state, ratio) in self._best:
            return self._best[state, ratio]
        check_depth(depth, self._most)
        sign, loss = -1.0 if self._swapped else 1.0, self.lattice.log(ratio)
        self._largest = max(self._largest, abs(loss))
        best = chosen = -expm1(self._epsilon - loss) if loss > self._epsilon else 0.0
        strategy: Strategy = Stop(sign * loss)
        launches = 0
        for item, answers, after in zip(
            self._items, self._answers, self._after(state), strict=True
        ):
            if after is None:  # refused, or of no use
                continue
            value, branches = 0.0, []
            for first, second, steps in answers:
                if steps is None:  # impossible on the other dataset: distinguishes for certain
                    value += first
                    onward: Strategy = Stop(sign * inf)
                elif first == 0.0:
                    onward = Stop(-sign * inf)
                else:
                    below = self.best(after, self.lattice.after(ratio, steps), depth + 1)
                    value += first * below.value
                    launches = max(launches, 1 + below.launches)
                    onward = below.strategy
                pair = (second, first) if self._swapped else (first, second)
                branches.append((*pair, onward))
            if value > chosen + SMALLEST_GAIN:
                chosen, strategy = value, Launch(item.name, sign * loss, tuple(branches))
            best = max(best, value)
        self._best[state, ratio] = found = _Best(best, launches, strategy)
        return found
