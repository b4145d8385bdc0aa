"""The largest total that an analyst reaches, for losses that add up over launches.

These are the largest loss (pure DP), the mean loss (Kullback-Leibler divergence), and the Rényi
divergence of each order. They need no likelihood ratios, and no launch is omitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import expm1, inf, isinf, prod
from typing import Any

from .. import _checks as checks
from ..accounting import EpsilonDeltaSum
from ..errors import BudgetExceededError, InvalidValueError, State
from ..measures import largest_divergence
from .adversary import Item, Rule, check_depth, next_state, on_a_menu
from .mechanism import FiniteMechanism, Number, one_way, response


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
    rule: Rule,
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
    menu: Sequence[Item], accumulator: Hashable, rule: Rule, order: float, *, most: int = 300
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
    values: Sequence[Number], items: Sequence[Item], accumulator: State, rule: Rule, most: int
) -> Number:
    """Largest sum of the values of the items, over all sequences of launches that a rule admits."""
    known: dict[Any, Number] = {}

    def largest(state: State, depth: int) -> Number:
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


# Continuation rules that look right and are not valid. The package does not offer them.
#
# They are here to compute how they fail. None is an accumulator of the package.
#
# * ``NaturalOptimal`` admits a launch if the optimal composition of all launches, as if they were
#   fixed in advance, is within (ε, δ). It fails with pure children only.
# * ``BestOrder`` admits a launch if, for some Rényi order, the summed divergences convert to at
#   most (ε, δ), with the full δ for each order.
# * ``EitherUndivided`` admits a launch if one of several filters would, with the full δ for each.
#   It fails with one order at two slacks, or a slack and the plain sum, and a child that may fail.


@dataclass(frozen=True)
class Launched:
    """The launches so far, the initial state of a rule that depends on all of them.

    :ivar epsilons: of the launches, sorted
    :ivar deltas: of the launches, sorted
    """

    epsilons: tuple[float, ...] = ()
    deltas: tuple[float, ...] = ()


@dataclass(frozen=True)
class NaturalOptimal:
    """Admit a launch if the optimal composition of all launches is within (ε, δ). INVALID."""

    epsilon: float
    delta: float

    def admits(self, launched: Launched, d_mid: tuple[float, float]) -> Any:
        """Return all launches, or a refusal."""
        after = Launched(
            tuple(sorted((*launched.epsilons, d_mid[0]))),
            tuple(sorted((*launched.deltas, d_mid[1]))),
        )
        kept = prod(1 - delta for delta in after.deltas)
        if 1 - kept * (1 - optimal_delta(after.epsilons, self.epsilon)) <= self.delta:
            return after
        return BudgetExceededError(launched, d_mid, None)


@dataclass(frozen=True)
class EitherUndivided:
    """Admit a launch if one of the rules of ``either`` would, with the full δ for each. INVALID.

    Its states are accumulators of the package. It fails with children that may fail. For randomized
    responses only, no counterexample and no proof is known.
    """

    epsilon: float
    delta: float

    def admits(self, so_far: EpsilonDeltaSum, d_mid: tuple[float, float]) -> Any:
        """Return the sums after the launch, or a refusal."""
        after = so_far.after(d_mid)
        for rule, cost in zip(after.rules, after.costs, strict=True):
            alone = EpsilonDeltaSum((rule,), (cost,), after.deltas)
            if alone.within((self.epsilon, self.delta)):
                return after
        return BudgetExceededError(so_far, d_mid, None)


@lru_cache(maxsize=100_000)
def optimal_delta(epsilons: tuple[float, ...], epsilon: float) -> float:
    """δ of independent randomized responses at ``epsilon``, which may be negative [KOV15].

    Equal responses are one binomial distribution, so many responses of few kinds are fast.
    """
    losses = {0.0: 1.0}
    for one in epsilons:
        truth, lie = response(one)
        onward: dict[float, float] = {}
        for loss, mass in losses.items():
            for sign, share in ((1, truth), (-1, lie)):
                key = round(loss + sign * one, 12)
                onward[key] = onward.get(key, 0.0) + mass * share
        losses = onward
    return sum(mass * -expm1(epsilon - loss) for loss, mass in losses.items() if loss > epsilon)


@dataclass(frozen=True)
class BestOrder:
    """Admit a launch if the sum at some order is within its budget, with the full δ. INVALID.

    Its states are the sums of the divergences at each order.
    """

    orders: tuple[float, ...]
    epsilon: float
    delta: float

    @property
    def start(self) -> tuple[float, ...]:
        """The state before the first launch."""
        return (0.0,) * len(self.orders)

    def admits(self, sums: tuple[float, ...], d_mid: tuple[float, ...]) -> Any:
        """Return the sums after the launch, or a refusal."""
        after = tuple(a + b for a, b in zip(sums, d_mid, strict=True))
        for order, total in zip(self.orders, after, strict=True):
            if total <= largest_divergence(order, self.epsilon, self.delta):
                return after
        return BudgetExceededError(sums, d_mid, None)

    def item(self, name: str, mechanism: FiniteMechanism) -> Item:
        """An item that declares its divergences at the orders, the larger of both directions."""
        return Item(name, tuple(mechanism.renyi(order) for order in self.orders), mechanism)


def bernoulli(p: float, q: float) -> FiniteMechanism:
    """One bit, which is 1 with probability ``p`` on one dataset and ``q`` on the other."""
    return FiniteMechanism((p, 1 - p), (q, 1 - q))


def second_stage_gain(
    first: float, fixed: Sequence[Sequence[float]], epsilon: float
) -> tuple[float, float]:
    """The gain of choosing the other launches after the answer of a randomized response.

    :param first: ε of the first launch
    :param fixed: the alternatives for the other launches: the ε of each launch
    :param epsilon: at which δ is computed
    :return: the largest δ of an alternative fixed in advance, and δ of the choice by the answer
    """
    claimed = max(optimal_delta(tuple(sorted((first, *rest))), epsilon) for rest in fixed)
    (truth, lie), true = response(first), 0.0
    for share, loss in ((truth, first), (lie, -first)):
        true += share * max(optimal_delta(tuple(sorted(rest)), epsilon - loss) for rest in fixed)
    return claimed, true
