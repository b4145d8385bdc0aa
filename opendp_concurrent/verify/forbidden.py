"""Rules that look right and are not: continuation rules that this package refuses to offer.

Each is here so that its failure can be computed. None is an accumulator of the package.

* ``NaturalOptimal``: go on while the optimal composition of what was launched, had it been fixed up
  front, is within (ε, δ). Fails with pure children only.
* ``BestOrder``: go on while, for some Rényi order, the summed divergences convert to at most
  (ε, δ), at the full δ.
* ``EitherUndivided``: go on while one of several filters would, at an undivided δ. Fails with two
  slacks of one order, or a slack and the plain sum, and a child that may fail.
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
    """What was launched so far, in no order, where rules start that look at all of it.

    :ivar epsilons: of the launches, sorted
    :ivar deltas: of those that may fail, sorted
    """

    epsilons: tuple[float, ...] = ()
    deltas: tuple[float, ...] = ()


@dataclass(frozen=True)
class NaturalOptimal:
    """Go on while the optimal composition of what was launched is within (ε, δ). INVALID."""

    epsilon: float
    delta: float

    def admits(self, launched: Launched, d_mid: tuple[float, float]) -> Any:
        """Return what was launched then, or a refusal."""
        after = Launched(
            tuple(sorted((*launched.epsilons, d_mid[0]))),
            tuple(sorted((*launched.deltas, d_mid[1]))) if d_mid[1] else launched.deltas,
        )
        kept = prod(1 - delta for delta in after.deltas)
        if 1 - kept * (1 - optimal_delta(after.epsilons, self.epsilon)) <= self.delta:
            return after
        return BudgetExceededError(launched, d_mid, None)


@dataclass(frozen=True)
class EitherUndivided:
    """Go on while one of the rules of ``either`` would, each at the full δ. INVALID.

    Its states are the accumulators of production. Fails with children that may fail; for randomized
    responses only, no counterexample is known, and no proof.
    """

    epsilon: float
    delta: float

    def admits(self, so_far: EpsilonDeltaSum, d_mid: tuple[float, float]) -> Any:
        """Return the sums after, or a refusal."""
        after = so_far.after(d_mid)
        for rule, cost in zip(after.rules, after.costs, strict=True):
            alone = EpsilonDeltaSum((rule,), (cost,), after.deltas)
            if alone.within((self.epsilon, self.delta)):
                return after
        return BudgetExceededError(so_far, d_mid, None)


@lru_cache(maxsize=100_000)
def optimal_delta(epsilons: tuple[float, ...], epsilon: float) -> float:
    """δ at ``epsilon``, possibly negative, of independent randomized responses [KOV15].

    Equal ones are one binomial distribution, so many of few kinds are fast.
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
class Divergences:
    """Summed divergences at each order so far."""

    sums: tuple[float, ...]


@dataclass(frozen=True)
class BestOrder:
    """Go on while some order's sum is within its budget for (ε, δ), at the full δ. INVALID."""

    orders: tuple[float, ...]
    epsilon: float
    delta: float

    @property
    def start(self) -> Divergences:
        """Nothing launched."""
        return Divergences((0.0,) * len(self.orders))

    def admits(self, so_far: Divergences, d_mid: tuple[float, ...]) -> Any:
        """Return the sums after, or a refusal; ``d_mid`` has the divergence at each order."""
        after = Divergences(tuple(a + b for a, b in zip(so_far.sums, d_mid, strict=True)))
        for order, total in zip(self.orders, after.sums, strict=True):
            if total <= largest_divergence(order, self.epsilon, self.delta):
                return after
        return BudgetExceededError(so_far, d_mid, None)

    def item(self, name: str, mechanism: FiniteMechanism) -> Item:
        """Item that declares its divergences, those of both directions, at the orders."""
        return Item(name, tuple(mechanism.renyi(order) for order in self.orders), mechanism)


def bernoulli(p: float, q: float) -> FiniteMechanism:
    """One bit, which is 1 with probability ``p`` on one dataset and ``q`` on the other."""
    return FiniteMechanism((p, 1 - p), (q, 1 - q))


def second_stage_gain(
    first: float, fixed: Sequence[Sequence[float]], epsilon: float
) -> tuple[float, float]:
    """What choosing the rest after the answer of a randomized response gains.

    :param first: ε of the first launch
    :param fixed: the ε of each way to go on
    :param epsilon: at which privacy is asked
    :return: the largest δ of ways fixed up front, and δ if the way is chosen by the answer
    """
    claimed = max(optimal_delta(tuple(sorted((first, *rest))), epsilon) for rest in fixed)
    (truth, lie), true = response(first), 0.0
    for share, loss in ((truth, first), (lie, -first)):
        true += share * max(optimal_delta(tuple(sorted(rest)), epsilon - loss) for rest in fixed)
    return claimed, true
