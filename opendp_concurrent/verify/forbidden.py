"""Continuation rules that look right and are not valid. The package does not offer them.

They are here to compute how they fail. None is an accumulator of the package.

* ``NaturalOptimal`` admits a launch if the optimal composition of all launches, as if they were
  fixed in advance, is within (ε, δ). It fails with pure children only.
* ``BestOrder`` admits a launch if, for some Rényi order, the summed divergences convert to at most
  (ε, δ), with the full δ for each order.
* ``EitherUndivided`` admits a launch if one of several filters would, with the full δ for each. It
  fails with one order at two slacks, or a slack and the plain sum, and a child that may fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import expm1, prod
from typing import Any

from ..accumulators.epsilon_delta_sum import EpsilonDeltaSum
from ..errors import BudgetExceededError
from ..measures.conversions.renyi_to_approximate import largest_divergence
from .filters.menu import Item
from .mechanism import FiniteMechanism, response


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
