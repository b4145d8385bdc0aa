"""Continuation rules that look right and are not valid: to compute how they fail.

* ``NaturalOptimal`` admits a launch if the optimal composition of all launches, as if they were
  fixed in advance, is within (ε, δ). It fails with pure children only.
* ``BestOrder`` admits a launch if, for some Rényi order, the summed divergences convert to at
  most (ε, δ), with the full δ for each order.
* ``EitherUndivided`` admits a launch if one of several filters would, with the full δ for each.
  It fails with one order at two slacks, or a slack and the plain sum, and a child that may fail.
  For randomized responses only, no counterexample and no proof is known.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import expm1, prod

from opendp_concurrent.accounting import EpsilonDeltaSum
from opendp_concurrent.errors import BudgetExceededError
from opendp_concurrent.measures import largest_divergence
from opendp_concurrent.verify import FiniteMechanism, Item
from opendp_concurrent.verify.mechanism import response


@dataclass(frozen=True)
class NaturalOptimal:
    """INVALID. Its states are the sorted losses of the launches; it starts at ()."""

    epsilon: float
    delta: float

    def admits(self, losses, d_mid):
        after = tuple(sorted((*losses, d_mid)))
        epsilons, deltas = zip(*after, strict=True)
        kept = prod(1 - delta for delta in deltas)
        if 1 - kept * (1 - optimal_delta(epsilons, self.epsilon)) <= self.delta:
            return after
        return BudgetExceededError(losses, d_mid, None)


@dataclass(frozen=True)
class EitherUndivided:
    """INVALID. Its states are those of ``either``."""

    epsilon: float
    delta: float

    def admits(self, so_far, d_mid):
        after = so_far.after(d_mid)
        for rule, cost in zip(after.rules, after.costs, strict=True):
            alone = EpsilonDeltaSum((rule,), (cost,), after.deltas)
            if alone.within((self.epsilon, self.delta)):
                return after
        return BudgetExceededError(so_far, d_mid, None)


@dataclass(frozen=True)
class BestOrder:
    """INVALID. Its states are the sums of the divergences at each order."""

    orders: tuple
    epsilon: float
    delta: float

    @property
    def start(self):
        return (0.0,) * len(self.orders)

    def admits(self, sums, d_mid):
        after = tuple(a + b for a, b in zip(sums, d_mid, strict=True))
        for order, total in zip(self.orders, after, strict=True):
            if total <= largest_divergence(order, self.epsilon, self.delta):
                return after
        return BudgetExceededError(sums, d_mid, None)

    def bit(self, name, p, q):
        """A bit, which is 1 with probability p or q, with its divergences at the orders."""
        mechanism = FiniteMechanism((p, 1 - p), (q, 1 - q))
        return Item(name, tuple(map(mechanism.renyi, self.orders)), mechanism)


@lru_cache(maxsize=100_000)
def optimal_delta(epsilons, epsilon):
    """δ of independent randomized responses at ``epsilon``, which may be negative [KOV15].

    Equal responses are one binomial distribution, so many responses of few kinds are fast.
    """
    losses = {0.0: 1.0}
    for one in epsilons:
        truth, lie = response(one)
        onward = {}
        for loss, mass in losses.items():
            for sign, share in ((1, truth), (-1, lie)):
                key = round(loss + sign * one, 12)
                onward[key] = onward.get(key, 0.0) + mass * share
        losses = onward
    return sum(mass * -expm1(epsilon - loss) for loss, mass in losses.items() if loss > epsilon)


def second_stage_gain(first, fixed, epsilon):
    """δ of the best alternative fixed in advance, and δ if the first answer chooses one.

    :param first: ε of the first launch, a randomized response
    :param fixed: the alternatives for the other launches: the ε of each launch
    """
    claimed = max(optimal_delta(tuple(sorted((first, *rest))), epsilon) for rest in fixed)
    (truth, lie), true = response(first), 0.0
    for share, loss in ((truth, first), (lie, -first)):
        true += share * max(optimal_delta(tuple(sorted(rest)), epsilon - loss) for rest in fixed)
    return claimed, true
